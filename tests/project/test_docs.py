"""The examples in the documentation pages run and print what they say; files they name exist."""

import ast
import doctest
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

from fences import read_fences
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.device import n_devices

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.glob("**/*.md") if ">>> " in page.read_text(encoding="utf-8"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def cupy_on_any_machine(monkeypatch):
    """CuPy for the pages that import it: NumPy stands in for it where there is no device."""
    if n_devices():
        yield
        return
    with numpy_standing_in_for_cupy() as module:
        monkeypatch.setitem(sys.modules, "cupy", module)
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_examples(page, request):
    if ">>> import cupy" in page.read_text(encoding="utf-8"):
        request.getfixturevalue("cupy_on_any_machine")
    names = {"__name__": page.stem}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for fence in read_fences(page):
        if ">>> " not in fence.text:
            continue
        parse = doctest.DocTestParser().get_doctest
        # a name for each fence: doctest looks up the lines of a traceback by it
        name = f"{page.name}, line {fence.lineno}"
        example = parse(fence.text, names, name, str(page), fence.lineno)
        runner.run(example, out=report.append, clear_globs=False)
        names.update(example.globs)
    assert not report, "".join(report)


def test_there_are_examples():
    assert "basics" in [page.stem for page in PAGES]


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.glob("**/*.md")), ROOT / "README.md"],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_source_files_that_are_named_exist(page):
    named = re.findall(r"`(?:python )?([\w/]+/[\w/]*(?:\.py|/))[ `]", page.read_text("utf-8"))
    missing = [n for n in named if not (ROOT / n).exists() and not (ROOT / "udfdask" / n).exists()]
    assert not missing


def requirements(extras):
    """The names of the packages that udfdask with some extras installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    names, todo = set(), [*project["dependencies"], *(one for e in extras for one in optional[e])]
    while todo:
        name, _, more = re.match(r"([\w.-]+)(\[(.*?)\])?", todo.pop()).groups()
        names.add(name.lower())
        if name == "udfdask":
            todo += [one for extra in more.split(",") for one in optional[extra]]
    return names


def test_the_docs_extra_has_what_documented_modules_import():
    """Otherwise a build in a fresh environment warns that it cannot import them."""
    installed = requirements(["docs"])
    pages = (page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    documented = {name for page in pages for name in re.findall(r"currentmodule:: (\S+)", page)}
    assert "udfdask.testing.strategies" in documented
    for name in documented:
        file = Path(importlib.util.find_spec(name).origin)
        for node in ast.parse(file.read_text("utf-8")).body:
            imported = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module]
            for package in {one.partition(".")[0] for one in imported}:
                known = {"udfdask", *sys.stdlib_module_names, *installed}
                assert package.lower() in known, f"{name} imports {package}"
