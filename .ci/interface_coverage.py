"""Write `tests/interface-coverage.md`: which tests show which point of the interface.

Tests say so themselves with `@pytest.mark.point(9, 10)`, on a function, a class, or a whole module
(`pytestmark`). They are read and not imported. The status is 1 if a point has no test.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "tests" / "interface-coverage.md"

TOPICS = {
    "Life of a UDF": {
        1: "Parameters, and instances made anew from them",
        2: "What runs on a worker, in which order, and what exists by then",
        3: "preprocess where merging begins",
        4: "The user's instance stays as it is, and can be run again",
        5: "Attributes of `__init__`, mixins, classes that travel",
        6: "Which processing method runs",
        7: "Exceptions keep their type",
    },
    "Buffers": {
        8: "What `buffer()` declares: kinds, dtypes, extra axes, use",
        9: "Shapes of the views",
        10: "Assignment, access, and names",
        11: "Rules for private, result_only and undeclared buffers",
        12: "What a result holds: shapes, fills, `.raw`, `.masked`",
        13: "`get_results`",
        14: "Valid masks",
    },
    "Merging": {
        15: "The default merge",
        16: "What `merge` is given and can ask",
        17: "`merge_all`",
    },
    "Meta": {
        18: "The dtype of the input",
        19: "Slices, coordinates, shapes and the rest of `meta`",
        20: "Tiling preferences",
    },
    "Shapes and regions": {
        21: "Numbers of axes, and arrays that cannot be processed",
        22: "Forms of a region of interest",
        23: "An empty region of interest",
    },
    "Side data and array types": {
        24: "Data that go along with the frames",
        25: "Names of array backends",
        26: "Choice of a backend, and conversion",
        27: "Results from any backend: `forbuf`, `xp`, `where`",
    },
    "Progressive runs": {
        28: "Snapshots while a run goes on, and how it ends early",
        29: "Parameters that change on the way",
        30: "The last snapshot is the result",
    },
    "Names and class attributes": {
        31: "Names that ported code imports",
        32: "Optional class attributes",
    },
}
POINTS = {number: title for points in TOPICS.values() for number, title in points.items()}
LATER = frozenset({25, 26, 27})

HEAD = """\
# The interface and its tests

What a UDF may rely on has 32 points. These are the tests that show each of them. The page is
written by `.ci/interface_coverage.py`, from the marks `@pytest.mark.point(...)` on the tests.
"""


def marks(node: ast.AST) -> Iterator[int]:
    """Numbers in the calls of `pytest.mark.point` inside an expression."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.point":
            for number in call.args:
                yield ast.literal_eval(number)


def tests_of(body: list[ast.stmt], outer: frozenset[int]) -> Iterator[tuple[str, frozenset[int]]]:
    """Names of tests, with the points on them and on what they are in."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own = outer | {n for mark in node.decorator_list for n in marks(mark)}
            if isinstance(node, ast.ClassDef):
                if node.name.startswith("Test"):
                    for name, points in tests_of(node.body, own):
                        yield f"{node.name}::{name}", points
            elif node.name.startswith("test"):
                yield node.name, own


def collect(folder: Path) -> dict[int, list[str]]:
    """The tests of every point, as file::name, in the order of the files."""
    found: dict[int, list[str]] = {number: [] for number in POINTS}
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_module = frozenset(
            n
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
            for n in marks(node.value)
        )
        file = path.relative_to(folder.parent).as_posix()
        for name, points in tests_of(tree.body, of_module):
            for number in points:
                if number not in found:
                    raise SystemExit(f"{file}::{name} is marked with a point {number!r}: no such")
                found[number].append(f"{file}::{name}")
    return found


def page(found: dict[int, list[str]]) -> str:
    """The text of the page."""
    lines = [HEAD]
    for topic, points in TOPICS.items():
        lines.append(f"## {topic}\n")
        for number, title in points.items():
            lines.append(f"### {number}. {title}\n")
            if found[number]:
                lines += [f"- `{test}`" for test in found[number]]
            else:
                lines.append("Later." if number in LATER else "No test yet.")
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def missing(found: dict[int, list[str]]) -> list[int]:
    """Points that ought to have a test and have none."""
    return [number for number, tests in found.items() if not tests and number not in LATER]


def main() -> int:
    """Write the page; 1 if a point has no test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=Path, default=ROOT / "tests", help="folder of the tests")
    parser.add_argument("--page", type=Path, default=PAGE, help="file to write")
    asked = parser.parse_args()
    found = collect(asked.tests)
    asked.page.write_text(page(found), encoding="utf-8")
    for number in missing(found):
        print(f"no test shows point {number}: {POINTS[number]}", file=sys.stderr)
    return 1 if missing(found) else 0


if __name__ == "__main__":
    sys.exit(main())
