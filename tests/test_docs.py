"""The examples in the documentation pages run and print what they say."""

import doctest
from pathlib import Path

import pytest

from fences import read_fences

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(page for page in DOCS.glob("**/*.md") if ">>> " in page.read_text(encoding="utf-8"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page):
    names = {"__name__": page.stem}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for fence in read_fences(page):
        if ">>> " not in fence.text:
            continue
        parse = doctest.DocTestParser().get_doctest
        example = parse(fence.text, names, page.name, str(page), fence.lineno)
        runner.run(example, out=report.append, clear_globs=False)
        names.update(example.globs)
    assert not report, "".join(report)


def test_there_are_examples():
    assert "udfs" in [page.stem for page in PAGES]
