"""The lists of `backend_exceptions` only name tests that exist."""

import ast
from pathlib import Path

import pytest

from backend_exceptions import MATRIX_TESTS, UNCHANGED

FOLDERS = {"udfs": "udfs", "interface": "udf/interface"}
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", sorted({*UNCHANGED, *MATRIX_TESTS}))
def test_a_name_in_a_list(name):
    file, _, function = name.partition("::")
    folder, _, stem = file.partition("/")
    tree = ast.parse((TESTS / FOLDERS[folder] / f"{stem}.py").read_text())
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert function in there or (not function and name in UNCHANGED)


def test_a_test_is_in_one_list():
    assert not UNCHANGED.keys() & MATRIX_TESTS
    assert not [name for name in MATRIX_TESTS if name.partition("::")[0] in UNCHANGED]
