"""Write a Dataset to a zarr store, completely or not at all, in one pass over lazy data."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from udfdask.base.replacing import replacing
from udfdask.base.targets import check_target
from udfdask.errors import ArgumentTypeError, missing_package
from udfdask.graph.dask_internals.expressions import as_dask
from udfdask.results.layout import free_name
from udfdask.scheduling.compute import compute
from udfdask.scheduling.records.folder import folder_beside, open_folder, remove_folder


def write_dataset(
    dataset: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    masks: Collection[Hashable] = (),
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
    resume: bool = False,
    **options: Any,
) -> Path:
    """Write a Dataset to a zarr store in one pass over lazy data; return the path of the store.

    `masks` are the names of the variables that are valid masks. Those that are True everywhere are
    left out. With `resume`, partial results are kept next to the store until it is complete.
    `options` are options of `udfdask.compute`.
    """
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose="writing a zarr store") from error
    target = check_target(path, is_store=True, overwrite=overwrite, sources=sources)
    names = plain_names(dataset)
    own_masks = [str(names.get(name, name)) for name in masks]
    storable = _storable(dataset.rename(names))
    with replacing(target) as unfinished:
        storable.to_zarr(unfinished, mode="w", consolidated=False, compute=False)
        # `to_zarr` returns a delayed value that writes the rest. It is not used, because its graph
        # does not show which tasks belong to a run, and so progress could not count frames.
        group = zarr.open_group(str(unfinished), mode="r+")
        lazy = [name for name, v in storable.variables.items() if isinstance(v.data, da.Array)]
        if lazy:
            if resume:
                options.setdefault("cache", open_folder(folder_beside(target.named), limit=None))
            data = [storable[name].data for name in lazy]
            targets: list[Any] = [group[str(name)] for name in lazy]
            # the store has the chunks of the arrays, so no two tasks write to the same stored chunk
            stored: Any = da.store(data, targets, lock=False, compute=False)
            compute(*(stored if isinstance(stored, (list, tuple)) else [stored]), **options)
        for name in own_masks:
            if _is_true_everywhere(group[name]):
                del group[name]
        with warnings.catch_warnings():
            # Without consolidated metadata, each xr.open_zarr warns. With them, zarr itself warns
            # here if the store is of format 3.
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            zarr.consolidate_metadata(str(unfinished))
    if resume:
        remove_folder(folder_beside(target.named))
    return target.named


def _is_true_everywhere(mask: Any) -> bool:
    """Return whether a stored mask is True everywhere; chunk by chunk, it can be large."""
    if not mask.shape:
        return bool(mask[()])
    rows = mask.chunks[0]
    return all(np.all(mask[start : start + rows]) for start in range(0, mask.shape[0], rows))


def plain_name(name: Hashable) -> str:
    """Return a name without slashes and backslashes, which a store takes for those of a path."""
    return re.sub(r"[/\\]", "_", str(name))


def plain_names(dataset: xr.Dataset) -> dict[Hashable, str]:
    """Return other names for those that are not plain."""
    taken = {str(name) for name in (*dataset.variables, *dataset.dims)}
    names: dict[Hashable, str] = {}
    for name in dict.fromkeys((*dataset.variables, *dataset.dims)):
        if (plain := plain_name(name)) != str(name):
            names[name] = free_name(plain, taken)
            taken.add(names[name])
    return names


def _storable(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with chunks, labels and types that zarr stores, in which dates are numbers.

    zarr needs chunks of equal sizes, of which the last can be smaller, and its format 3 has no text
    of fixed length.
    """
    even = {}
    for name, variable in dataset.data_vars.items():
        if variable.dtype.kind not in "biufcmM":
            raise ArgumentTypeError(
                f"result {name!r} has the dtype {variable.dtype}, which cannot be written to zarr: "
                "only booleans, numbers and times can. Leave this UDF out"
            )
        array = as_dask(variable.data)
        if isinstance(array, da.Array):
            sizes = tuple(max(c, default=1) or 1 for c in array.chunks)
            even[name] = variable.copy(data=array.rechunk(sizes))
    text = {n: c.astype(object) for n, c in dataset.coords.items() if c.dtype.kind == "U"}
    plain = dataset.assign(even).assign_coords(text)
    variables, attrs = xr.conventions.cf_encoder(plain.variables, plain.attrs)
    return xr.Dataset(variables, attrs=attrs).set_coords(list(plain.coords))
