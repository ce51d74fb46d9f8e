"""Pages are easy to read, say first what they are for, and use the words of the field."""

import ast
import re
from pathlib import Path

import pytest

from prose import PROSE, figures, pages, plain, read_blocks, read_page, sentences, syllables, words

ROOT = Path(__file__).resolve().parents[2]
PAGES = {str(page.relative_to(ROOT)): page for page in pages(ROOT)}

# not pages of the guide: a list of changes, a text that many projects share, a table that is made
OTHERS = {
    *("CHANGELOG.md", "docs/changelog.md", "CODE_OF_CONDUCT.md"),
    "docs/development/interface-coverage.md",
}
READ = sorted(PAGES.keys() - OTHERS)

# Before they were divided and rewritten, half of the 37 pages were above 5.9, a quarter above 6.5.
MAX_GRADE = 6.5
MAX_WORDS = 35  # of a sentence
MAX_SHARE_OF_LONG = 0.1  # sentences of more than 25 words
FEW = 100  # words; figures of shorter texts say little

# words of our own, and what other projects say
OWN_WORDS = {
    r"doors?": "accessor, entry point",
    r"payloads?": "partial results",
    r"turned round": "byte-swapped",
    r"(?:lets?|letting) go of": "release",
    r"weighs": "size in bytes",
    r"beside": "next to, with, compared with",
    r"shall|whoever|upon": "(plain words)",
    r"as far as": "(plain words)",
    r"discs?": "disk",
    r"(?:is|are|be) told": "is called, gets",
    r"spreading": "standard deviation",
    r"output tasks?": "fusion barrier",
    r"what becomes of": "what happens to",
}
OWN_WORD = re.compile(rf"\b(?:{'|'.join(OWN_WORDS)})\b", re.IGNORECASE)


@pytest.mark.parametrize("name", READ)
def test_a_page_is_easy_to_read(name):
    found = figures(PAGES[name])
    assert len(words(found.longest)) <= MAX_WORDS, found.longest
    if found.n_words >= FEW:
        assert found.grade <= MAX_GRADE
        assert found.long <= MAX_SHARE_OF_LONG


@pytest.mark.parametrize("name", READ)
def test_a_page_begins_with_what_it_is_for(name):
    blocks = [one for one in read_blocks(read_page(PAGES[name])) if one.kind != "mark"]
    assert [one.kind for one in blocks[:2]] == ["heading", "paragraph"]
    text = plain(blocks[1].text)
    assert 8 <= len(words(text)) <= 60, text
    assert "The tests run" not in text, "about the project, not about the page"


def our_texts():
    """The prose of pages, and docstrings and messages of the package, with their places."""
    for name in READ:
        for block in read_blocks(read_page(PAGES[name])):
            if block.kind in {*PROSE, "heading", "table"}:
                yield f"{name}:{block.line}", plain(block.text)
    for file in sorted((ROOT / "udfdask").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield f"{file.relative_to(ROOT)}:{node.lineno}", plain(node.value)


def test_words_of_our_own_are_not_used():
    found = [(place, one[0]) for place, text in our_texts() for one in OWN_WORD.finditer(text)]
    assert not found


@pytest.mark.parametrize("text", ["a door of dask", "Payloads are sent", "It is told", "a disc"])
def test_own_words_are_found(text):
    assert OWN_WORD.search(text)


def test_prose_is_read_without_code_tables_and_links(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "---\nkey: value\n---\n\n# Masks\n\n"
        "A [mask](masks.md) of `uint8`.\nIt is small, e.g. 3.5 kB. See below.\n"
        "\n```python\n>>> long code here\n```\n\n| a | table |\n| --- | --- |\n\n- one item\n"
        "  goes on\n- another\n\n:::{note}\n:class: dropdown\nA note.\n:::\n\n"
        "```{glossary}\nscan\n  The grid.\n```\n"
    )
    blocks = read_blocks(read_page(page))
    assert [(one.kind, one.text) for one in blocks if one.kind in {*PROSE, "heading"}] == [
        ("heading", "Masks"),
        (
            "paragraph",
            "A [mask](masks.md) of `uint8`. It is small, e.g. 3.5 kB. See below.",
        ),
        ("item", "one item goes on"),
        ("item", "another"),
        ("paragraph", "A note."),
        ("paragraph", "scan The grid."),
    ]
    assert sentences(plain(blocks[1].text)) == [
        "A mask of \N{WHITE SQUARE}.",
        "It is small, e.g. 3.5 kB.",
        "See below.",
    ]
    found = figures(page)
    assert found.n_words == 4 + 6 + 2 + 4 + 1 + 2 + 3
    assert (found.long, found.longest) == (0, "It is small, e.g. 3.5 kB.")


def test_the_figures_are_those_of_flesch_and_kincaid(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nThe detector counts electrons. Each position has a frame.\n")
    found = figures(page)  # 9 words with 15 syllables in 2 sentences
    assert found.ease == pytest.approx(206.835 - 1.015 * 9 / 2 - 84.6 * 15 / 9)
    assert found.grade == pytest.approx(0.39 * 9 / 2 + 11.8 * 15 / 9 - 15.59)


@pytest.mark.parametrize(
    ("word", "n"),
    [
        *[("file", 1), ("files", 1), ("table", 2), ("handles", 2), ("needed", 2), ("used", 1)],
        *[("position", 3), ("radius", 3), ("changes", 2), ("the", 1), ("frames", 1)],
    ],
)
def test_syllables(word, n):
    assert syllables(word) == n
