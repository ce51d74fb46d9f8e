"""Describe computed results as arrays with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One result array with names for its dimensions."""

    dims: tuple[str, ...]
    """One name for each dimension."""
    values: np.ndarray[Any, Any]
    """The array."""
    attrs: Mapping[str, str] = field(default_factory=dict)
    """Attributes, such as the kind of the buffer."""
    extra_axes: tuple[Axis, ...] = ()
    """Axes of the last dimensions, with their names; the data have the axes of the others."""


def axes_of(variable: Variable, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the axis of each dimension of a variable; `axes` are those of the data."""
    known = {axis.name: axis for axis in (*axes, *variable.extra_axes)}
    return tuple(known.get(dim, Axis(name=dim)) for dim in variable.dims)


def positions_in_file(
    variables: Mapping[str, Variable], axes: Sequence[Axis]
) -> dict[str, tuple[Axis, np.ndarray[Any, Any]]]:
    """Return the axis of each dimension of a file that has coordinates, and its positions.

    Labels are texts of dtype object. Extra dimensions that are only numbered have no coordinates.
    """
    names = {axis.name for axis in axes}
    sizes: dict[str, int] = {}
    found: dict[str, tuple[Axis, np.ndarray[Any, Any]]] = {}
    for name, variable in variables.items():
        shape = variable.values.shape
        for dim, axis, size in zip(variable.dims, axes_of(variable, axes), shape, strict=True):
            if sizes.setdefault(dim, size) != size:
                raise ArgumentValueError(
                    f"dimension {dim!r} of {name!r} has {size} positions and elsewhere "
                    f"{sizes[dim]}: give one of them another name"
                )
            is_known = dim in names or axis != Axis(name=dim)
            if is_known and dim not in variables:
                found[dim] = (axis, _positions(axis, size))
    return found


def _positions(axis: Axis, size: int) -> np.ndarray[Any, Any]:
    """Return the labels along an axis, or the values of its positions."""
    if axis.labels is not None:
        return np.array(axis.labels, dtype=object)
    return axis.positions(size)


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
        dimensions have the names of the axes, and extra dimensions those of `Result.extra_axes`.
        If such a name is taken, the name of the UDF is put in front of it. Extra dimensions without
        a name are called ``{udf}_{buffer}_dim_0`` and so on.

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
    extra = _extra_axes(results, axes)
    for udf, result in results.items():
        described[udf] = {}
        for buffer, array in result.items():
            own = extra[udf, buffer]
            variable = _variable(udf, buffer, result, np.asarray(array), axes, sig_dims, own)
            described[udf][buffer] = variable
            valid = np.asarray(result.valid_mask[buffer])
            if not valid.all():
                attrs = {k: v for k, v in variable.attrs.items() if k != "units"}
                described[udf][f"{buffer}_valid"] = replace(variable, values=valid, attrs=attrs)
    return described


def planned_variables(
    results: Mapping[str, Any], axes: Sequence[Axis], sig_dims: int
) -> dict[str, Variable]:
    """Describe lazy results by their names in a file: as in `result_variables`, but all values 0.

    The values take no memory. Nothing is computed.
    """
    extra = _extra_axes(results, axes)
    return {
        variable_name(udf, buffer): _variable(
            udf,
            buffer,
            result,
            np.broadcast_to(np.zeros((), array.dtype), array.shape),
            axes,
            sig_dims,
            extra[udf, buffer],
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
    extra: tuple[Axis, ...],
) -> Variable:
    """Return the variable of one result; `extra` are its extra axes with their names in a file."""
    names = tuple(axis.name for axis in axes)
    nav = len(names) - sig_dims
    kind = str(result.buffers[buffer].kind)
    dims = {"nav": names[:nav], "sig": names[nav:]}.get(kind, ())
    attrs = {"kind": kind, "udf": udf}
    unit = result.units.get(buffer)
    if unit is not None:
        attrs["units"] = unit
    return Variable(
        dims=(*dims, *(axis.name for axis in extra)), values=values, attrs=attrs, extra_axes=extra
    )


def _extra_axes(
    results: Mapping[str, Any], axes: Sequence[Axis]
) -> dict[tuple[str, str], tuple[Axis, ...]]:
    """Return the extra axes of each buffer of each UDF, with names that a file can have.

    In a file, a name means one axis with one size, and is not the name of a variable.
    """
    names = {variable_name(udf, buffer) for udf, result in results.items() for buffer in result}
    taken = {axis.name for axis in axes} | names | {f"{name}_valid" for name in names}
    meaning: dict[str, tuple[Axis, int]] = {}
    extra: dict[tuple[str, str], tuple[Axis, ...]] = {}
    for udf, result in results.items():
        for buffer, spec in result.buffers.items():
            found: list[Axis] = []
            declared = result.extra_axes.get(buffer, ())
            for k, (axis, n) in enumerate(zip(declared, spec.extra_shape, strict=True)):
                name = axis.name
                if axis == Axis(name=f"{buffer}_dim_{k}"):  # the name of an axis without a name
                    name = f"{variable_name(udf, buffer)}_dim_{k}"
                mine = {one.name for one in found}
                while name in taken | mine or meaning.get(name, (axis, n)) != (axis, n):
                    name = f"{udf}_{axis.name}" if name == axis.name else f"{name}_"
                meaning[name] = (axis, n)
                found.append(replace(axis, name=name))
            extra[udf, buffer] = tuple(found)
    return extra


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
