"""Imports point down: reads every import statement of udfdask, those inside functions too."""

import ast
import pkgutil
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import dask.array
import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "udfdask"

# Lowest first. A room, which is a module or a whole package, may import itself and the rooms
# before it; the lines only group them for reading.
ROOMS = """
lazy_names advice errors types
once_per_process config tracebacks
names writing
geometry backends
kernels plotting
masks corrections descan demo
udf
libertem_udfs
udfs
plan
chunk
merge
graph
records
scheduling
io
results
saving
run
libertem xarray hyperspy dask testing
cli __main__
""".split()

# The engine knows no single analysis.
ENGINE = ["plan", "chunk", "merge", "records", "graph", "scheduling", "results"]
FORBIDDEN = {room: {"udfs"} for room in ENGINE}

# The rooms in which a heavy package may be imported at all.
LABELED = {"io", "results", "saving", "xarray", "hyperspy"}
HEAVY = {
    "cupy": {"backends"},
    "cupyx": {"backends"},
    "sparse": {"backends", "masks", "io"},
    "sparseconverter": {"backends"},
    "llvmlite": {"kernels"},
    "numba": {"kernels", "backends"},
    "xarray": LABELED,
    "hyperspy": LABELED,
    "rsciio": LABELED,
    "zarr": LABELED,
    "h5py": LABELED,
    "matplotlib": {"plotting"},
    "distributed": {"scheduling", "run", "cli"},
    "dask": {
        "config",  # dask.config alone: the settings of udfdask are dask settings
        "names",
        "plan",
        "graph",
        "records",
        "scheduling",
        "results",
        "run",
        "xarray",
        "hyperspy",
        "dask",
        "io",
        "libertem",
        "testing",
        "demo",
        "cli",
    },
}

# The only folder that may import what dask does not document, and may change in any release.
SEAM = "udfdask.graph.dask_internals"

# All others keep to this: whole modules of dask, and a few names of others, all of which exist in
# dask 2025.12 to 2026.8. What begins with an underscore is private wherever it is.
DASK_MODULES = {
    "dask",
    "dask.array",
    "dask.array.dispatch",
    "dask.base",
    "dask.callbacks",
    "dask.config",
    "dask.local",
    "dask.sizeof",
    "dask.system",
    "dask.threaded",
    "dask.utils",
    "distributed",
    "distributed.diagnostics.plugin",
}
DASK_NAMES = {
    "dask.array.core": {
        "Array",
        "broadcast_to",
        "from_array",
        "normalize_chunks",
        "slices_from_chunks",
    },
    "dask.core": {"flatten", "reverse_dict"},
    "dask.highlevelgraph": {"HighLevelGraph"},
    # documented: https://distributed.dask.org/en/stable/serialization.html
    "distributed.protocol": {"dask_deserialize", "dask_serialize", "deserialize", "serialize"},
}
UNSTABLE_NAMES = {"clone_key", "collections_to_expr", "ContextAwareThreadPoolExecutor"}

BANNED_NAMES = {"utils", "util", "helpers", "helper", "lib", "misc", "core", "common"}

MODULES = sorted(PACKAGE.glob("**/*.py"))


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


KNOWN = {dotted_name(path) for path in MODULES}


KNOWN_DASK = {
    f"{package.__name__}.{found.name}"
    for package in (dask, dask.array)
    for found in pkgutil.iter_modules(package.__path__)
}


def is_package(module: str) -> bool:
    return (PACKAGE.parent / module.replace(".", "/")).is_dir()


def room_of(module: str) -> str:
    """`udfdask.udfs.sum` is in the room `udfs`; the package root is in none, and that is ''."""
    return module.partition(".")[2].partition(".")[0]


