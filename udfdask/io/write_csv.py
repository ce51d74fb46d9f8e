"""Write computed results to a table in a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, axes_of

Texts = np.ndarray[Any, Any]
"""An array of texts."""

_MOST_DIMS = 2


def write_csv(
    path: Path, variables: Mapping[str, Variable], axes: Sequence[Axis], attrs: Mapping[str, str]
) -> None:
    """Write results to a CSV file; `axes` are those of the data.

    The table has a line for each position, a column for each axis, and a column called
    ``{udf}_{buffer}`` for each result. Cells of values that are not valid are empty.
    """
    header, columns = zip(*_columns(variables, axes), strict=True)
    cells = [column.reshape(-1) for column in np.broadcast_arrays(*columns)]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*cells, strict=True))


def csv_obstacle(variables: Mapping[str, Variable]) -> str:
    """Return why a table cannot hold these results; empty if it can."""
    if not variables:
        return "there is no result to write"
    for name, variable in variables.items():
        if variable.values.dtype.kind not in "biufcmM":
            return f"{name} contains {variable.values.dtype} values, not numbers"
        if variable.values.ndim > _MOST_DIMS:
            return f"a table has one or two axes, but {name} has {variable.values.ndim}"
    by_dims = {variable.dims: name for name, variable in variables.items() if variable.dims}
    if len(by_dims) > 1:
        (dims, one), (others, other) = list(by_dims.items())[:2]
        return (
            f"all results of a table have the same axes, but {one} has {', '.join(dims)} and "
            f"{other} has {', '.join(others)}"
        )
    return ""


def _columns(
    variables: Mapping[str, Variable], axes: Sequence[Axis]
) -> Iterator[tuple[str, Texts]]:
    """Yield the header and the cells of each column, in shapes that NumPy broadcasts."""
    masks = {each.mask_of: each for each in variables.values() if each.mask_of}
    results = {name: variable for name, variable in variables.items() if not variable.mask_of}
    largest = max(results.values(), key=lambda variable: variable.values.ndim)
    grid = np.ogrid[tuple(slice(size) for size in largest.values.shape)]
    for axis, indices in zip(axes_of(largest, axes), grid, strict=True):
        header = f"{axis.name} ({axis.unit})" if axis.unit else axis.name
        yield header, _positions(axis, indices)
    for name, variable in results.items():
        texts = _texts(variable.values)
        if name in masks:
            texts = np.where(masks[name].values, texts, "")
        yield name, texts


def _positions(axis: Axis, indices: np.ndarray[Any, Any]) -> Texts:
    """Return positions along an axis as texts, in the shape of the indices."""
    if axis.labels is not None:
        return cast("Texts", np.array(axis.labels)[indices])
    if axis == Axis(name=axis.name):
        return indices.astype(str)
    positions = axis.positions(int(indices.max(initial=-1)) + 1)[indices]
    # not more digits than the scale has: 3 * 0.1 is not 0.3
    return np.array([f"{x:.12g}" for x in positions.flat]).reshape(indices.shape)


def _texts(values: np.ndarray[Any, Any]) -> Texts:
    """Return numbers as texts from which the same numbers are read, in the same shape."""
    texts = values.astype(str)
    return np.char.strip(texts, "()") if values.dtype.kind == "c" else texts
