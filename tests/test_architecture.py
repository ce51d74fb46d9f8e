"""Imports point down: reads every import statement of udfdask, those inside functions too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "udfdask"

# Lowest first. A room, which is a module or a whole package, may import itself and the rooms
# before it; the lines only group them for reading.
ROOMS = """
errors types
optional stores writing scheduler_options
config per_process shapes axes slices grid roi
backends
numeric on_device
corrections
tiling buffers params nested auxdata meta parameter_copies
tokens
masks threads
udf
udfs
recipe groups declaring preparing partial sources device_tasks instance pieces sparse_pieces
processing
chunk
merge finish blocks
second_pass data_files array_remedies
plan output_task
chunk_layers
shared_recipe placement limits cluster_loss presence pinning
run_layers
chunk_graph merge_graph
result_tasks
graph
reporting
plotting
unwrapping
explanation outputs progress
labels
results
run
mapping resources
progressive
signals
xarray hyperspy dask
io testing demo cluster
cli __main__
""".split()

# The engine knows no single analysis.
ENGINE = ROOMS[ROOMS.index("recipe") : ROOMS.index("results") + 1]
FORBIDDEN = {room: {"udfs"} for room in ENGINE}

# The rooms in which a heavy package may be imported at all.
LABELLED = {"io", "labels", "xarray", "hyperspy", "signals"}
HEAVY = {
    "cupy": {"backends"},
    "cupyx": {"backends"},
    "sparse": {"backends", "masks", "io"},
    "sparseconverter": {"backends"},
    "llvmlite": {"numeric"},
    "numba": {"numeric", "backends"},
    "xarray": LABELLED,
    "hyperspy": LABELLED,
    "rsciio": LABELLED,
    "zarr": LABELLED,
    "h5py": LABELLED,
    "matplotlib": {"plotting"},
    "distributed": {"run", "reporting", "progress", "progressive", "cluster", "cli"},
    "dask": {
        "config",  # dask.config alone: our settings are dask settings
        "parameter_copies",
        "tokens",
        "second_pass",
        "data_files",
        "plan",
        "chunk_layers",
        "output_task",
        "shared_recipe",
        "placement",
        "limits",
        "pinning",
        "run_layers",
        "result_tasks",
        "chunk_graph",
        "merge_graph",
        "graph",
        "labels",
        "results",
        "reporting",
        "progress",
        "run",
        "explanation",
        "outputs",
        "mapping",
        "progressive",
        "signals",
        "xarray",
        "hyperspy",
        "dask",
        "io",
        "testing",
        "demo",
        "cluster",
        "cli",
    },
}

BANNED_NAMES = {"utils", "util", "helpers", "helper", "lib", "misc", "core", "common"}

MODULES = sorted(PACKAGE.glob("**/*.py"))


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


KNOWN = {dotted_name(path) for path in MODULES}


def room_of(module: str) -> str:
    """`udfdask.udfs.sum` is in the room `udfs`; the package root is in none, and that is ''."""
    return module.partition(".")[2].partition(".")[0]


def imports_in(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Line and absolute name of all that `source` imports, relative names resolved.

    The names in a `from` import are modules where such a module exists, and otherwise belong to the
    module they are taken from: `from udfdask import axes` is `udfdask.axes`, `from udfdask import
    UDF` is `udfdask`.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                if level:
                    here = module.split(".")
                    here = here[: len(here) - level + is_package]
                    base = ".".join([*here, *([base] if base else [])])
                for alias in names:
                    full = f"{base}.{alias.name}"
                    yield node.lineno, full if full in KNOWN else base
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def faults(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of `source`, one line each."""
    found = []
    here = room_of(module)
    for lineno, name in imports_in(source, module, is_package=is_package):
        top = name.partition(".")[0]
        where = f"{module}:{lineno} imports {name}"
        if top != "udfdask":
            if here not in HEAVY.get(top, {here}):
                found.append(f"{where}: only {sorted(HEAVY[top])} may import {top}")
            continue
        there = room_of(name)
        if not there:
            found.append(f"{where}: nothing imports the package root")
        elif there in FORBIDDEN.get(here, ()):
            found.append(f"{where}: {here} never imports {there}")
        elif there in ROOMS and ROOMS.index(there) > ROOMS.index(here):
            found.append(f"{where}: upward, {there} stands above {here}")
    return found


def test_there_is_something_to_read():
    assert len(MODULES) > 10


@pytest.mark.parametrize("path", MODULES, ids=dotted_name)
def test_every_module_is_in_a_known_room(path):
    module = dotted_name(path)
    assert module == "udfdask" or room_of(module) in ROOMS, (
        f"{module} is in no room: add it to ROOMS in tests/test_architecture.py, below what may "
        "import it, and say in docs/design.md what it is for"
    )
    banned = BANNED_NAMES.intersection(module.split("."))
    assert not banned, f"{module}: name it after what it is about, not {sorted(banned)}"


@pytest.mark.parametrize("path", MODULES, ids=dotted_name)
def test_imports_point_down(path):
    module = dotted_name(path)
    source = path.read_text(encoding="utf-8")
    if module == "udfdask":  # the front door takes what it offers from anywhere
        offenders = [
            name for _, name in imports_in(source, module, is_package=True) if name in HEAVY
        ]
        assert not offenders
        return
    wrong = faults(source, module, is_package=path.name == "__init__.py")
    assert not wrong, "\n".join(wrong)


def test_rooms_are_listed_once():
    assert len(ROOMS) == len(set(ROOMS))
    named = {room for rooms in HEAVY.values() for room in rooms} | set(FORBIDDEN)
    assert named <= set(ROOMS)
    assert not set(ROOMS) & BANNED_NAMES


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("udfdask.chunk", "import udfdask", "package root"),
        ("udfdask.chunk", "from udfdask import UDF", "package root"),
        ("udfdask.chunk", "from udfdask import graph", "upward"),
        ("udfdask.chunk", "from . import graph", "upward"),
        ("udfdask.chunk", "from .graph import build_graph", "upward"),
        ("udfdask.chunk", "from udfdask.graph import build_graph", "upward"),
        ("udfdask.chunk", "def f():\n    import udfdask.graph as g", "upward"),
        ("udfdask.chunk", "importlib.import_module('udfdask.graph')", "upward"),
        ("udfdask.graph", "from udfdask.udfs import SumUDF", "never imports"),
        ("udfdask.udfs.sum", "from ..plan import make_plan", "upward"),
        ("udfdask.chunk", "import dask.array as da", "may import dask"),
        ("udfdask.tiling", "def f():\n    from numba import njit", "may import numba"),
        ("udfdask.results", "def f():\n    import xarray as xr", "may import xarray"),
    ],
)
def test_a_wrong_import_is_seen(module, source, fault):
    KNOWN_HERE = {"udfdask.graph", "udfdask.udfs", "udfdask.plan"}
    assert KNOWN_HERE <= KNOWN
    (wrong,) = faults(source, module)
    assert fault in wrong


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("udfdask.graph", "from udfdask import plan"),
        ("udfdask.graph", "from .plan import Plan"),
        ("udfdask.graph", "import dask.array as da\nimport numpy as np"),
        ("udfdask.udfs.sum", "from udfdask.udf import UDF"),
        ("udfdask.udfs.sum", "from .sumsig import SumSigUDF"),
    ],
)
def test_a_right_import_passes(module, source):
    assert not faults(source, module)
