"""Describe computed results as arrays with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One result array with names for its dimensions."""

    dims: tuple[str, ...]
    """One name for each dimension."""
    values: np.ndarray[Any, Any]
    """The array."""
    attrs: Mapping[str, str] = field(default_factory=dict)
    """Attributes, such as the kind of the buffer."""


def result_variables(
    results: Mapping[str, Any], axes: Sequence[Axis], sig_dims: int
) -> dict[str, dict[str, Variable]]:
    """Describe computed results for `write_zarr`.

    Parameters
    ----------
    results : mapping of str to Result
        Computed results by the names of their UDFs.
    axes : sequence of Axis
        One axis for each dimension of the data, ``(*nav, *sig)``.
    sig_dims : int
        Number of signal dimensions.

    Returns
    -------
    dict of str to dict of str to Variable
        The buffers of each UDF. If a buffer is not valid everywhere, for example outside the region
        of interest, there is also a boolean variable ``{buffer}_valid``. Navigation and signal
        dimensions have the names of the axes. Extra dimensions are named ``{buffer}_dim_0`` and so
        on, or ``{udf}_{buffer}_dim_0`` if there are several UDFs.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import Axis, run_udf
    >>> from udfdask.io import result_variables
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((3, 8, 8), chunks=(1, 8, 8))
    >>> axes = [Axis(name=name) for name in ("time", "y", "x")]
    >>> done = run_udf(x, SumSigUDF(), sig_dims=2).compute()
    >>> result_variables({"sumsig": done}, axes, 2)["sumsig"]["intensity"].dims
    ('time',)
    """
    names = tuple(axis.name for axis in axes)
    nav = len(names) - sig_dims
    by_kind = {"nav": names[:nav], "sig": names[nav:]}
    described: dict[str, dict[str, Variable]] = {}
    for udf, result in results.items():
        described[udf] = {}
        for buffer, array in result.items():
            values = np.asarray(array)
            kind = str(result.buffers[buffer].kind)
            dims = by_kind.get(kind, ())
            variable = variable_name(udf, buffer, alone=len(results) == 1)
            extra = (f"{variable}_dim_{index}" for index in range(values.ndim - len(dims)))
            attrs = {"kind": kind, "udf": udf}
            unit = result.units.get(buffer)
            if unit is not None:
                attrs["units"] = unit
            dims = (*dims, *extra)
            described[udf][buffer] = Variable(dims=dims, values=values, attrs=attrs)
            valid = np.asarray(result.valid_mask[buffer])
            if not valid.all():
                described[udf][f"{buffer}_valid"] = Variable(dims=dims, values=valid, attrs=attrs)
    return described


def variable_name(udf: str, buffer: str, *, alone: bool) -> str:
    """Return the name of a buffer in a file; `alone` if there are no other UDFs."""
    return buffer if alone else f"{udf}_{buffer}"


def variables_by_name(results: Mapping[str, Mapping[str, Variable]]) -> dict[str, Variable]:
    """Return the variables of all UDFs by their names in a file."""
    return {
        variable_name(udf, buffer, alone=len(results) == 1): variable
        for udf, buffers in results.items()
        for buffer, variable in buffers.items()
    }
