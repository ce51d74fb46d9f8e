"""Write a Dataset to a zarr store, completely or not at all, in one pass over lazy data."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import numpy as np
import xarray as xr

from udfdask.errors import ArgumentTypeError, ArgumentValueError, missing_package, outdated_package
from udfdask.records.folder import folder_beside, open_folder, remove_folder
from udfdask.records.runs import RUN, find_runs, name_of_runs
from udfdask.scheduling.compute import compute
from udfdask.writing.replacing import replacing
from udfdask.writing.targets import check_target

LOG = logging.getLogger("udfdask")


def write_dataset(
    dataset: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    masks: Collection[Hashable] = (),
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
    zarr_format: Literal[2, 3] | None = None,
    resume: bool = False,
    **options: Any,
) -> Path:
    """Write a Dataset to a zarr store in one pass over lazy data; return the path of the store.

    `masks` are the names of the variables that are valid masks. Those that are True everywhere are
    left out. With `resume`, partial results are kept next to the store until it is
    complete; a store that the same run has written is left as it is. `options` are options of
    `udfdask.compute`.
    """
    check_zarr()
    import zarr

    if zarr_format not in (None, 2, 3):
        raise ArgumentValueError(f"zarr_format must be 2, 3 or None, not {zarr_format!r}")
    run = _name_of_run(dataset, zarr_format) if resume else ""
    try:
        target = check_target(path, is_store=True, overwrite=overwrite, sources=sources)
    except FileExistsError as error:
        written = Path(path).expanduser().absolute()
        if not run or _run_in_store(written) != run:
            if resume:
                error.add_note("It does not show that this run has written it with resume=True")
            raise
        LOG.warning("nothing is left to do: this run has written %s", written)
        remove_folder(folder_beside(written))
        return written
    for name, variable in dataset.data_vars.items():
        _check_storable(str(name), variable.dtype)
    names = plain_names(dataset)
    own_masks = [str(names.get(name, name)) for name in masks]
    dataset = dataset.rename(names)
    if run:
        dataset = dataset.assign_attrs({RUN: run})
    storable = _encoded(_with_plain_text(_with_even_chunks(dataset)))
    with replacing(target) as unfinished:
        storable.to_zarr(
            unfinished, mode="w", consolidated=False, zarr_format=zarr_format, compute=False
        )
        # `to_zarr` returns a delayed value that writes the rest. It is not used, because its graph
        # does not show which tasks belong to a run, and so progress could not count frames.
        group = zarr.open_group(str(unfinished), mode="r+")
        writes = _writes(storable, group)
        if resume and writes:
            options.setdefault("cache", open_folder(folder_beside(target.named), limit=None))
        compute(*writes, **options)
        _drop_needless_masks(group, own_masks)
        with warnings.catch_warnings():
            # Without consolidated metadata, each xr.open_zarr warns. With them, zarr itself warns
            # here if the store is of format 3.
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            zarr.consolidate_metadata(str(unfinished))
    if resume:
        remove_folder(folder_beside(target.named))
    return target.named


def check_zarr() -> None:
    """Raise if zarr is missing or too old."""
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose="writing a zarr store") from error
    if int(zarr.__version__.partition(".")[0]) < 3:  # which xarray needs
        raise outdated_package("zarr", zarr.__version__, needed="3", purpose="writing a zarr store")


def _name_of_run(dataset: xr.Dataset, zarr_format: Any) -> str:
    """Return a name of the lazy run that makes a dataset, and of its form.

    It is empty if all is computed, or if the run has no name in other processes.
    """
    lazy = [v.data for v in dataset.variables.values() if isinstance(v.data, da.Array)]
    known = {name: c.values for name, c in dataset.coords.items() if isinstance(c.data, np.ndarray)}
    form = dataset.to_dict(data=False)
    try:
        return name_of_runs(find_runs(lazy), (form, known, zarr_format))
    except ArgumentValueError:
        return ""


def _run_in_store(path: Path) -> str:
    """Return the name of the run that has written a store; empty if it is not known."""
    import zarr

    try:
        return str(zarr.open_group(str(path), mode="r").attrs.get(RUN, ""))
    except Exception:  # noqa: BLE001  # a file of another program, of any kind
        return ""


def _check_storable(name: str, dtype: np.dtype[Any]) -> None:
    """Raise if a store cannot contain a variable of this dtype."""
    if dtype.kind not in "biufcmM":
        raise ArgumentTypeError(
            f"result {name!r} has the dtype {dtype}, which cannot be written to zarr: only "
            "booleans, numbers and times can. Leave this UDF out, or save its result yourself"
        )


def _writes(dataset: xr.Dataset, group: Any) -> list[da.Array]:
    """Return arrays that write each lazy variable to a zarr group when they are computed."""
    names = [n for n, v in dataset.variables.items() if isinstance(v.data, da.Array)]
    sources = [dataset[name].data for name in names]
    targets = [group[name] for name in names]
    # the store has the chunks of the arrays, so no two tasks write to the same stored chunk
    stored = da.store(sources, targets, lock=False, compute=False) if sources else ()
    return [stored] if isinstance(stored, da.Array) else list(stored)


def _encoded(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with the types of the store, in which dates are numbers."""
    variables, attrs = xr.conventions.cf_encoder(dataset.variables, dataset.attrs)
    encoded = xr.Dataset(variables, attrs=attrs)
    return encoded.set_coords(list(dataset.coords))


def _drop_needless_masks(group: Any, masks: Collection[str]) -> None:
    """Delete the valid masks that are True everywhere, which is known when they are computed."""
    for name in masks:
        array = group[name]
        # chunk by chunk: a mask can be larger than memory
        rows = array.chunks[0] if array.shape else 1
        starts = range(0, array.shape[0] if array.shape else 1, rows)
        if all(np.all(array[s : s + rows] if array.shape else array[()]) for s in starts):
            del group[name]


def plain_names(dataset: xr.Dataset) -> dict[Hashable, str]:
    """Return other names for those such as "a/b", which a store would take for a path."""
    taken = {str(name) for name in (*dataset.variables, *dataset.dims)}
    names: dict[Any, str] = {}
    for name in (*dataset.variables, *dataset.dims):
        if "/" in str(name) and name not in names:
            names[name] = str(name).replace("/", "_")
            while names[name] in taken:
                names[name] += "_"
            taken.add(names[name])
    return names


def _with_even_chunks(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with chunks of equal sizes, which zarr needs; the last can be smaller."""
    even = {}
    for name, variable in dataset.data_vars.items():
        array = variable.data
        if isinstance(array, da.Array):
            sizes = tuple(max(c, default=1) or 1 for c in array.chunks)
            even[name] = variable.copy(data=array.rechunk(sizes))
    return dataset.assign(even)


def _with_plain_text(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with labels as objects, because format 3 has no text of fixed length."""
    text = {
        name: coord.astype(object)
        for name, coord in dataset.coords.items()
        if coord.dtype.kind == "U"
    }
    return dataset.assign_coords(text)
