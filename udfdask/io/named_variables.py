"""Describe computed results as arrays with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """Describe computed results for `write_zarr` and `write_npz`.

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
        dimensions have the names of the axes. Extra dimensions are named ``{udf}_{buffer}_dim_0``
        and so on.

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
    described: dict[str, dict[str, Variable]] = {}
    for udf, result in results.items():
        described[udf] = {}
        for buffer, array in result.items():
            variable = _variable(udf, buffer, result, np.asarray(array), axes, sig_dims)
            described[udf][buffer] = variable
            valid = np.asarray(result.valid_mask[buffer])
            if not valid.all():
                described[udf][f"{buffer}_valid"] = replace(variable, values=valid)
    return described


def planned_variables(
    results: Mapping[str, Any], axes: Sequence[Axis], sig_dims: int
) -> dict[str, Variable]:
    """Describe lazy results by their names in a file: as in `result_variables`, but all values 0.

    The values take no memory. Nothing is computed.
    """
    return {
        variable_name(udf, buffer): _variable(
            udf,
            buffer,
            result,
            np.broadcast_to(np.zeros((), array.dtype), array.shape),
            axes,
            sig_dims,
        )
        for udf, result in results.items()
        for buffer, array in result.items()
    }


def _variable(
    udf: str,
    buffer: str,
    result: Any,
    values: np.ndarray[Any, Any],
    axes: Sequence[Axis],
    sig_dims: int,
) -> Variable:
    """Return the variable of one result."""
    names = tuple(axis.name for axis in axes)
    nav = len(names) - sig_dims
    kind = str(result.buffers[buffer].kind)
    dims = {"nav": names[:nav], "sig": names[nav:]}.get(kind, ())
    name = variable_name(udf, buffer)
    extra = (f"{name}_dim_{index}" for index in range(values.ndim - len(dims)))
    attrs = {"kind": kind, "udf": udf}
    unit = result.units.get(buffer)
    if unit is not None:
        attrs["units"] = unit
    return Variable(dims=(*dims, *extra), values=values, attrs=attrs)


def variable_name(udf: str, buffer: str) -> str:
    """Return the name of a buffer in a file, the same for any number of UDFs."""
    return f"{udf}_{buffer}"


def variables_by_name(results: Mapping[str, Mapping[str, Variable]]) -> dict[str, Variable]:
    """Return the variables of all UDFs by their names in a file."""
    return {
        variable_name(udf, buffer): variable
        for udf, buffers in results.items()
        for buffer, variable in buffers.items()
    }
