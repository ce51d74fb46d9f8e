"""Read the axes that a NeXus file names in attributes, as the standard says for NXdata.

https://manual.nexusformat.org/classes/base_classes/NXdata.html
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis, axis_of_values


def nexus_axis(dataset: Any, dim: int) -> Axis | None:
    """Return the axis that the group of an HDF5 dataset has for a dimension; None if it has none.

    The attribute `axes` of the group, in older files of the dataset, has a name for each dimension.
    The attribute ``{name}_indices`` of the group, if it is there, says which dimension it is. A
    dataset of that name has the values.
    """
    group = dataset.parent
    names = _names(group.attrs.get("axes")) or _names(dataset.attrs.get("axes"))
    for position, name in enumerate(names):
        indices = np.ravel(group.attrs.get(f"{name}_indices", position)).tolist()
        if name == "." or indices != [dim]:
            continue
        values = group.get(name)
        if getattr(values, "shape", None) != dataset.shape[dim : dim + 1]:
            return Axis(name=name)
        return axis_of_values(name, values[()], values.attrs.get("units"))
    return None


def _names(given: Any) -> list[str]:
    """Return the names in an attribute: a list of texts, or one text such as "y:x"."""
    if isinstance(given, str):
        return [name for name in re.split(r"[:,\s\[\]]+", given) if name]
    return [name for name in np.ravel(given).tolist() if isinstance(name, str)]
