"""Tables of extras, and the oldest versions that the tests install."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
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
