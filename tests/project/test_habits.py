"""What people who join read: the same commands as the README, the version, and each dependency."""

import re
import tomllib
from pathlib import Path

import pytest

import udfdask as ud
from fences import read_fences

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def read_yaml(path):
    return pytest.importorskip("yaml", reason="dask brings it").safe_load(path.read_text("utf-8"))


def package(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower()


def required():
    """The extras that install each package; "" for those that are always installed."""
    project = PROJECT["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, set[str]] = {"hatchling": {"to build"}}
    for extra, requirements in lists.items():
        for name in map(package, requirements):
            if name != "udfdask" and not (name == "dask" and extra):
                found.setdefault(name, set()).add(extra)
    return found


def test_each_dependency_has_a_reason():
    assert [package(one) for one in PROJECT["build-system"]["requires"]] == ["hatchling"]
    listed = {}
    for line in (DOCS / "dependencies.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] not in {"package", "---"}:
            extras = re.sub("`", "", cells[1]).split(", ") if len(cells) == 3 else [""]
            assert len(cells[-1]) > 5
            listed[cells[0]] = set(extras)
    assert listed == required()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/releasing.md"])
def test_commands_of_the_readme_are_quoted_word_for_word(page):
    fences = read_fences(ROOT / "README.md")
    (tests,) = [one.text for one in fences if one.text.strip().endswith("-m pytest -n 2")]
    assert page != "CONTRIBUTING.md" or tests in (ROOT / page).read_text("utf-8")
    for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", (ROOT / page).read_text("utf-8")):
        assert (ROOT / page).parent.joinpath(link).exists(), link


def test_citation_is_valid_and_names_this_version():
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # all that must be
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["version"] == ud.__version__
    project = PROJECT["project"]
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["abstract"] == project["description"]
    assert [{"name": one["name"]} for one in project["authors"]] == citation["authors"]


@pytest.mark.parametrize("name", ["bug", "question"])
def test_issue_forms_are_valid(name):
    form = read_yaml(ROOT / ".github/ISSUE_TEMPLATE" / f"{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert {one["type"] for one in fields} == {"textarea"}
    assert len({one["id"] for one in fields}) == len(fields)
    assert all(one["attributes"]["label"] for one in fields)
    assert any(one["validations"]["required"] for one in fields if "validations" in one)


def test_a_bug_report_has_what_explain_says():
    form = read_yaml(ROOT / ".github/ISSUE_TEMPLATE/bug.yml")
    assert "explain" in [one.get("id") for one in form["body"]]
    assert "udfdask.explain(array, udf)" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
