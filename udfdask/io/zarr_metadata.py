"""Describe an open zarr array: shape, stored chunks, names of its dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError
from udfdask.geometry.axes import Axis
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


def ome_axes(attributes: Any, path: str) -> list[Axis | None] | None:
    """Return the axes that OME-Zarr gives the array at `path` of a group; None for other arrays.

    `attributes` are those of the group. Version 0.5 keeps its metadata under "ome".
    """
    try:
        for image in _multiscales(attributes):
            for dataset in image["datasets"]:
                if dataset["path"] == path:
                    return _scaled_axes(image, dataset)
    except (KeyError, TypeError, ValueError, AttributeError):  # not as the format says
        return None
    return None


def ome_path(attributes: Any) -> str | None:
    """Return the path of the array with the full resolution in a group of OME-Zarr."""
    try:
        return str(_multiscales(attributes)[0]["datasets"][0]["path"])
    except (LookupError, TypeError, AttributeError):
        return None


def _multiscales(attributes: Any) -> Any:
    """Return the images that the attributes of a group describe."""
    return attributes.get("ome", attributes).get("multiscales", ())


def _scaled_axes(image: Any, dataset: Any) -> list[Axis | None]:
    """Return the axes of one resolution of an image."""
    axes = [axis if isinstance(axis, dict) else {"name": axis} for axis in image["axes"]]
    scale, offset = np.ones(len(axes)), np.zeros(len(axes))
    for each in (dataset, image):
        for step in each.get("coordinateTransformations", ()):
            if step["type"] == "scale":
                scale, offset = scale * step["scale"], offset * step["scale"]
            elif step["type"] == "translation":
                offset = offset + step["translation"]
    if not (np.isfinite(scale).all() and scale.all() and np.isfinite(offset).all()):
        raise ValueError("scales must be finite and not zero")
    return [
        Axis(name=axis["name"], unit=axis.get("unit"), scale=float(step), offset=float(first))
        for axis, step, first in zip(axes, scale, offset, strict=True)
    ]
