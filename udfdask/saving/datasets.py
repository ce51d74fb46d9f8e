"""The results of several UDFs as one Dataset, as they are in a file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import xarray as xr

from udfdask.errors import ArgumentValueError
from udfdask.results.layout import dataset_in_file
from udfdask.results.result import Result
from udfdask.results.zarr_store import plain_names
from udfdask.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """What a file of results contains."""

    dataset: xr.Dataset
    """The results, lazy or computed, by their names in the file."""
    masks: frozenset[str]
    """Names of the variables that say where a result is valid."""
    kinds: Mapping[str, tuple[Kind, int]]
    """Kind of each result and its mask, and the number of dimensions that are those of the data."""


def content_of(
    results: Mapping[str, Result], attrs: Mapping[str, str] | None = None
) -> FileContent:
    """Return what a file of results contains, by the names of their UDFs.

    A result is called ``{udf}_{buffer}``. If a dimension or coordinate of one UDF has the name of
    another one, the name of the UDF is put in front of it.
    """
    merged = xr.Dataset()
    masks: set[str] = set()
    kinds: dict[str, tuple[Kind, int]] = {}
    for udf, result in results.items():
        if not result.buffers:  # it has no results, and which frames it has seen is not saved
            continue
        names = {buffer: variable_name(udf, buffer) for buffer in result}
        for name in names.values():
            if name in kinds:
                raise ArgumentValueError(
                    f"two results would be called {name!r} in the file, after their UDF and "
                    "buffer: give the UDFs other names"
                )
        part, own_masks = dataset_in_file(result, names)
        part = part.rename(plain_names(part))
        renamed = _names_apart(part, merged, udf)
        n_leading = {"nav": len(result.nav_shape), "sig": len(result.sig_shape), "single": 0}
        for buffer, spec in result.buffers.items():
            part[names[buffer]].attrs.update(udf=udf, kind=str(spec.kind))
            mask = own_masks.get(buffer)
            for each in (names[buffer], *([] if mask is None else [mask])):
                kinds[str(renamed.get(each, each))] = spec.kind, n_leading[spec.kind]
            if mask is not None:
                masks.add(str(renamed.get(mask, mask)))
        merged = merged.merge(
            part.rename(renamed), join="exact", compat="override", combine_attrs="drop_conflicts"
        )
    return FileContent(
        dataset=merged.assign_attrs(attrs or {}), masks=frozenset(masks), kinds=kinds
    )


def without_needless_masks(content: FileContent) -> xr.Dataset:
    """Return computed results without the masks that are True everywhere."""
    dataset = content.dataset
    return dataset.drop_vars([mask for mask in content.masks if dataset[mask].values.all()])


def _names_apart(part: xr.Dataset, merged: xr.Dataset, udf: str) -> dict[Hashable, str]:
    """Return other names for what means something else in the Dataset of other UDFs."""
    names: dict[Hashable, str] = {}
    taken = {*merged.variables, *merged.sizes, *part.variables, *part.sizes}
    for name in {**part.sizes, **part.variables}:
        same_size = merged.sizes.get(name) == part.sizes.get(name)
        one, other = part.variables.get(name), merged.variables.get(name)
        same_values = one is other if one is None or other is None else one.identical(other)
        is_known = name in merged.sizes or name in merged.variables
        if is_known and not (same_size and same_values):
            names[name] = f"{udf}_{name}".replace("/", "_")
            while names[name] in taken:
                names[name] += "_"
            taken.add(names[name])
    return names


def variable_name(udf: str, buffer: str) -> str:
    """Return the name of a buffer in a file, the same for any number of UDFs."""
    return f"{udf}_{buffer}".replace("/", "_")  # which stores would take for a path
