"""Open remote data of any format that can be read in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io.numpy_file import MAGIC
from udfdask.io.opened_file import OpenedFile
from udfdask.io.remote_file import RemoteFile
from udfdask.io.remote_location import Location
from udfdask.io.remote_npy import open_remote_npy
from udfdask.io.remote_references import SUFFIXES, reference_location
from udfdask.io.remote_zarr import is_remote_zarr, open_remote_zarr


def open_remote(
    location: Location,
    *,
    options: Mapping[str, Any] | None,
    dataset: str | int | None,
    sig_dims: int | None,
    chunks: Any,
) -> OpenedFile:
    """Open a zarr store, references to parts of files, or a .npy file."""
    suffix = location.path.suffix.lower()
    if suffix == ".npy":
        _refuse_dataset(location, dataset)
        return open_remote_npy(location, sig_dims=sig_dims, chunks=chunks)
    if suffix in SUFFIXES and "::" not in location.url:
        location = reference_location(location.url, options)
    elif not is_remote_zarr(location):
        if RemoteFile.of(location).begin(len(MAGIC)) == MAGIC:  # raises if there is no such file
            _refuse_dataset(location, dataset)
            return open_remote_npy(location, sig_dims=sig_dims, chunks=chunks)
        raise FileFormatError(
            f"{location.shown} is neither a zarr store nor a .npy file: download it; or write "
            "references to its chunks (kerchunk, VirtualiZarr) and open these; or pass nav_shape, "
            "sig_shape and dtype if it is a raw file"
        )
    return open_remote_zarr(location, dataset=dataset, sig_dims=sig_dims, chunks=chunks)


def _refuse_dataset(location: Location, dataset: str | int | None) -> None:
    """Raise if a dataset of a .npy file is asked for."""
    if dataset is not None:
        raise ArgumentValueError(
            f"dataset={dataset!r}: {location.shown} is a .npy file, which holds one array: leave "
            "out dataset"
        )
