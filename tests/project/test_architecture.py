"""Imports point down: reads every import statement of udfdask, those inside functions too."""

import ast
import pkgutil
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import dask.array

PACKAGE = Path(__file__).resolve().parents[2] / "udfdask"

# What each room, which is a module or a whole package, imports of the others: a partial order, so
# that no room can be reached from itself. The engine (plan, chunk, graph, scheduling,
# results) knows no single analysis: `udfs` is in none of its lines.
ALLOWED = {
    room: set(others.split())
    for room, others in {
        "advice": "",
        "errors": "advice",
        "base": "errors",
        "geometry": "errors base",
        "backends": "errors base",
        "kernels": "errors base backends",
        "plotting": "errors geometry",
        "masks": "errors base geometry backends kernels",
        "corrections": "errors base geometry backends kernels",
        "demo": "base geometry",
        "udf": "errors base geometry backends kernels masks corrections",
        "udfs": "errors base geometry backends kernels masks corrections udf",
        "plan": "advice errors base geometry backends masks corrections udf",
        "chunk": "errors base geometry backends kernels corrections udf plan",
        "graph": "base geometry backends udf plan chunk",
        "explanation": "advice errors base geometry masks udf plan graph",
        "scheduling": "errors base geometry backends udf plan chunk graph",
        "io": "errors base geometry backends kernels corrections",
        "results": (
            "errors base geometry backends plotting udf plan chunk graph explanation scheduling io"
        ),
        "run": (
            "advice errors base geometry backends plotting corrections udf udfs plan chunk graph "
            "explanation scheduling results"
        ),
        "analyses": "errors base geometry kernels masks corrections udf udfs results run",
        "libertem": "errors geometry udf udfs scheduling results run",
        "xarray": "advice errors base geometry udf explanation scheduling io results run",
        "hyperspy": "advice errors base geometry udf explanation scheduling io results run",
        "dask": "run",
        "testing": "errors base geometry backends corrections udf plan chunk results run",
        "cli": (
            "advice errors base geometry plotting masks demo udf udfs analyses graph explanation "
            "scheduling io results run"
        ),
        "__main__": "cli",
    }.items()
}

# The rooms in which a heavy package may be imported at all.
LABELED = {"io", "results", "xarray", "hyperspy"}
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
    "distributed": {"chunk", "scheduling", "results", "run", "cli"},
    "frisky": {"scheduling", "run"},
    # base.config uses dask.config alone: the settings of udfdask are dask settings
    "dask": set(
        (
            "base plan explanation graph scheduling results run "
            "xarray hyperspy dask io libertem testing demo cli analyses"
        ).split()
    ),
}

# The only folder that may import what dask does not document, and may change in any release.
SEAM = "udfdask.graph.dask_internals"

# All others keep to this: whole modules of dask, and a few names of others, all of which exist in
# dask 2025.12 to 2026.8. What begins with an underscore is private wherever it is.
DASK_MODULES = set(
    (
        "dask dask.array dask.array.dispatch dask.base dask.callbacks dask.config dask.local "
        "dask.system dask.threaded dask.utils distributed distributed.diagnostics.plugin"
    ).split()
)
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
    # documented: https://distributed.dask.org/en/stable/communications.html
    "distributed.comm.core": {"CommClosedError"},
    # documented: https://distributed.dask.org/en/stable/serialization.html
    "distributed.protocol": {"dask_deserialize", "dask_serialize", "register_generic"},
}
UNSTABLE_NAMES = {"clone_key", "collections_to_expr", "ContextAwareThreadPoolExecutor"}

BANNED_NAMES = {"utils", "util", "helpers", "helper", "lib", "misc", "core", "common"}

PATHS = sorted(PACKAGE.glob("**/*.py"))


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


SOURCES = {dotted_name(path): path.read_text(encoding="utf-8") for path in PATHS}
PACKAGES = {dotted_name(path) for path in PATHS if path.name == "__init__.py"}
KNOWN_DASK = {
    f"{package.__name__}.{found.name}"
    for package in (dask, dask.array)
    for found in pkgutil.iter_modules(package.__path__)
}


