"""The page of tests for each point of the interface is up to date, and a gap is found."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "interface_coverage.py"
NUMBERS = [n for n in range(1, 33) if n not in (25, 26, 27)]


def run(tests, page):
    """Run the script over a folder of tests."""
    command = [sys.executable, SCRIPT, "--tests", tests, "--page", page]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path):
    """A folder of tests in which every point that must have a test has one."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_all.py").write_text(
        "import pytest\n"
        + "".join(f"@pytest.mark.point({n})\ndef test_{n}():\n    pass\n" for n in NUMBERS)
    )
    return tests


def test_the_page_is_what_the_script_writes(tmp_path):
    """Whether or not every point has a test by now."""
    page = tmp_path / "page.md"
    done = run(ROOT / "tests", page)
    assert done.returncode in (0, 1), done.stderr
    committed = ROOT / "docs" / "development" / "interface-coverage.md"
    assert committed.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), (
        "run python .ci/interface_coverage.py"
    )


def test_no_gap(folder, tmp_path):
    done = run(folder, tmp_path / "page.md")
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "page.md").read_text()
    assert text.count("Later.") == 3
    for n in NUMBERS:
        assert f"- `tests/test_all.py::test_{n}`\n" in text


@pytest.mark.parametrize("gap", [1, 24, 32])
def test_a_point_without_a_test_fails(folder, tmp_path, gap):
    file = folder / "test_all.py"
    file.write_text(file.read_text().replace(f"point({gap})", f"point({gap % 23 + 2})"))
    done = run(folder, tmp_path / "page.md")
    assert done.returncode == 1
    assert done.stderr.startswith(f"no test shows point {gap}: ")
    assert done.stderr.count("\n") == 1
    assert "No test yet." in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("gap", [25, 26, 27])
def test_a_later_point_may_have_tests(folder, tmp_path, gap):
    (folder / "test_more.py").write_text(f"@pytest.mark.point({gap})\ndef test_it(): ...\n")
    assert run(folder, tmp_path / "page.md").returncode == 0
    assert (tmp_path / "page.md").read_text().count("Later.") == 2


def test_where_marks_may_stand(folder, tmp_path):
    """On functions, classes, cases of a parametrisation, and modules, which are not imported."""
    (folder / "inner").mkdir()
    (folder / "inner" / "test_more.py").write_text(
        "import nothing_of_that_name\n"
        "pytestmark = [pytest.mark.slow, pytest.mark.point(1)]\n"
        "@pytest.mark.point(2, 3)\n"
        "class TestIt:\n"
        "    @pytest.mark.point(4)\n"
        "    def test_a(self): ...\n"
        "    def no_test(self): ...\n"
        "@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.point(5))])\n"
        "async def test_b(x): ...\n"
    )
    assert run(folder, tmp_path / "page.md").returncode == 0
    sections = (tmp_path / "page.md").read_text().split("### ")[1:]
    more = {
        int(section.split(".")[0]): [
            line[3:-1].split("::", 1)[1]
            for line in section.splitlines()
            if line.startswith("- `tests/inner/test_more.py")
        ]
        for section in sections
    }
    both = ["TestIt::test_a", "test_b"]
    assert [more[n] for n in range(1, 7)] == [both, *[both[:1]] * 3, both[1:], []]


@pytest.mark.parametrize("wrong", [0, 33, -1, "'9'"])
def test_a_point_that_does_not_exist(folder, tmp_path, wrong):
    (folder / "test_more.py").write_text(f"@pytest.mark.point({wrong})\ndef test_it(): ...\n")
    done = run(folder, tmp_path / "page.md")
    assert done.returncode == 1
    assert f"tests/test_more.py::test_it is marked with a point {wrong}: no such" in done.stderr
