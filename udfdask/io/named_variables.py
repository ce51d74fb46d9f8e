"""Describe results as arrays with named dimensions, as they are in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis

VALID_MASK = "ancillary_variables"
"""Attribute of the CF conventions: the name of the variable that says where a result is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One result array with names for its dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.io import Variable
    >>> image = Variable(dims=("y", "x"), values=np.zeros((2, 3)), attrs={"units": "counts"})
    >>> dict(zip(image.dims, image.values.shape, strict=True))
    {'y': 2, 'x': 3}
    """

    dims: tuple[str, ...]
    """One name for each dimension."""
    values: np.ndarray[Any, Any]
    """The array."""
    attrs: Mapping[str, str] = field(default_factory=dict)
    """Attributes, such as the kind of the buffer."""
    extra_axes: tuple[Axis, ...] = ()
    """Axes of the last dimensions, with their names; the data have the axes of the others."""
    mask_of: str = ""
    """The name in a file of the result whose valid mask this is; empty for results."""


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
                found[dim] = (axis, positions_along(axis, size))
    return found


def positions_along(axis: Axis, size: int) -> np.ndarray[Any, Any]:
    """Return the labels along an axis, or the values of its positions."""
    if axis.labels is not None:
        # as objects: zarr warns about text of fixed length, which its format 3 does not specify
        return np.array(axis.labels, dtype=object)
    return axis.positions(size)


def result_variables(
    results: Mapping[str, Any], axes: Sequence[Axis] | None = None, sig_dims: int | None = None
) -> dict[str, dict[str, Variable]]:
    """Describe computed results for `write_zarr` and `write_npz`.

    Parameters
    ----------
    results : mapping of str to Result
        Computed results by the names of their UDFs.
    axes : sequence of Axis, optional
        One axis for each dimension of the data, ``(*nav, *sig)``. By default those of each result.
    sig_dims : int, optional
        Number of signal dimensions, if `axes` are given.

    Returns
    -------
    dict of str to dict of str to Variable
        The buffers of each UDF. If a buffer is not valid everywhere, for example outside the region
        of interest, there is also a boolean variable ``{buffer}_valid``. Navigation and signal
        dimensions have the names of the axes, and extra dimensions those of `Result.extra_axes`.
        If such a name is taken, the name of the UDF is put in front of it. Extra dimensions without
        a name are called ``{udf}_{buffer}_dim_0`` and so on.

    Raises
    ------
    ArgumentTypeError
        If only one of `axes` and `sig_dims` is given.
    ArgumentValueError
        If two results have the same name in a file, or a name is impossible there.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import Axis, run_udf
    >>> from udfdask.io import result_variables
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((3, 8, 8), chunks=(1, 8, 8))
    >>> axes = [Axis(name=name) for name in ("time", "y", "x")]
    >>> done = run_udf(x, SumSigUDF(), sig_dims=2, axes=axes).compute()
    >>> result_variables({"sumsig": done})["sumsig"]["intensity"].dims
    ('time',)
    """
    described: dict[str, dict[str, Variable]] = {udf: {} for udf in results}
    names = _variable_names(results)
    for (udf, buffer), own in _axes_in_file(results, axes, sig_dims).items():
        result, buffers = results[udf], described[udf]
        buffers[buffer] = variable = _variable(udf, buffer, result, np.asarray(result[buffer]), own)
        valid = np.asarray(result.valid_mask[buffer])
        if not valid.all():
            attrs = {k: v for k, v in variable.attrs.items() if k != "units"}
            mask_name = f"{buffer}_valid"
            while variable_name(udf, mask_name) in names:
                mask_name += "_"
            own_name = variable_name(udf, buffer)
            buffers[mask_name] = replace(variable, values=valid, attrs=attrs, mask_of=own_name)
            pointer = {VALID_MASK: variable_name(udf, mask_name)}
            buffers[buffer] = replace(variable, attrs={**variable.attrs, **pointer})
    return described


def planned_variables(results: Mapping[str, Any]) -> dict[str, Variable]:
    """Describe lazy results by their names in a file: as in `result_variables`, but all values 0.

    The values take no memory. Nothing is computed.
    """
    return variables_by_name(planned_by_udf(results))


def planned_by_udf(results: Mapping[str, Any]) -> dict[str, dict[str, Variable]]:
    """Describe lazy results as `planned_variables` does, by UDF and buffer."""
    _variable_names(results)
    planned: dict[str, dict[str, Variable]] = {udf: {} for udf in results}
    for (udf, buffer), own in _axes_in_file(results).items():
        array = results[udf][buffer]
        values = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        planned[udf][buffer] = _variable(udf, buffer, results[udf], values, own)
    return planned


def axes_of_data(results: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of the data that the results of a file have, with their names there."""
    found = {axis.name: axis for own in _axes_in_file(results).values() for axis in own.data}
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """The axes of one result, with the names that they have in a file."""

    data: tuple[Axis, ...]
    """Those of the data."""
    extra: tuple[Axis, ...]
    """Those of its extra dimensions."""


