"""What users can reach: modules, the names in them, and the members of a class.

The reference has a page for each of these names (`conf.py`), and `.ci/public_docstrings.py` checks
their docstrings.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

MODULES = (
    "udfdask",
    "udfdask.analyses",
    "udfdask.corrections",
    "udfdask.corrections.coordinates",
    "udfdask.dask",
    "udfdask.demo",
    "udfdask.errors",
    "udfdask.hyperspy",
    "udfdask.io",
    "udfdask.libertem",
    "udfdask.masks",
    "udfdask.plotting",
    "udfdask.testing",
    "udfdask.testing.strategies",
    "udfdask.udfs",
    "udfdask.xarray",
)
"""Modules from which users import names: those in `__all__`, listed once if `udfdask` has them."""

REACHED = {
    "udfdask.AuxData": "`UDF.aux_data(...)`",
    "udfdask.BufferSpec": "`self.buffer(...)`, `Result.buffers`",
    "udfdask.PartialViews": "the partial results in `merge_all`",
    "udfdask.Views": "`dest` and `src` in `merge`",
    "udfdask.geometry.axes.Calibration": "`Result.calibration`, `self.meta.calibration`",
    "udfdask.geometry.tiling.TilingScheme": "`self.meta.tiling_scheme`",
    "udfdask.explanation.describe.Explanation": "`explain(...)`",
    "udfdask.explanation.memory.PredictedMemory": "`Explanation.memory`",
    "udfdask.run.progressive.UDFIterator": "`run_udf_iter(...)`",
    "udfdask.run.progressive.Snapshot": "an item of a `UDFIterator`",
    "udfdask.scheduling.progress.ProgressReporter": "an object passed as `progress=`",
    "udfdask.scheduling.progress.ProgressState": "the argument of a function passed as `progress=`",
    "udfdask.udf.processing.MaskedResult": "`self.with_mask(...)`",
    "udfdask.udf.buffers.FullBuffer": "`self.results.get_buffer(...)`",
    "udfdask.udf.buffers.Results": "`self.results`",
    "udfdask.udf.meta.UDFMeta": "`self.meta`",
    "udfdask.udf.params.Params": "`self.params`",
    "udfdask.udf.params.TaskData": "`self.task_data`",
}
"""Classes that users do not make, with the attribute or call that gives an instance."""


def public_objects() -> dict[str, Any]:
    """Return functions and classes by the name with which users import them."""
    found = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if (
                inspect.isclass(value) or inspect.isroutine(value)
            ) and f"udfdask.{name}" not in found:
                found[f"{module_name}.{name}"] = value
    return found


def reached_objects() -> dict[str, type]:
    """Return the classes that users reach by an attribute, by their full names."""
    found = {}
    for dotted in REACHED:
        module, _, name = dotted.rpartition(".")
        found[dotted] = getattr(importlib.import_module(module), name)
    return found


INTERNAL = {
    "udfdask.plotting.live.LivePlot": ("update",),
    "udfdask.udf.aux_data.AuxData": ("full_shape", "over", "with_data", "without_data"),
    "udfdask.udf.buffers.BufferSpec": ("allocate", "backend", "nbytes"),
    "udfdask.udf.buffers.FullBuffer": ("grid", "spec"),
    "udfdask.udf.meta.UDFMeta": ("cursor", "with_input_dtype"),
}
"""Members for the code that runs UDFs, which have no place in the reference."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Members:
    """The members of a class that its page describes."""

    attributes: tuple[str, ...]
    """Fields and properties, without those of the section "Attributes"."""
    constants: tuple[str, ...]
    """Names in capital letters."""
    methods: tuple[str, ...]
    """Methods that users call or, in base classes, write."""


def members_of(cls: type, public: set[Any]) -> Members:
    """Return the members of a class; `public` are the classes with a page of their own.

    What such a base describes is left out, and so are the hooks of ready-made UDFs.
    """
    if issubclass(cls, enum.Enum):
        return Members(attributes=(), constants=tuple(cls.__members__), methods=())
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "udfdask"]
    described = [base for base in ours if base is not cls and base in public]
    hidden = {*dir(object), *_names_in_attributes_section(cls)}
    hidden.update(*(INTERNAL.get(f"{base.__module__}.{base.__name__}", ()) for base in ours))
    hidden.update(*map(dir, described))
    names = [
        name
        for base in reversed([base for base in ours if base not in described])
        for name in [*inspect.get_annotations(base), *vars(base)]
        if not name.startswith("_")
        and name not in hidden
        and not (described and name.startswith("process_"))
    ]
    members = {name: inspect.getattr_static(cls, name, None) for name in names}
    rest = {name: value for name, value in members.items() if not _is_method(value)}
    return Members(
        attributes=tuple(name for name in rest if _is_attribute(cls, name) and not name.isupper()),
        constants=tuple(name for name in rest if name.isupper()),
        methods=tuple(name for name in members if name not in rest),
    )


def _is_method(value: Any) -> bool:
    """Return whether a member is a method, also of a class or a static one."""
    return inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod))


def _is_attribute(cls: type, name: str) -> bool:
    """Return whether a member is a property, a field, or a value that instances have."""
    value = inspect.getattr_static(cls, name, None)
    if hasattr(type(value), "__get__"):  # a property, or a slot
        return True
    return any(name in inspect.get_annotations(base) for base in cls.__mro__)


def _names_in_attributes_section(cls: type) -> Iterator[str]:
    """Yield the names in the section "Attributes" of the docstring of a class."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    section = re.search(r"(?ms)^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", text)
    for line in section[1].splitlines() if section else ():
        if not line.startswith(" ") and ":" in line:
            yield from (name.strip() for name in line.partition(":")[0].split(","))


def template_context() -> dict[str, Any]:
    """Return what the templates in `docs/_templates/autosummary` need, as plain values."""
    objects = {**public_objects(), **reached_objects()}
    classes = {name: value for name, value in objects.items() if inspect.isclass(value)}
    public = set(classes.values())
    members = {}
    for name, cls in classes.items():
        found = members_of(cls, public)
        values = ((one, _constant(getattr(cls, one))) for one in found.constants)
        members[name] = {
            "attributes": list(found.attributes),
            "constants": [list(pair) for pair in values],
            "methods": list(found.methods),
        }
    where = {name: text.replace("`", "``") for name, text in REACHED.items()}
    return {"class_members": members, "reached": where}


def _constant(value: Any) -> str:
    """Return a constant as a reader sees it, in the same order in each process."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(repr, sorted(value))) + "}"
    return value.__name__ if inspect.isclass(value) else repr(value)
