"""The examples and scripts of the pages run and print what they say; files they name exist."""

import doctest
import os
import re
import sys
from pathlib import Path

import pytest

from fences import read_fences
from making import run_python
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.device import n_devices

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.glob("**/*.md") if ">>> " in page.read_text(encoding="utf-8"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MADE = re.compile(r"docs/(tutorials/.*ipynb|(examples|generated|reference/generated|_build)\b)")
"""Files that exist once the documentation was built, and not in a clone."""
FOLDERS = (".github", "asv_bench", "docs", "notebooks", "scripts")
FILES = sorted(
    file
    for file in [*ROOT.glob("*.md"), *(f for d in FOLDERS for f in (ROOT / d).rglob("*.md"))]
    if not MADE.match(str(file.relative_to(ROOT)))
)


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


@pytest.mark.full
@pytest.mark.parametrize("page", ["operations/clusters.md", "running/frisky.md"])
def test_the_script_of_a_page_on_clusters(page, tmp_path):
    if "frisky" in page:
        pytest.importorskip("frisky")
    page = DOCS / "user-guide" / page
    (script,) = [fence.text for fence in read_fences(page) if "# script.py" in fence.text]
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    done = run_python("script.py", cwd=tmp_path)
    assert done.stdout == "(96, 96)\n"
    assert "100%" in done.stderr.rpartition("\r")[2]  # the progress bar, at its end


@pytest.mark.full
def test_the_session_with_the_debugger(tmp_path):
    fences = [f.text for f in read_fences(DOCS / "user-guide/operations/debugging.md")]
    (script,) = [text for text in fences if text.startswith("# contrast.py")]
    (session,) = [text for text in fences if text.startswith("> contrast.py(")]
    (tmp_path / "contrast.py").write_text(script)
    typed = re.compile(r"^(\(Pdb\) )(.*)\n", flags=re.MULTILINE)
    lines = "".join(f"{line}\n" for _, line in typed.findall(session))
    done = run_python("contrast.py", cwd=tmp_path, input=lines)
    shown = typed.sub(r"\1", session).replace("> contrast.py", f"> {tmp_path}/contrast.py")
    checker = doctest.OutputChecker()
    assert checker.check_output(shown.strip(), done.stdout.strip(), FLAGS), done.stdout


def test_the_script_of_the_drawings_writes_what_is_committed(tmp_path):
    folder = DOCS / "drawings"
    run_python(folder / "draw.py", tmp_path)
    written = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_bytes() for file in folder.glob("*.svg")}


def test_source_files_that_are_named_exist():
    named = [
        (page, name)
        for page in [*sorted(DOCS.glob("**/*.md")), ROOT / "README.md"]
        for name in re.findall(
            r"`(?:python )?([\w/]+/[\w/]*(?:\.py|/))[ `]", page.read_text("utf-8")
        )
    ]
    folders = (ROOT, ROOT / "udfdask")
    assert not [one for one in named if not any((folder / one[1]).exists() for folder in folders)]


def text_of(page):
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def anchors(page):
    """The anchors that GitHub and Sphinx give to the headings of a page."""
    titles = re.findall(r"^#+ +(.*?)\s*$", text_of(page), flags=re.MULTILINE)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)|[`*]", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in plain}


def test_links_between_files_of_the_clone_hold():
    """`.ci/links.py` looks at those of the built pages."""
    found = {page: anchors(page) for page in FILES}
    dead = []
    for page in FILES:
        for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", text_of(page)):
            target = Path(os.path.normpath(page.parent / link)) if link else page
            is_there = target.exists() and not MADE.match(str(target.relative_to(ROOT)))
            if not is_there or (anchor and anchor not in found[target]):
                dead.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")
    assert not dead
