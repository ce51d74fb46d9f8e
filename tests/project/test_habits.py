"""What people who join read: the same commands as the README, the version, and each dependency."""

import ast
import re
import runpy
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
    for line in (DOCS / "development" / "dependencies.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] not in {"package", "---"}:
            extras = re.sub("`", "", cells[1]).split(", ") if len(cells) == 3 else [""]
            assert len(cells[-1]) > 5
            listed[cells[0]] = set(extras)
    assert listed == required()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/development/releasing.md"])
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


def test_the_page_on_citing_agrees_with_the_citation_file():
    citation = read_yaml(ROOT / "CITATION.cff")
    (author,) = [one["name"] for one in citation["authors"]]
    page = " ".join((DOCS / "cite.md").read_text("utf-8").replace("\n>", "").split())
    title = f"{citation['title']}: {citation['abstract']}"
    in_words = f"{author}. *{title}*. Version {citation['version']}. {citation['license']}."
    assert in_words in page
    for entry in (f"author = {{{{{author}}}}}", f"title = {{{title}}}"):
        assert entry in page
    assert f"version = {{{citation['version']}}}" in page


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


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def steps_of(workflow):
    """Each step of a workflow with the name of its job."""
    return [(name, step) for name, job in workflow["jobs"].items() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_complete(path):
    workflow = read_yaml(path)
    assert workflow["name"] == path.stem
    assert workflow["permissions"] == {"contents": "read"}
    events = workflow[True]  # YAML reads the key `on` as a truth value
    assert events.keys() <= {"push", "pull_request", "schedule", "workflow_dispatch"}
    for one in events.get("schedule", []):
        assert re.fullmatch(r"\d+ \d+ (\S+ ){2}[0-6]", one["cron"]), one  # once a week
    for name, job in workflow["jobs"].items():
        assert "runs-on" in job, name
        assert job["steps"][0]["uses"].startswith("actions/checkout@"), name
    for name, step in steps_of(workflow):
        assert ("run" in step) != ("uses" in step), name
        assert re.fullmatch(r"actions/[\w/-]+@v\d+", step.get("uses", "actions/none@v0")), step


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_what_there_is(path):
    for name, step in steps_of(read_yaml(path)):
        run = step.get("run", "")
        for word in re.findall(r"(?<![\w./])(?:tests|docs|asv_bench|\.ci)/[\w./-]+\.\w+", run):
            if not word.startswith("docs/_build"):
                assert (ROOT / word).exists(), (name, word)
        for extras in re.findall(r'"?\.\[([\w,]+)\]', run):
            assert set(extras.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()
        version = str(step.get("with", {}).get("python-version", "3.11"))
        assert version.startswith("$") or f"Python :: {version}" in str(PROJECT), (name, version)


def test_all_supported_versions_of_python_are_tested():
    tested = read_yaml(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    supported = re.findall(r"Python :: (3\.\d+)", str(PROJECT["project"]["classifiers"]))
    assert tested["python"] == supported
    assert PROJECT["project"]["requires-python"] == f">={supported[0]}"


def test_the_benchmarks_that_a_pull_request_compares_exist():
    workflow = read_yaml(ROOT / ".github/workflows/benchmarks.yml")
    (command,) = [step["run"] for _, step in steps_of(workflow) if "continuous" in str(step)]
    compared = re.search(r'--bench "([\w|]+)"', command)[1].split("|")
    classes = {
        node.name
        for file in (ROOT / "asv_bench/benchmarks").glob("*.py")
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    assert set(compared) <= classes
    factor = re.search(r"--factor ([\d.]+)", command)[1]
    page = (DOCS / "benchmarks/over-time.md").read_text("utf-8")
    assert f"fails if one of them is {factor} times" in " ".join(page.split())


OLDEST = runpy.run_path(str(ROOT / ".ci/oldest_versions.py"))


def test_oldest_versions_are_those_of_the_project(capsys):
    OLDEST["main"](["test"])
    lines = capsys.readouterr().out.split()
    assert lines == sorted(lines)
    limits = set(
        re.findall(r'"([\w.-]+)(?:\[.*?\])?>=([\d.]+)', (ROOT / "pyproject.toml").read_text())
    )
    limits -= {("hatchling", "1.27")}  # it builds, and is not installed
    limits |= {("distributed", version) for name, version in limits if name == "dask"}
    assert {tuple(re.sub(r"(\.0)+$", "", line).split("~=")) for line in lines} == limits
    OLDEST["main"]([])
    assert {line.split("~=")[0] for line in capsys.readouterr().out.split()} == {
        "dask",
        "numba",
        "numpy",
    }


@pytest.mark.parametrize(
    ("requirements", "extras", "expected"),
    [
        (["dask[array]>=2025.12", "scipy"], [], {"dask": "2025.12"}),
        (
            ["dask[array]>=2025.12"],
            ["all"],
            {"dask": "2025.12", "distributed": "2025.12", "zarr": "3"},
        ),
        ([], ["io"], {"zarr": "3"}),
    ],
)
def test_oldest_versions_of_requirements(requirements, extras, expected):
    optional = {"io": ["h5py", "zarr>=3"], "distributed": ["dask[distributed]>=2025.12"]}
    optional["all"] = ["own[io,distributed,all]"]
    project = {"name": "own", "dependencies": requirements, "optional-dependencies": optional}
    assert OLDEST["oldest"](project, extras) == expected


def test_oldest_versions_refuse_what_they_do_not_understand():
    project = {"name": "own", "dependencies": ["numpy>=2,!=2.2"], "optional-dependencies": {}}
    with pytest.raises(SystemExit, match=r"'numpy>=2,!=2\.2' is not NAME"):
        OLDEST["oldest"](project, [])
    with pytest.raises(SystemExit, match="no such extras: nothing"):
        OLDEST["oldest"](project, ["nothing"])


@pytest.mark.parametrize(
    ("version", "first"), [("3", "3.0.0"), ("2.1", "2.1.0"), ("1.2.3", "1.2.3")]
)
def test_the_minor_version_is_kept(version, first):
    assert OLDEST["compatible"](version) == first


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started/install.md"])
def test_tables_of_extras_have_each_extra(page):
    wanted = set(PROJECT["project"]["optional-dependencies"]) - {"bench", "dev", "docs", "test"}
    cells = re.findall(r"\| `([a-z0-9-]+)` \|", (ROOT / page).read_text("utf-8"))
    assert sorted(cells) == sorted(wanted)
