"""Open a file or store of results as a Dataset of xarray."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import numpy as np

from udfdask.errors import FileFormatError, missing_package
from udfdask.io.damaged_files import existing_file, reading
from udfdask.io.npz_file import read_npz
from udfdask.io.remote_location import is_remote, local_path
from udfdask.io.result_marks import RUN, marked_results, without_mark
from udfdask.writing import HDF5, NPZ
from udfdask.writing.stores import is_zarr

if TYPE_CHECKING:
    import xarray as xr

_OTHER_PROGRAMS = {
    ".hspy": "hyperspy.api.load(path) reads it as signals",
    ".zspy": "hyperspy.api.load(path) reads it as signals",
    ".tif": "tifffile.imread(path) reads it as an array",
    ".tiff": "tifffile.imread(path) reads it as an array",
    ".npy": "numpy.load(path) reads it as an array",
}

_ONLY = (
    "open_results reads the .zarr, .h5 and .npz files of udfdask.io.save_results, Result.to_zarr "
    "and `udfdask run --out`"
)


def open_results(path: str | os.PathLike[str]) -> Any:
    """Open results that were saved by `save_results`, `Result.to_zarr` or ``udfdask run --out``.

    Parameters
    ----------
    path : str or path-like
        A ``.zarr`` store, or an ``.h5`` or ``.npz`` file.

    Returns
    -------
    xarray.Dataset
        The results in memory, with the names of dimensions, positions along the axes, and units.
        ``dataset["sum_intensity"].plot(yincrease=False)`` draws an image with the first row at the
        top, as `Result.plot` does; by default, xarray draws it at the bottom. For a result that is
        not valid everywhere, there is a boolean variable ``{name}_valid``. The names are those in
        the file: ``{udf}_{buffer}``, and only ``{buffer}`` in a store of `Result.to_zarr`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the file does not contain results of udfdask, or has another format; the message names
        the program that reads it. If the file is damaged.
    ArgumentTypeError
        If `path` is not a path.
    ImportError
        If xarray, or the package that reads the format, is not installed.

    See Also
    --------
    save_results : Write such a file.
    open_file : Open the data of a detector.

    Notes
    -----
    For a store of `Result.to_zarr` that is larger than memory, `xarray.open_zarr` is lazy.

    Examples
    --------
    >>> import tempfile, dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> result = ud.run_udf(da.ones((2, 3, 4, 4)), SumSigUDF())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dataset = ud.io.open_results(result.to_zarr(f"{folder}/sums.zarr"))
    >>> dataset["intensity"].mean("x").values
    array([16., 16.])
    """
    if is_remote(path):
        raise FileFormatError(
            f"{os.fspath(path)} is not a local file: xarray.open_zarr(url) opens stores elsewhere. "
            f"{_ONLY}"
        )
    file = existing_file(local_path(path))
    suffix = file.suffix.lower()
    if suffix in _OTHER_PROGRAMS:
        raise FileFormatError(f"{file} ends in {suffix!r}: {_OTHER_PROGRAMS[suffix]}. {_ONLY}")
    try:
        import xarray  # noqa: F401
    except ImportError as error:
        raise missing_package("xarray", purpose="opening results") from error
    if file.is_dir():
        dataset = _read_zarr(file) if is_zarr(file) else None
        advice = "xarray.open_zarr(path) opens other stores"
    else:
        with reading(file, "a file"), file.open("rb") as stream:
            begin = stream.read(1024)
        if NPZ.recognizes(begin):
            dataset, advice = _read_npz(file), "numpy.load(path) opens other .npz files"
        elif HDF5.recognizes(begin):
            dataset, advice = _read_hdf5(file), "h5py.File(path) opens other HDF5 files"
        else:
            dataset, advice = None, "check that this is the right file"
    if dataset is None:
        raise FileFormatError(
            f"{file} does not contain results of udfdask: {advice}, and udfdask.io.open_file(path) "
            f"opens the data of a detector. {_ONLY}"
        )
    return dataset


def _read_zarr(folder: Path) -> xr.Dataset | None:
    """Return the results in a zarr store; None if it has no results."""
    import xarray as xr

    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose=f"reading {folder.name}") from error
    with reading(folder, "zarr"):
        opened = zarr.open(str(folder), mode="r")
        if marked_results(dict(opened.attrs)) is None:
            return None
        # keeps the precision of times; other units, such as "s", stay attributes
        times = xr.coders.CFDatetimeCoder(time_unit="s")
        with xr.open_zarr(folder, chunks=None, decode_times=times) as dataset:
            loaded = dataset.load()
    labels = [name for name, coord in loaded.coords.items() if coord.dtype.kind in "TU"]
    plain: xr.Dataset = loaded.drop_encoding()  # how it is stored, which a copy would keep
    plain = plain.assign_coords({name: plain[name].astype(object) for name in labels})
    plain.attrs = without_mark(loaded.attrs)
    return plain


def _read_hdf5(file: Path) -> xr.Dataset | None:
    """Return the results in an HDF5 file; None if it has no results."""
    import xarray as xr

    try:
        import h5py
    except ImportError as error:
        raise missing_package("h5py", purpose=f"reading {file.name}") from error
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}

    def collect(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        if item.is_scale:
            units = item.attrs.get("units")
            attrs = {} if units is None else {"units": units}
            values = item[()] if item.dtype.kind != "O" else item.asstr()[()]
            coords[name] = ((name,), values, attrs)
        else:
            attrs = {k: v for k, v in item.attrs.items() if k != "DIMENSION_LIST"}
            attrs.pop("DIMENSION_LABELS", None)
            variables[name] = (tuple(dim.label for dim in item.dims), item[()], attrs)

    with reading(file, "HDF5"), h5py.File(file, "r") as opened:
        attrs = dict(opened.attrs)
        if marked_results(attrs) is None:
            return None
        opened.visititems(collect)
    return xr.Dataset(variables, coords=coords, attrs=without_mark(attrs))


def _read_npz(file: Path) -> xr.Dataset | None:
    """Return the results in an .npz file; None if it has no results."""
    import xarray as xr

    with reading(file, "an .npz file"):
        members = read_npz(file)
        if members is None:
            return None
        with ZipFile(file) as archive:
            attrs = json.loads(archive.comment or b"{}")
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name, (values, member) in members.items():
        entry = (tuple(member.dims), values, dict(member.attrs))
        if member.is_result:
            variables[name] = entry
            for dim, even in member.positions.items():
                size = values.shape[member.dims.index(dim)]
                positions = even["offset"] + even["scale"] * np.arange(size)
                coords[dim] = ((dim,), positions, dict(even["attrs"]))
        else:
            labels = values.astype(object) if values.dtype.kind == "U" else values
            coords[name] = (entry[0], labels, entry[2])
    return xr.Dataset(variables, coords=coords, attrs=without_mark(attrs))


def run_in_file(path: Path) -> str:
    """Return the name of the run that has written a file or store; empty if it is not known."""
    try:
        if path.is_dir():
            import zarr

            attrs = dict(zarr.open_group(str(path), mode="r").attrs)
        elif path.suffix.lower() in {".h5", ".hdf5"}:
            import h5py

            with h5py.File(path, "r") as opened:
                attrs = dict(opened.attrs)
        else:
            with ZipFile(path) as archive:
                attrs = json.loads(archive.comment or b"{}")
        return str(attrs.get(RUN, ""))
    except Exception:  # noqa: BLE001  # a file of another program, of any kind
        return ""
