"""Print requirements that install the oldest versions that pyproject.toml allows.

    python .ci/oldest_versions.py [EXTRA ...]

prints `dask~=2025.12.0` for `dask>=2025.12`, and so on: the oldest minor version with its fixes.
It reads what is always installed and the extras that are named; packages without a lower limit
are left out. pip takes the lines as constraints:

    python .ci/oldest_versions.py test > oldest.txt
    pip install -c oldest.txt ".[test]"
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?:>=(?P<least>[\d.]+)(?:,<[\d.]+)?)?$"
)
WITH_EXTRAS = {"dask": {"distributed": "distributed"}}
"""Packages of an extra of another package that have its version."""


def oldest(project: dict, extras: list[str]) -> dict[str, str]:
    """Return the oldest version of each package that has a lower limit."""
    optional = project["optional-dependencies"]
    unknown = set(extras) - set(optional)
    if unknown:
        sys.exit(f"no such extras: {', '.join(sorted(unknown))}; there are {', '.join(optional)}")
    found: dict[str, str] = {}
    todo, seen = [*project["dependencies"]], set()
    todo += [one for extra in extras for one in optional[extra]]
    while todo:
        text = todo.pop()
        parts = REQUIREMENT.match(text)
        if parts is None:
            sys.exit(f"pyproject.toml: {text!r} is not NAME, NAME[EXTRA] or NAME>=VERSION")
        name, named = parts["name"], (parts["extras"] or "").split(",")
        if name == project["name"]:
            new = set(named) - seen
            seen |= new
            todo += [one for extra in new for one in optional[extra]]
        elif parts["least"]:
            found[name] = parts["least"]
            for extra, package in WITH_EXTRAS.get(name, {}).items():
                if extra in named:
                    found[package] = parts["least"]
    return found


def compatible(version: str) -> str:
    """Return `2025.12.0` for `2025.12`, and `3.0.0` for `3`: `~=` then keeps the minor version."""
    numbers = version.split(".")
    return ".".join(numbers + ["0"] * (3 - len(numbers)))


def main(extras: list[str]) -> None:
    """Print a requirement a line."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    for name, version in sorted(oldest(project, extras).items()):
        print(f"{name}~={compatible(version)}")


if __name__ == "__main__":
    main(sys.argv[1:])
