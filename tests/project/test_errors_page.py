"""docs/errors.md has each public error class, and quotes messages that the code still has."""

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest

import udfdask as ud
from udfdask import errors

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "errors.md"


def read_tables():
    """The rows of each section of the page, without the headings of its table."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    tables = {}
    for section in sections:
        title, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        tables[title] = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    return tables


TABLES = read_tables()
CLASSES = dict(inspect.getmembers(errors, inspect.isclass))
QUOTED = [row[0] for title, rows in TABLES.items() if title != "Classes" for row in rows]


@pytest.fixture(scope="module")
def texts():
    """All texts in the code of udfdask but docstrings; what is filled in later is a zero character."""
    found = []
    for file in (ROOT / "udfdask").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", None) for part in node.values]
                found.append("".join(one if isinstance(one, str) else "\0" for one in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_each_class_has_a_row():
    rows = {name.strip("`"): base.strip("`") for name, base, _ in TABLES["Classes"]}
    assert rows.keys() == {cls.__name__ for cls in CLASSES.values()}
    assert rows.keys() == {n for n in ud.__all__ if n.endswith(("Error", "Warning", "Cancelled"))}


def test_classes_are_what_their_rows_say():
    known = {**vars(builtins), **CLASSES}
    for name, base, _ in TABLES["Classes"]:
        assert issubclass(CLASSES[name.strip("`")], known[base.strip("`")]), name


def test_each_quoted_message_is_in_the_code(texts):
    assert len(QUOTED) >= 50
    parts = [re.fullmatch(r"`(.+)`", cell)[1] for cell in QUOTED]
    assert [part for part in parts if part not in texts] == []


def test_each_message_is_there_once_with_cause_and_cure():
    assert len(set(QUOTED)) == len(QUOTED)
    for rows in TABLES.values():
        assert all(len(row) == 3 and all(row) for row in rows)
