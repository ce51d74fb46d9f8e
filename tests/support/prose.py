"""Reads the prose of Markdown pages and notebooks, and tells how hard it is to read.

As a script, `python tests/support/prose.py` prints the figures of each page, the hardest first.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

# directives whose content is prose; that of others is code, a picture, or a list of pages
PROSE_DIRECTIVES = (
    *("glossary", "note", "tip", "warning", "important", "admonition", "seealso"),
    *("grid", "tab", "dropdown"),
)
PROSE = {"paragraph", "item"}  # kinds of blocks
CODE = "\N{WHITE SQUARE}"  # stands for code, formulas and addresses
NAMES = "udfdask|dask|numba|xarray|pyxem"  # begin a sentence in lower case
SHORT = {"e.g.", "i.e.", "vs.", "etc.", "cf.", "approx.", "al.", "Fig.", "Eq.", "Dr."}


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph, an item of a list, a table row, or what is not prose."""

    kind: str  # "heading", "paragraph", "item", "table", "other"
    text: str
    line: int  # from 1


def read_page(page: Path) -> str:
    """The Markdown text of a page; of a notebook, the text of its Markdown cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":  # without front matter, but with as many lines
        return re.sub(
            r"\A---\n.*?\n---\n", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL
        )
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts)


def read_line(line: str) -> tuple[str, str]:
    """The kind of a line outside of code, and its text."""
    patterns = {
        "heading": r"#+ +(.*)",
        "table": r"(\|.*)",
        "mark": r"(<!--.*|\(.*\)=|\+\+\+|:[\w-]+:.*|)$",  # comments, anchors, options of directives
        "item": r"(?:[-*+:]|\d+\.) +(.*)",
    }
    for kind, pattern in patterns.items():
        if match := re.match(pattern, line):
            return kind, match[1]
    return "paragraph", line


def read_blocks(text: str) -> list[Block]:
    """The blocks of a Markdown text, from top to bottom."""
    blocks: list[Block] = []
    fences: list[tuple[str, bool]] = []  # the marks of open fences, and whether they hold prose
    goes_on = False  # whether the next line may belong to the last block
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if fences and line == fences[-1][0]:
            fences.pop()
            goes_on = False
        elif fences and not fences[-1][1]:
            continue
        elif opened := re.match(r"(`{3,}|:{3,})\s*(?:\{([\w-]+)\})?", line):
            directive = opened[2] or ""
            prose = directive.startswith(PROSE_DIRECTIVES)
            fences.append((opened[1], prose))
            if not prose:
                blocks.append(Block("other", directive, number))
            goes_on = False
        else:
            kind, words_of_line = read_line(line)
            if kind == "paragraph" and goes_on:
                last = blocks.pop()
                blocks.append(Block(last.kind, f"{last.text} {words_of_line}", last.line))
            elif words_of_line:
                blocks.append(Block(kind, words_of_line, number))
            goes_on = kind in PROSE
    return blocks


def plain(text: str) -> str:
    """The text as it is read aloud: links by their words, code by one sign."""
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"(?:\{[\w:-]+\})?`+[^`]+`+|\$[^$]+\$", CODE, text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<?https?://\S+>?", CODE, text)
    text = re.sub(r"\b[\w-]+(?:/[\w.-]+)+|\b[\w-]+\.(?:md|py|ipynb|toml)\b", CODE, text)
    return re.sub(r"\*\*?|(?<!\w)_|_(?!\w)|<[^>]+>", "", text)


def words(text: str) -> list[str]:
    """The words of a plain text, with what stands for code; numbers are no words."""
    return re.findall(rf"[A-Za-z]+(?:['\u2019][a-z]+)?|{CODE}", text)


def sentences(text: str) -> list[str]:
    """The sentences of a plain text."""
    found, start = [], 0
    ends = rf"[.!?]['\")]?(?=\s+[\"'(]?(?:[A-Z0-9{CODE}]|(?:{NAMES})\b)|\s*$)"
    for end in re.finditer(ends, text):
        one = text[start : end.end()]
        if one.rsplit(maxsplit=1)[-1] not in SHORT:
            found.append(one.strip())
            start = end.end()
    return [one for one in [*found, text[start:].strip()] if words(one)]


def syllables(word: str) -> int:
    """About how many syllables a word has: groups of vowels, without a mute e."""
    word = re.sub(r"[^a-z]", "", word.lower())
    n = len(re.findall(r"[aeiouy]+", word)) + len(re.findall(r"(?<![tscgx])i[aou]", word))
    if re.search(r"[^aeiouy]l(e|es|ed)$", word):
        return n  # table, handles
    if re.search(r"[^aeiouy]e$|[^aeiouytd]ed$|[^aeiouysxzcgh]es$", word):
        n -= 1
    return max(1, n)


@dataclass(frozen=True)
class Figures:
    """How hard a page is to read."""

    n_words: int
    ease: float  # Flesch reading ease: 100 is very easy, 30 is hard
    grade: float  # Flesch-Kincaid grade: years at school
    long: float  # share of sentences of more than 25 words
    longest: str


def figures(page: Path) -> Figures:
    """The figures of a page, from its paragraphs and lists."""
    texts = [plain(one.text) for one in read_blocks(read_page(page)) if one.kind in PROSE]
    found = [one for text in texts for one in sentences(text)]
    counts = [len(words(one)) for one in found]
    spoken = [word for one in found for word in words(one) if word != CODE]
    if not spoken:
        return Figures(0, 100.0, 0.0, 0.0, "")
    per_sentence = sum(counts) / len(found)
    per_word = sum(map(syllables, spoken)) / len(spoken)
    return Figures(
        sum(counts),
        206.835 - 1.015 * per_sentence - 84.6 * per_word,
        0.39 * per_sentence + 11.8 * per_word - 15.59,
        sum(n > 25 for n in counts) / len(counts),
        max(found, key=lambda one: len(words(one))),
    )


def pages(root: Path) -> list[Path]:
    """All pages of the documentation, with the README, and the notebooks."""
    made = {root / "docs" / folder for folder in ("_build", "examples")}
    found = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("notebooks/*.ipynb")]
    return sorted(page for page in found if not made & {*page.parents})


def report(root: Path) -> str:
    """A table of the figures of all pages, hardest first."""
    lines = ["grade  ease  >25 words  longest  words  page"]
    found = {page: figures(page) for page in pages(root)}
    for page in sorted(found, key=lambda page: -found[page].grade):
        one, name = found[page], page.relative_to(root)
        n = len(words(one.longest))
        lines.append(
            f"{one.grade:5.1f} {one.ease:5.0f} {one.long:10.0%} {n:8} {one.n_words:6}  {name}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    sys.stdout.write(report(place) + "\n")
