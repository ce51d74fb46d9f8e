"""Write results to a zarr store, completely or not at all; lazy results are computed."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentValueError, missing_package, outdated_package
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, positions_in_file, variables_by_name
from udfdask.io.open_results import run_in_file
from udfdask.io.result_marks import RUN, mark
from udfdask.records.folder import folder_beside, open_folder, remove_folder
from udfdask.records.runs import find_runs, name_of_runs
from udfdask.scheduling.compute import compute
from udfdask.writing import ZARR, check_target, replacing
from udfdask.writing.stores import check_storable

if TYPE_CHECKING:
    import xarray as xr

LOG = logging.getLogger("udfdask")

OTHER_SUFFIXES = {
    ".npz",
    ".npy",
    ".csv",
    ".tif",
    ".tiff",
    ".h5",
    ".hdf5",
    ".hspy",
    ".png",
}


def write_zarr(
    path: str | os.PathLike[str],
    results: Mapping[str, Mapping[str, Variable]],
    *,
    axes: Sequence[Axis] = (),
    attrs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write results to a zarr store that `xarray.open_zarr` reads.

    The store is written under another name next to `path` and then renamed, so that it is never
    incomplete.

    Parameters
    ----------
    path : str or path-like
        Path of the store, usually with the suffix ``.zarr``.
    results : mapping of str to mapping of str to Variable
        The buffers of each UDF, from `result_variables`. A variable in the store has the name
        ``{udf}_{buffer}``.
    axes : sequence of Axis
        Axes of the dimensions; they become coordinates with units.
    attrs : mapping of str to str, optional
        Attributes of the store.
    overwrite : bool
        Replace an existing zarr store that contains nothing else.
    sources : sequence of str or path-like
        Files and stores from which the results come. They are never replaced, even with
        `overwrite`.

    Returns
    -------
    pathlib.Path
        The absolute path of the store.

    Raises
    ------
    FileExistsError
        If something exists at `path` that must not be replaced.
    FileNotFoundError
        If the folder of `path` does not exist.
    OSError
        If writing is impossible, for example on a read-only disk.
    ArgumentTypeError
        If a result has a type that zarr cannot store, such as object.
    ArgumentValueError
        If a dimension has two different sizes; if `path` is not a local path, or it is one of
        `sources`, contains one, or is inside one.
    ImportError
        If xarray or zarr is not installed, or zarr is older than 3.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask import Axis
    >>> from udfdask.io import Variable, open_file, write_zarr
    >>> image = Variable(dims=("y", "x"), values=np.arange(6.0).reshape(2, 3))
    >>> axes = [Axis(name="y", unit="nm", scale=0.5), Axis(name="x", unit="nm", scale=0.5)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = write_zarr(Path(folder) / "out.zarr", {"sum": {"image": image}}, axes=axes)
    ...     again = open_file(store, dataset="sum_image")
    ...     print(again.array.compute()[1], again.axes[1].unit, again.axes[1].scale)
    [3. 4. 5.] nm 0.5
    """
    check_packages()
    dataset = _dataset(results, axes, attrs or {})
    masks = [name for name, each in variables_by_name(results).items() if each.mask_of]
    return write_dataset(dataset, path, masks=masks, overwrite=overwrite, sources=sources)


def _check_suffix(path: Path) -> None:
    """Raise if a store has the suffix of a file of another format."""
    suffix = path.suffix.lower()
    if suffix not in OTHER_SUFFIXES:
        return
    if suffix == ".png":
        how = f"for a picture, result.plot().savefig({path.name!r})"
    elif suffix == ".npy":
        how = f"for the numbers alone, numpy.save({path.name!r}, result[name])"
    else:
        how = f"udfdask.io.save_results({path.name!r}, result) writes this format"
    raise ArgumentValueError(
        f"{path.name} ends in {suffix!r}, but a zarr store is a folder: call it "
        f"{path.with_suffix('.zarr').name!r}; {how}"
    )


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
    check_packages()
    import zarr

    if zarr_format not in (None, 2, 3):
        raise ArgumentValueError(f"zarr_format must be 2, 3 or None, not {zarr_format!r}")
    run = _name_of_run(dataset, zarr_format) if resume else ""
    try:
        target = check_target(path, ZARR, overwrite=overwrite, sources=sources)
    except FileExistsError as error:
        written = Path(path).expanduser().absolute()
        if not run or run_in_file(written) != run:
            if resume:
                error.add_note("It does not show that this run has written it with resume=True")
            raise
        LOG.warning("nothing is left to do: this run has written %s", written)
        remove_folder(folder_beside(written))
        return written
    _check_suffix(target.named)
    for name, variable in dataset.data_vars.items():
        check_storable(str(name), variable.dtype)
    plain_names = _plain_names(dataset)
    own_masks = [str(plain_names.get(name, name)) for name in masks]
    dataset = dataset.rename(plain_names)
    names = [str(name) for name in dataset.data_vars if str(name) not in own_masks]
    dataset = dataset.assign_attrs(mark(names) | ({RUN: run} if run else {}))
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


def check_packages() -> None:
    """Raise if the packages that write zarr stores are missing or too old."""
    try:
        import xarray  # noqa: F401
        import zarr
    except ImportError as error:
        raise missing_package(error.name or "xarray", purpose="writing a zarr store") from error
    if int(zarr.__version__.partition(".")[0]) < 3:  # which xarray needs
        raise outdated_package("zarr", zarr.__version__, needed="3", purpose="writing a zarr store")


def _dataset(
    results: Mapping[str, Mapping[str, Variable]], axes: Sequence[Axis], attrs: Mapping[str, str]
) -> xr.Dataset:
    """Return an xarray.Dataset of results, with coordinates and attributes."""
    import xarray as xr

    variables = variables_by_name(results)
    for name, variable in variables.items():
        check_storable(name, variable.values.dtype)
    coordinates = {
        dim: (dim, positions, {"units": axis.unit} if axis.unit else {})
        for dim, (axis, positions) in positions_in_file(variables, axes).items()
    }
    return xr.Dataset(
        {name: (v.dims, v.values, dict(v.attrs)) for name, v in variables.items()},
        coords=coordinates,
        attrs=dict(attrs),
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
    import xarray as xr

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


def _plain_names(dataset: xr.Dataset) -> dict[Hashable, str]:
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