def room_of(module: str) -> str:
    """`udfdask.udfs.sum` is in the room `udfs`; the package root is in none, and that is ''."""
    return module.partition(".")[2].partition(".")[0]


def imports_in(module: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of all that a module imports, relative names resolved.

    The names in a `from` import are modules where such a module exists, and otherwise belong to the
    module they are taken from: `from udfdask import config` is `udfdask.base.config`, `from udfdask
    import UDF` is `udfdask`.
    """
    for node in ast.walk(ast.parse(SOURCES[module])):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                if level:
                    here = module.split(".")
                    here = here[: len(here) - level + (module in PACKAGES)]
                    base = ".".join([*here, *([base] if base else [])])
                for alias in names:
                    full = f"{base}.{alias.name}"
                    yield node.lineno, full if full in SOURCES else base
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


IMPORTS = {module: list(imports_in(module)) for module in SOURCES}


def unstable_dask(module: str) -> list[str]:
    """What a module uses of dask that may change with any release, one line each."""
    found = []
    for node in ast.walk(ast.parse(SOURCES[module])):
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


def cycle_in(needs: dict[str, set[str]]) -> str:
    """One way that leads back to where it began, and '' where there is none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def test_every_module_is_in_a_known_room():
    for module in SOURCES:
        assert module == "udfdask" or room_of(module) in ALLOWED, (
            f"{module} is in no room: add it to ALLOWED in {Path(__file__).name} with what it "
            "imports, and say in docs/development/design.md what it is for"
        )
        banned = BANNED_NAMES.intersection(module.split("."))
        assert not banned, f"{module}: name it after what it is about, not {sorted(banned)}"


def test_imports_point_down_and_the_table_has_no_others():
    needed: dict[str, set[str]] = {room: set() for room in ALLOWED}
    wrong = []
    for module, imports in IMPORTS.items():
        here = room_of(module)
        if module == "udfdask":  # the front door takes what it offers from anywhere
            continue
        for line, name in imports:
            top, there = name.partition(".")[0], room_of(name)
            if top == "udfdask" and there != here:
                needed[here].add(there)
                if there not in ALLOWED[here]:
                    wrong.append(f"{module}:{line} imports {name}: ALLOWED has no {there or top}")
            elif top != "udfdask" and here not in HEAVY.get(top, {here}):
                wrong.append(f"{module}:{line} imports {name}: only {sorted(HEAVY[top])} may")
    assert not wrong, "\n".join(wrong)
    assert needed == ALLOWED


def test_one_folder_knows_the_private_parts_of_numba():
    wrong = [
        f"{module}:{line} imports {name}"
        for module, imports in IMPORTS.items()
        if not module.startswith("udfdask.kernels.numba_internals.")
        for line, name in imports
        if name.startswith(("llvmlite", "numba.core", "numba.np"))
    ]
    assert not wrong, "\n".join(wrong)


def test_one_folder_knows_what_dask_does_not_document():
    others = [module for module in SOURCES if not module.startswith(f"{SEAM}.")]
    wrong = [fault for module in others for fault in unstable_dask(module)]
    assert not wrong, f"only {SEAM} may: " + "\n".join(wrong)


def test_no_folder_needs_another_that_needs_it():
    """Folders of one room as well; packages' `__init__` modules are front doors, and not asked."""
    needs: dict[str, set[str]] = {}
    for module in SOURCES.keys() - PACKAGES:
        here = module.rpartition(".")[0]
        for _, name in IMPORTS[module]:
            is_module = name in SOURCES and name not in PACKAGES
            there = name.rpartition(".")[0] if is_module else name
            if there.startswith("udfdask.") and there != here:
                needs.setdefault(here, set()).add(there)
    assert not cycle_in(needs), "folders that need each other"


def test_no_room_can_be_reached_from_itself():
    assert not cycle_in(ALLOWED)
    named = {room for rooms in HEAVY.values() for room in rooms}
    assert named <= set(ALLOWED)
    assert not set(ALLOWED) & BANNED_NAMES
