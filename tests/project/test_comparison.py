"""Pages that compare libraries quote measured numbers, and quote them as they were measured."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text, marker):
    """The rows of the first table after a marker, by the names of columns."""
    after = text.partition(marker)[2]
    found = re.search(r"^\|.*?(?=^(?!\|)|\Z)", after, flags=re.MULTILINE | re.DOTALL)
    assert found, f"no table after {marker}"
    head, _, *lines = found[0].strip().splitlines()
    return [dict(zip(cells(head), cells(line), strict=True)) for line in lines]


def measured(name):
    """The rows that a script of `asv_bench` wrote between its marks, on whatever page."""
    mark = f"<!-- {name}: start -->"
    (text,) = [page for page in (p.read_text("utf-8") for p in PAGES) if f"\n{mark}\n" in page]
    return rows(text, mark)


def quoted(path, name):
    return rows((ROOT / path).read_text("utf-8"), f"<!-- table: {name} -->")


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("docs/getting-started/why.md", "peers"),
        ("README.md", "peers"),
    ],
)
def test_quoted_numbers_are_those_of_the_measured_table(page, name):
    table = measured(name)
    wanted = quoted(page, name)
    assert wanted
    for row in wanted:
        found = [one for one in table if row.items() <= one.items()]
        assert found, f"{page} says {row}: quote the row of the measured table"
