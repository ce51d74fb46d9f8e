"""A lazy Dataset into a zarr store, computed while it is written; all of it or nothing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import xarray as xr

from udfdask.arrays.geometry.chunk_grid import BoolArray
from udfdask.errors import ArgumentValueError, missing_package
from udfdask.results.labels.layout import Layout, free_name
from udfdask.scheduling.compute import compute
from udfdask.writing import ZARR, check_target, replacing
from udfdask.writing.stores import check_storable


def write_dataset(
    dataset: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    sources: Sequence[str],
    zarr_format: Literal[2, 3] | None,
    progress: bool,
    **kwargs: Any,
) -> Path:
    """Write a Dataset to a folder, in one pass over the data; return the folder's path.

    `kwargs` go to `dask.compute`.
    """
    zarr = _zarr()
    if zarr_format not in (None, 2, 3):
        raise ArgumentValueError(f"zarr_format must be 2, 3 or None, not {zarr_format!r}")
    target = check_target(path, ZARR, overwrite=overwrite, sources=sources)
    for name, variable in dataset.data_vars.items():
        check_storable(str(name), variable.dtype)
    storable = _encoded(_with_plain_text(_with_even_chunks(dataset)))
    with replacing(target) as unfinished:
        storable.to_zarr(
            unfinished, mode="w", consolidated=False, zarr_format=zarr_format, compute=False
        )
        # What `to_zarr` returns would write the rest, but has lost whose tasks these are: nobody
        # could tell how many frames are done, nor send heavy parameters ahead.
        group = zarr.open_group(str(unfinished), mode="r+")
        compute(*_writes(storable, group), progress=progress, **kwargs)
        with warnings.catch_warnings():
            # without it, every xr.open_zarr warns; with it, zarr does once, of format 3
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            zarr.consolidate_metadata(str(unfinished))
    return target.named


def with_validity(
    dataset: xr.Dataset, layout: Layout, masks: Mapping[str, Any], roi: BoolArray | None
) -> xr.Dataset:
    """Return a Dataset with valid masks of some results, and with the region of interest."""
    places = {name: layout.places[name] for name in masks}
    complete = dataset.assign({p.mask_name: (p.dims, masks[name]) for name, p in places.items()})
    if roi is None:
        return complete
    name = free_name("roi", {*complete.variables, *complete.dims})
    return complete.assign_coords({name: (layout.nav, roi)})


def _zarr() -> Any:
    """Return zarr."""
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose="writing a zarr store") from error
    return zarr


def _writes(dataset: xr.Dataset, group: Any) -> list[da.Array]:
    """Return arrays that, when computed, write each lazy variable to its place in a zarr group."""
    names = [n for n, v in dataset.variables.items() if isinstance(v.data, da.Array)]
    sources = [dataset[name].data for name in names]
    targets = [group[name] for name in names]
    # chunks in the file are those of the arrays: no two tasks write to the same
    stored = da.store(sources, targets, lock=False, compute=False) if sources else ()
    return [stored] if isinstance(stored, da.Array) else list(stored)


def _encoded(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset of what is written: dates as numbers since a date."""
    variables, attrs = xr.conventions.cf_encoder(dataset.variables, dataset.attrs)
    encoded = xr.Dataset(variables, attrs=attrs)
    return encoded.set_coords(list(dataset.coords))


def _with_even_chunks(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset without ragged chunks, which zarr does not have."""
    even = {
        name: variable.copy(data=_even(variable.data))
        for name, variable in dataset.data_vars.items()
        if isinstance(variable.data, da.Array)
    }
    return dataset.assign(even)


def _even(array: da.Array) -> da.Array:
    """Return an array whose chunks have one size, but for a smaller one at the end."""
    sizes = tuple(max(c, default=1) or 1 for c in array.chunks)
    even: da.Array = array.rechunk(sizes)
    return even


def _with_plain_text(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with labels as objects: format 3 has no text of fixed length."""
    text = {
        name: coord.astype(object)
        for name, coord in dataset.coords.items()
        if coord.dtype.kind == "U"
    }
    return dataset.assign_coords(text)
