"""Write tables into pages of the documentation."""

from __future__ import annotations

from pathlib import Path


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace the part of a page between the comments ``name: start`` and ``name: stop``."""
    start, stop = f"<!-- {name}: start -->", f"<!-- {name}: stop -->"
    before, rest = page.read_text("utf-8").split(start)
    page.write_text(f"{before}{start}\n{text}\n{stop}{rest.split(stop)[1]}", "utf-8")