def imports_in(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Line and absolute name of all that `source` imports, relative names resolved.

    The names in a `from` import are modules where such a module exists, and otherwise belong to the
    module they are taken from: `from udfdask import config` is `udfdask.config`, `from udfdask
    import UDF` is `udfdask`.
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


def unstable_dask(source: str, module: str) -> list[str]:
    """What `source` uses of dask that may change with any release, one line each."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                parts = [(alias.name, "") for alias in names]
            case ast.ImportFrom(module=str(base), names=names, level=0):
                parts = [(base, alias.name) for alias in names]
            case ast.Attribute(attr=name) if name in UNSTABLE_NAMES:
                found.append(f"{module}:{node.lineno} uses {name}")
                continue
            case _:
                continue
        for base, name in parts:
            if base.partition(".")[0] not in ("dask", "distributed"):
                continue
            private = any(part.startswith("_") for part in (*base.split("."), name))
            known = base in DASK_MODULES or name in DASK_NAMES.get(base, ())
            if name and f"{base}.{name}" in KNOWN_DASK - DASK_MODULES:  # a module of dask
                known = False
            if private or not known or name in UNSTABLE_NAMES:
                found.append(f"{module}:{node.lineno} imports {name or base} from {base}")
    return found


def test_there_is_something_to_read():
    assert len(MODULES) > 10


def test_every_module_is_in_a_known_room():
    for module in map(dotted_name, MODULES):
        assert module == "udfdask" or room_of(module) in ROOMS, (
            f"{module} is in no room: add it to ROOMS in {Path(__file__).name}, below what may "
            "import it, and say in docs/development/design.md what it is for"
        )
        banned = BANNED_NAMES.intersection(module.split("."))
        assert not banned, f"{module}: name it after what it is about, not {sorted(banned)}"


def test_the_front_door_imports_nothing_heavy():
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    found = [name for _, name in imports_in(source, "udfdask", is_package=True)]
    assert not [name for name in found if name in HEAVY]


def test_imports_point_down():
    wrong = []
    for path in MODULES:
        module = dotted_name(path)
        if module != "udfdask":  # the front door takes what it offers from anywhere
            source = path.read_text(encoding="utf-8")
            wrong += faults(source, module, is_package=path.name == "__init__.py")
    assert not wrong, "\n".join(wrong)


def test_one_folder_knows_the_private_parts_of_numba():
    private = ("llvmlite", "numba.core", "numba.np")
    wrong = [
        f"{module}:{line} imports {name}"
        for path in MODULES
        if not (module := dotted_name(path)).startswith("udfdask.kernels.numba_internals.")
        for line, name in imports_in(path.read_text(encoding="utf-8"), module)
        if name.startswith(private)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", MODULES, ids=dotted_name)
def test_one_folder_knows_what_dask_does_not_document(path):
    module = dotted_name(path)
    if module.startswith(f"{SEAM}."):
        return
    wrong = unstable_dask(path.read_text(encoding="utf-8"), module)
    assert not wrong, f"only {SEAM} may: " + "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "from dask._task_spec import Task",
        "from dask import _task_spec",
        "import dask._task_spec as spec",
        "from dask import order",
        "from dask.blockwise import Blockwise",
        "def f():\n    from dask.optimization import fuse",
        "from dask.graph_manipulation import clone",
        "from dask.highlevelgraph import HighLevelGraph, MaterializedLayer",
        "from dask.array._array_expr import Array",
        "from dask import base\nbase.collections_to_expr([])",
        "from distributed.utils import sync",
    ],
)
def test_use_of_an_undocumented_part_of_dask_is_seen(source):
    assert len(unstable_dask(source, "udfdask.graph.build")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import dask.array as da",
        "from dask import base, config, local, threaded",
        "from dask.highlevelgraph import HighLevelGraph",
        "from distributed import Client",
        "from udfdask.graph.dask_internals.tasks import OutputTask",
    ],
)
def test_documented_parts_of_dask_pass(source):
    assert not unstable_dask(source, "udfdask.graph.build")


def test_no_folder_needs_another_that_needs_it():
    """Folders of one room as well; packages' `__init__` modules are front doors, and not asked."""
    needs: dict[str, set[str]] = {}
    for path in MODULES:
        if path.name == "__init__.py":
            continue
        module = dotted_name(path)
        here = module.rpartition(".")[0]
        for _, name in imports_in(path.read_text(encoding="utf-8"), module):
            there = name.rpartition(".")[0] if name in KNOWN and not is_package(name) else name
            if there.startswith("udfdask.") and there != here:
                needs.setdefault(here, set()).add(there)
    try:
        tuple(TopologicalSorter(needs).static_order())
    except CycleError as error:
        pytest.fail(f"folders that need each other: {' -> '.join(error.args[1])}")


def test_rooms_are_listed_once():
    assert len(ROOMS) == len(set(ROOMS))
    named = {room for rooms in HEAVY.values() for room in rooms} | set(FORBIDDEN)
    assert named <= set(ROOMS)
    assert not set(ROOMS) & BANNED_NAMES


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("udfdask.chunk.run_chunk", "import udfdask", "package root"),
        ("udfdask.chunk.run_chunk", "from udfdask import UDF", "package root"),
        ("udfdask.chunk.run_chunk", "from udfdask import graph", "upward"),
        ("udfdask.chunk.run_chunk", "from .. import graph", "upward"),
        ("udfdask.chunk.run_chunk", "from ..graph.build import build_graph", "upward"),
        ("udfdask.chunk.run_chunk", "from udfdask.graph.build import build_graph", "upward"),
        ("udfdask.chunk.run_chunk", "def f():\n    import udfdask.graph.build as g", "upward"),
        ("udfdask.chunk.run_chunk", "importlib.import_module('udfdask.graph.build')", "upward"),
        ("udfdask.graph.build", "from udfdask.udfs import SumUDF", "never imports"),
        ("udfdask.udfs.sum", "from ..plan import make_plan", "upward"),
        ("udfdask.chunk.run_chunk", "import dask.array as da", "may import dask"),
        ("udfdask.plan.recipe", "def f():\n    from numba import njit", "may import numba"),
        ("udfdask.plan.plan", "def f():\n    import xarray as xr", "may import xarray"),
    ],
)
def test_a_wrong_import_is_seen(module, source, fault):
    KNOWN_HERE = {"udfdask.graph.build", "udfdask.udfs", "udfdask.plan.plan"}
    assert KNOWN_HERE <= KNOWN
    (wrong,) = faults(source, module)
    assert fault in wrong


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("udfdask.graph.build", "from udfdask import plan"),
        ("udfdask.graph.build", "from ..plan.plan import Plan"),
        ("udfdask.graph.build", "import dask.array as da\nimport numpy as np"),
        ("udfdask.udfs.sum", "from udfdask.udf import UDF"),
        ("udfdask.udfs.sum", "from .sumsig import SumSigUDF"),
    ],
)
def test_a_right_import_passes(module, source):
    assert not faults(source, module)
