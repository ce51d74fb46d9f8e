"""Reads the fenced code blocks of a Markdown page."""

import re
from pathlib import Path
from typing import NamedTuple


class Fence(NamedTuple):
    """One fenced block: its language, its text, and the line the text starts on, from 0.

    The language of a directive is ``{name}``.
    """

    language: str
    text: str
    lineno: int


def read_fences(page: Path) -> list[Fence]:
    source = page.read_text(encoding="utf-8")
    blocks = re.finditer(r"^```(\{?[\w-]*\}?)\n(.*?)^```$", source, flags=re.MULTILINE | re.DOTALL)
    return [Fence(m[1], m[2], source.count("\n", 0, m.start(2))) for m in blocks]
