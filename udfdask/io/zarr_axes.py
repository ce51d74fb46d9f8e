"""Find the axes of a zarr array: those of OME-Zarr, or named dimensions with coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis, axis_of_values


def zarr_axes(root: Any, name: str, array: Any) -> list[Axis | None]:
    """Return the axes of an array; None where nothing is known about an axis.

    `root` is a zarr group with the array `name`, or None if there is no group. Positions are the
    values of an array in the same group that has the name of the dimension, as xarray writes them.
    """
    folders = name.split("/")[:-1]
    for depth in reversed(range(len(folders) + 1 if root is not None else 0)):
        inside = "/".join(folders[:depth])
        group = root[inside] if inside else root
        axes = ome_axes(dict(group.attrs), "/".join(name.split("/")[depth:]))
        if axes is not None and len(axes) == array.ndim:
            return axes
    dims = getattr(getattr(array, "metadata", None), "dimension_names", None)
    dims = dims or array.attrs.get("_ARRAY_DIMENSIONS") or [None] * array.ndim
    return [
        _coordinate(root, folders, str(dim), size) if dim else None
        for dim, size in zip(dims, array.shape, strict=True)
    ]


def _coordinate(root: Any, folders: list[str], dim: str, size: int) -> Axis:
    """Return the axis of a dimension, with positions if the group contains a coordinate."""
    dim = dim.rpartition("/")[2]  # kerchunk writes the whole path
    found: Any = None if root is None else root.get("/".join([*folders, dim]))
    if getattr(found, "shape", None) != (size,) or found.dtype.kind not in "iuf":
        return Axis(name=dim)
    return axis_of_values(dim, found[:], found.attrs.get("units"))


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
