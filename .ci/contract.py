"""Compare the tests that are the contract with those of the commit that froze them.

Nothing in them may change but imports, where modules are found, and what belongs to a removed
feature, which `.ci/contract.toml` lists with the reason. Run it as ``python .ci/contract.py``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CONTRACT = tomllib.loads((ROOT / ".ci/contract.toml").read_text())


class Statement(NamedTuple):
    """A top-level statement of a test file, without imports and positions."""

    name: str
    content: str


class _WithoutImports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None


def statements(source: str) -> Iterator[Statement]:
    """Yield what a test file says, in order."""
    for node in _WithoutImports().visit(ast.parse(source)).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node
        name = getattr(target, "name", None) or getattr(target, "id", None)
        yield Statement(name or ast.unparse(node).partition("\n")[0][:60], ast.dump(node))


def git(*arguments: str) -> str:
    """Return what git prints."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def frozen_text(path: str) -> str:
    """Return a file of the frozen commit with today's names."""
    text = git("show", f"{CONTRACT['commit']}:{path}")
    for old, new in CONTRACT["renamed"].get(path, {}).items():
        text = text.replace(old, new)
    return text


def frozen_files() -> list[str]:
    """Return the paths of the test files in the frozen commit."""
    paths = git("ls-tree", "-r", "--name-only", CONTRACT["commit"], "tests").splitlines()
    return [
        path
        for path in paths
        if any(PurePosixPath(path).match(pattern) for pattern in CONTRACT["files"])
        and not any(PurePosixPath(path).match(pattern) for pattern in CONTRACT["left_out"])
    ]


def differences(path: str) -> Iterator[str]:
    """Yield the names of the statements of a frozen file that are not in it any more."""
    removed = CONTRACT["removed"].get(path, {})
    before = list(statements(frozen_text(path)))
    place = ROOT / CONTRACT["moved"].get(path, path)
    now = Counter(statements(place.read_text())) if place.exists() else Counter()
    for one in before:
        if now[one]:
            now[one] -= 1
        elif one.name not in removed and "*" not in removed:
            yield one.name


def main() -> int:
    """Print what differs; return 1 if anything does."""
    paths = frozen_files()
    lines = sum(git("show", f"{CONTRACT['commit']}:{path}").count("\n") for path in paths)
    missing = [(path, name) for path in paths for name in differences(path)]
    for path, name in missing:
        print(f"{path}: {name} was changed or removed")
    removed = sum(len(names) for names in CONTRACT["removed"].values())
    print(
        f"contract of {CONTRACT['commit']}: {len(paths)} files, {lines} lines, "
        f"{removed} statements of removed features, {len(missing)} other changes"
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
