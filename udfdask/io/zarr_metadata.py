"""Describe an open zarr array: shape, stored chunks, names of its dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError
from udfdask.io.choose_dataset import Candidate
from udfdask.io.zarr_chunk_files import stored_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMetadata(Candidate):
    """The metadata of an array."""

    stored: tuple[int, ...]
    """Shape of the part of the array in one file: a shard or a chunk."""
    dims: tuple[str | None, ...]
    """Names of the dimensions, as xarray writes them."""
    unit: Any
    """Unit of the values."""

    @classmethod
    def of(cls, array: Any, name: str, *, where: str) -> ArrayMetadata:
        """Return the metadata of an open array; raise if they are inconsistent.

        `name` is its path in the store, and `where` is the file that contains the metadata.
        """
        shape = tuple(int(size) for size in array.shape)
        stored = tuple(int(size) for size in stored_shape(array))
        dims = getattr(getattr(array, "metadata", None), "dimension_names", None)
        dims = dims or array.attrs.get("_ARRAY_DIMENSIONS") or [None] * len(shape)
        _check_grid(where, shape, stored, dims)
        return cls(
            name=name,
            shape=shape,
            dtype=np.dtype(array.dtype),
            stored=stored,
            dims=tuple(dims),
            unit=array.attrs.get("units"),
        )


def _check_grid(where: str, shape: tuple[int, ...], stored: tuple[int, ...], dims: Any) -> None:
    """Raise if the metadata of an array are inconsistent; zarr does not check them."""
    if len(stored) != len(shape) or min(shape, default=0) < 0 or min(stored, default=1) < 1:
        raise FileFormatError(
            f"{where} describes an array of shape {shape} in chunks of {stored}: expected one "
            "positive chunk size for each dimension. Restore the file from a copy"
        )
    named = isinstance(dims, list | tuple) and all(isinstance(d, str | None) for d in dims)
    if not named or len(dims) != len(shape):
        raise FileFormatError(
            f"{where} names the dimensions {dims!r}: expected one name for each of the "
            f"{len(shape)} dimensions of shape {shape}. Restore the file from a copy, or repair it"
        )
