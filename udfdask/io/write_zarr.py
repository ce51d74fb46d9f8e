"""Computed results into one zarr store, all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentValueError, missing_package, outdated_package
from udfdask.io.named_variables import Variable, variable_name
from udfdask.writing import ZARR, check_target, replacing
from udfdask.writing.stores import check_storable


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

    The store is written under another name beside `path` and then renamed, so that there is never
    half of one.

    Parameters
    ----------
    path : str or path-like
        Where the store is to be, by custom ending in ``.zarr``.
    results : mapping of str to mapping of str to Variable
        For each UDF its buffers, as `result_variables` makes them. The variables in the store are
        called like the buffers, and ``{udf}_{buffer}`` where there are several UDFs.
    axes : sequence of Axis
        Axes that have positions: those among the dimensions become coordinates, with units.
    attrs : mapping of str to str, optional
        Attributes of the whole store.
    overwrite : bool
        Replace a zarr store that is there already, if nothing else lies in it.
    sources : sequence of str or path-like
        Files and stores that the results come from: nothing is written over them, with
        `overwrite` neither.

    Returns
    -------
    pathlib.Path
        The store's absolute path.

    Raises
    ------
    FileExistsError
        If there is something at `path` and it may not, or must not, be replaced.
    FileNotFoundError
        If the folder that `path` is to be in does not exist.
    OSError
        If nothing can be written there, for example on a read-only disk.
    ArgumentTypeError
        If a result has a type that zarr does not store, such as object.
    ArgumentValueError
        If a dimension has two different sizes; if `path` is no local path, or it is one of
        `sources`, contains one, or lies in one.
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
    ...     again = open_file(store, dataset="image")
    ...     print(again.array.compute()[1], again.axes[1].unit, again.axes[1].scale)
    [3. 4. 5.] nm 0.5
    """
    check_packages()
    target = check_target(path, ZARR, overwrite=overwrite, sources=sources)
    dataset = _dataset(results, axes, attrs or {})
    with replacing(target) as unfinished:
        dataset.to_zarr(unfinished, mode="w", consolidated=False)
    return target.named


def check_packages() -> None:
    """Raise if the packages that write zarr stores are not installed, or too old."""
    _xarray()


def _dataset(
    results: Mapping[str, Mapping[str, Variable]], axes: Sequence[Axis], attrs: Mapping[str, str]
) -> Any:
    """Take results, axes and attributes; return an xarray.Dataset of them."""
    variables = {
        variable_name(udf, buffer, alone=len(results) == 1): variable
        for udf, buffers in results.items()
        for buffer, variable in buffers.items()
    }
    sizes: dict[str, int] = {}
    for name, variable in variables.items():
        check_storable(name, variable.values.dtype)
        for dim, size in zip(variable.dims, variable.values.shape, strict=True):
            if sizes.setdefault(dim, size) != size:
                raise ArgumentValueError(
                    f"dimension {dim!r} of {name!r} has {size} positions and elsewhere "
                    f"{sizes[dim]}: give one of them another name"
                )
    coordinates = {
        axis.name: (axis.name, axis.offset + axis.scale * np.arange(sizes[axis.name]), _unit(axis))
        for axis in axes
        if axis.name in sizes and axis.name not in variables
    }
    return _xarray().Dataset(
        {name: (v.dims, v.values, dict(v.attrs)) for name, v in variables.items()},
        coords=coordinates,
        attrs=dict(attrs),
    )


def _xarray() -> Any:
    """Return xarray, if it can write zarr stores here."""
    try:
        import xarray as xr
        import zarr
    except ImportError as error:
        raise missing_package(error.name or "xarray", purpose="writing a zarr store") from error
    if int(zarr.__version__.partition(".")[0]) < 3:  # xarray writes with no other
        raise outdated_package("zarr", zarr.__version__, needed="3", purpose="writing a zarr store")
    return xr


def _unit(axis: Axis) -> dict[str, str]:
    """Take an axis; return the attributes of its coordinate."""
    return {"units": axis.unit} if axis.unit else {}