def _variable(
    udf: str, buffer: str, result: Any, values: np.ndarray[Any, Any], own: _Axes
) -> Variable:
    """Return the variable of one result."""
    attrs = {"kind": str(result.buffers[buffer].kind), "udf": udf, **result._info.origin}
    unit = result.units.get(buffer)
    if unit is not None:
        attrs["units"] = unit
    dims = tuple(axis.name for axis in (*own.data, *own.extra))
    return Variable(dims=dims, values=values, attrs=attrs, extra_axes=own.extra)


def _variable_names(results: Mapping[str, Any]) -> set[str]:
    """Return the names of all results in a file; raise if two of them have the same name."""
    counts = Counter(
        variable_name(udf, buffer) for udf, result in results.items() for buffer in result
    )
    for name, count in counts.items():
        if "\0" in name:
            raise ArgumentValueError(f"{name!r} is not a possible name in a file: use another one")
        if count > 1:
            raise ArgumentValueError(
                f"{count} results would be called {name!r} in the file, after their UDF and "
                "buffer: give the UDFs other names"
            )
    return set(counts)


def _axes_in_file(
    results: Mapping[str, Any], axes: Sequence[Axis] | None = None, sig_dims: int | None = None
) -> dict[tuple[str, str], _Axes]:
    """Return the axes of each buffer of each UDF, with names that they can have in one file.

    In a file, a name means one axis with one size, and is not the name of a variable. `axes` are
    those of the data, by default those of each result.
    """
    names = _variable_names(results)
    taken = names | {f"{name}_valid" for name in names}
    meaning: dict[str, tuple[Axis, int]] = {}
    data: dict[tuple[str, str], tuple[Axis, ...]] = {}
    for udf, buffer, sizes, _ in _buffers(results):
        given = _leading_axes(results[udf], buffer, axes, sig_dims)
        data[udf, buffer] = _named_apart(udf, given, sizes, (), meaning)
    taken = taken.union(meaning)
    meaning = {}
    found = {}
    for udf, buffer, _, sizes in _buffers(results):
        declared = [
            # the name of an axis without a name
            replace(axis, name=f"{variable_name(udf, buffer)}_dim_{k}")
            if axis == Axis(name=f"{buffer}_dim_{k}")
            else axis
            for k, axis in enumerate(results[udf].extra_axes.get(buffer, ()))
        ]
        extra = _named_apart(udf, declared, sizes, taken, meaning)
        found[udf, buffer] = _Axes(data=data[udf, buffer], extra=extra)
    return found


def _buffers(
    results: Mapping[str, Any],
) -> Iterator[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    """Yield the UDF, the name and the sizes of each buffer, those of the data and extra ones."""
    for udf, result in results.items():
        for buffer, spec in result.buffers.items():
            shape, extra = tuple(result[buffer].shape), tuple(spec.extra_shape)
            yield udf, buffer, shape[: len(shape) - len(extra)], extra


def _leading_axes(
    result: Any, buffer: str, axes: Sequence[Axis] | None, sig_dims: int | None
) -> Sequence[Axis]:
    """Return the axes of the data that a buffer has; by default, the result knows them."""
    if (axes is None) != (sig_dims is None):
        raise ArgumentTypeError("pass axes and sig_dims together, or neither of them")
    if axes is None or sig_dims is None:
        axes, sig_dims = result.calibration.axes, len(result.sig_shape)
    n_nav = len(axes) - sig_dims
    kind = str(result.buffers[buffer].kind)
    return {"nav": axes[:n_nav], "sig": axes[n_nav:]}.get(kind, ())


def _named_apart(
    udf: str,
    axes: Sequence[Axis],
    sizes: Sequence[int],
    taken: Collection[str],
    meaning: dict[str, tuple[Axis, int]],
) -> tuple[Axis, ...]:
    """Return axes with names that are not taken, and add what these names mean to `meaning`."""
    found: list[Axis] = []
    for axis, n in zip(axes, sizes, strict=True):
        name, mine = axis.name, {one.name for one in found}
        while name in taken or name in mine or meaning.get(name, (axis, n)) != (axis, n):
            name = f"{udf}_{axis.name}" if name == axis.name else f"{name}_"
        meaning[name] = (axis, n)
        found.append(replace(axis, name=name))
    return tuple(found)


def name_of_class(name: str) -> str:
    """Return the name of the results of a class of UDFs."""
    return name.removesuffix("UDF").lower() or name.lower()


def variable_name(udf: str, buffer: str) -> str:
    """Return the name of a buffer in a file, the same for any number of UDFs."""
    return f"{udf}_{buffer}".replace("/", "_")  # which stores would take for a path


def variables_by_name(results: Mapping[str, Mapping[str, Variable]]) -> dict[str, Variable]:
    """Return the variables of all UDFs by their names in a file."""
    return {
        variable_name(udf, buffer): variable
        for udf, buffers in results.items()
        for buffer, variable in buffers.items()
    }
