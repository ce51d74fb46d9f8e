"""Read what an HDF5 file says about a dataset: its axes, the unit of its values, its signal.

Axes are described by dimension scales of HDF5, by attributes of NeXus, by the datasets ``dim1`` and
so on of EMD files, or in the properties of Nion Swift.

https://manual.nexusformat.org/classes/base_classes/NXdata.html, https://emdatasets.com/format
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis, axis_of_values

_SIG_DIMS = {"spectrum": 1, "image": 2}
"""Signal dimensions by the attribute `interpretation` of NeXus."""


_OF_PY4DSTEM = {"Rx": "y", "Ry": "x", "Qx": "ky", "Qy": "kx"}
"""Axes of py4DSTEM, whose x is the first axis: it points down on a screen."""


Description = tuple[list[Axis | None], str | None, int]
"""Axes, unit and number of signal dimensions of a dataset; None and 0 if not known."""


def texts(value: Any) -> list[str]:
    """Return the strings in an attribute of a file: a str, bytes, or an array of them."""
    found = []
    for each in np.ravel(np.asarray(value)).tolist():
        # h5py returns bytes that are not UTF-8 as surrogates in a string
        raw = each.encode(errors="surrogateescape") if isinstance(each, str) else each
        if isinstance(raw, bytes):
            try:
                found.append(raw.decode().strip(" \0"))
            except UnicodeDecodeError:  # in older files
                found.append(raw.decode("latin-1").strip(" \0"))
    return found


def text(value: Any) -> str | None:
    """Return the only string in an attribute of a file; None if there are none or several."""
    found = [each for each in texts(value) if each]
    return found[0] if len(found) == 1 else None


def get_item(group: Any, path: str) -> Any:
    """Return an object of a group; None if there is none, or a link leads nowhere."""
    try:
        return group.get(path)
    except (OSError, RuntimeError):  # a file that is not HDF5, or a circle of links
        return None


def describe(group: Any, dataset: Any, shape: tuple[int, ...]) -> Description:
    """Return what a file says about a dataset, or parts, that were found through a group."""
    if (found := _of_nion(dataset, len(shape))) is not None:
        return found
    axes = [_axis(group, dataset, dim, n) for dim, n in enumerate(shape)]
    return axes, text(dataset.attrs.get("units")), sig_dims(group, dataset)


def sig_dims(group: Any, dataset: Any) -> int:
    """Return the number of signal dimensions that NeXus says; 0 if it does not say it."""
    for item in (dataset, group):
        known = _SIG_DIMS.get(text(item.attrs.get("interpretation")) or "", 0)
        if 0 < known <= dataset.ndim:
            return known
    return 0


def _axis(group: Any, dataset: Any, dim: int, n: int) -> Axis | None:
    """Return the axis of a dimension with `n` positions; None if there is none."""
    labels = texts(dataset.attrs.get("DIMENSION_LABELS", []))
    label = labels[dim] if len(labels) == dataset.ndim else ""
    try:  # HDF5's own functions for scales crash if their attributes have another form
        scale = dataset.file[dataset.attrs["DIMENSION_LIST"][dim][0]]
        if text(scale.attrs.get("CLASS")) == "DIMENSION_SCALE":
            return _axis_of_dataset(label or str(scale.name).rpartition("/")[2], scale, n)
    # the scale may have stayed in another file, from which the dataset was copied
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError):
        pass
    is_emd = "emd_group_type" in group.attrs
    axis = (_emd_axis if is_emd else _nexus_axis)(group, dataset, dim, n)
    return axis or (Axis(name=label) if label else None)


def _axis_of_dataset(name: str, values: Any, n: int) -> Axis:
    """Return the axis whose `n` positions, or the edges around them, are in a dataset."""
    if getattr(values, "shape", None) not in ((n,), (n + 1,)) or values.dtype.kind not in "iuf":
        return Axis(name=name)
    positions = values[()].astype(np.float64)  # sums of small integers would overflow
    if positions.size > n:
        positions = (positions[1:] + positions[:-1]) / 2
    return axis_of_values(name, positions, text(values.attrs.get("units")))


def _nexus_axis(group: Any, dataset: Any, dim: int, n: int) -> Axis | None:
    """Return the axis that `axes` and ``{name}_indices`` of NXdata have for a dimension."""
    names: list[str] = []
    for owner in (group, dataset):
        names = names or texts(owner.attrs.get("axes"))
        if len(names) == 1 and names[0] not in group:
            names = [name for name in re.split(r"[:,\s\[\]]+", names[0]) if name]
    for position, name in enumerate(names):
        indices = np.ravel(group.attrs.get(f"{name}_indices", position))
        if name not in ("", ".") and np.array_equal(indices, [dim]):
            return _axis_of_dataset(name, get_item(group, name), n)
    return None


def _emd_axis(group: Any, dataset: Any, dim: int, n: int) -> Axis | None:
    """Return the axis in ``dim1``, or from EMD 1.0 on ``dim0``: all positions or the first two."""
    values = group.get(f"dim{dim + ('dim0' not in group)}")
    if getattr(values, "ndim", 0) != 1 or values.dtype.kind not in "iuf" or not values.size:
        return None
    name = text(values.attrs.get("name")) or ""
    if text(group.attrs.get("python_class")) == "DataCube":
        name = _OF_PY4DSTEM.get(name, name)
    unit = text(values.attrs.get("units")) or ""
    unit = {"A": "Å", "A^-1": "1/Å"}.get(unit, unit)  # of py4DSTEM; no axis is in amperes
    if unit.startswith("["):  # "[n_m]"
        unit = unit.strip("[]").replace("_", "")
    positions = values[()].astype(np.float64)
    if positions.size == 2:
        positions = positions[0] + np.diff(positions) * np.arange(n)
    known = None if unit in ("", "unknown", "pixels", "px") else unit
    return axis_of_values(name, positions, known) if positions.size == n else Axis(name=name)


def nion_properties(dataset: Any) -> dict[str, Any]:
    """Return the properties that Nion Swift writes with a dataset; none for other programs."""
    try:
        properties = json.loads(text(dataset.attrs.get("properties")) or "")
    except ValueError:
        return {}
    return properties if isinstance(properties, dict) else {}


def _of_nion(dataset: Any, ndim: int) -> Description | None:
    """Return what the properties that Nion Swift writes with a dataset say; None without them."""
    properties = nion_properties(dataset)
    if "dimensional_calibrations" not in properties:
        return None
    calibrations = properties["dimensional_calibrations"] or ()
    axes: list[Axis | None] = [
        Axis(
            name="",
            unit=given.get("units") or None,
            scale=given.get("scale") or 1.0,
            offset=given.get("offset") or 0.0,
        )
        for given in calibrations
    ]
    known = properties.get("datum_dimension_count") or 0
    unit = (properties.get("intensity_calibration") or {}).get("units") or None
    return axes if len(axes) == ndim else [None] * ndim, unit, known if known <= ndim else 0
