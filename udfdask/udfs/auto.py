"""Runs a plain function on each frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.nested_collections import with_all
from udfdask.udf.promises import Promises

_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Kinds of numbers: each can hold those of a lower rank."""
_EACH = "each_"
"""What the names of parameters with a value for each frame begin with."""


class AutoUDF(UDF):
    """Run a function on each frame and collect what it returns.

    Parameters
    ----------
    f : callable
        Called as ``f(frame, **kwargs)`` with each frame, shape `sig`; returns an array or scalar.
    output_shape : tuple of int, optional
        Shape of what `f` returns. If it or `output_dtype` is missing, `f` is called once, on a
        frame of ones, when the run is planned.
    output_dtype : dtype-like, optional
        Dtype of what `f` returns.
    ragged : bool
        `f` returns something of another shape for each frame; the result has dtype object.
    kwargs : dict, optional
        Parameters of `f`: constant ones, and `UDF.aux_data` of kind nav, of which `f` gets the
        value for its frame.
    **each : AuxData
        Where a run keeps those of `kwargs` that have a value for each frame.

    Raises
    ------
    ArgumentTypeError
        If `f` is not callable, `kwargs` no mapping, or an argument is none of these.

    Notes
    -----
    Buffer `result`, kind nav, shape (*nav, *output_shape).

    A run stops with a `UDFError` where `f` returns something of another shape, or, without
    `output_dtype`, something that the dtype found cannot hold, as floats where that is an integer.

    Examples
    --------
    >>> import functools, dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import AutoUDF
    >>> x = da.ones((2, 2, 4, 3))
    >>> udf = AutoUDF(f=functools.partial(np.sum, axis=-1))
    >>> ud.run_udf(x, udf)["result"].shape
    (2, 2, 4)
    """

    promises = Promises(declares_once=True, processes_stacks=True)

    def __init__(
        self,
        f: Callable[..., Any],
        output_shape: tuple[int, ...] | None = None,
        output_dtype: Any = None,
        ragged: bool = False,
        kwargs: Mapping[str, Any] | None = None,
        **each: Any,
    ) -> None:
        given: Any = f  # whatever the annotation says
        if isinstance(given, UDF) or (isinstance(given, type) and issubclass(given, UDF)):
            name = given.__name__ if isinstance(given, type) else type(given).__name__
            raise ArgumentTypeError(
                f"expected a function of a frame, got the UDF {name}: a UDF runs with run_udf"
            )
        if not callable(f):
            raise ArgumentTypeError(f"expected a function of a frame, got {type(f).__name__}")
        if not (kwargs is None or isinstance(kwargs, Mapping)):
            raise ArgumentTypeError(
                "kwargs must be a mapping of names to parameters of the function, not "
                f"{type(kwargs).__name__}"
            )
        if unknown := sorted(name for name in each if not name.startswith(_EACH)):
            raise ArgumentTypeError(
                f"AutoUDF takes no argument {', '.join(map(repr, unknown))}: parameters of the "
                f"function go into kwargs={{{unknown[0]!r}: ...}}"
            )
        constant = dict(kwargs or {})
        # a run cuts up aux data that are parameters of their own
        found = [name for name, value in constant.items() if isinstance(value, AuxData)]
        each.update({f"{_EACH}{name}": constant.pop(name) for name in found})
        self._each = {name.removeprefix(_EACH): name for name in each}
        super().__init__(
            f=f,
            output_shape=output_shape,
            output_dtype=output_dtype,
            ragged=ragged,
            kwargs=constant,
            **each,
        )

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result; finds out its shape unless told."""
        p = self.params
        if p.ragged:
            return {"result": self.buffer(kind="nav", dtype=object)}
        shape, dtype = p.output_shape, p.output_dtype
        if shape is None or dtype is None:
            found = self._try()
            shape = found.shape if shape is None else shape
            dtype = found.dtype if dtype is None else dtype
        return {"result": self.buffer(kind="nav", extra_shape=shape, dtype=dtype)}

    def _try(self) -> np.ndarray[Any, Any]:
        """Return what the function gives for a frame of ones."""
        mock = np.ones(self.meta.dataset_shape.sig, dtype=self.meta.input_dtype)
        try:
            ones = {
                name: _value(np.ones(aux.extra_shape, aux.dtype))
                for name, key in self._each.items()
                if isinstance(aux := self._kwargs[key], AuxData)
            }
            value = self.params.f(mock, **with_all(self.params.kwargs, _stand_in), **ones)
        except Exception as error:
            error.add_note(
                "raised by the function on a frame of ones, which tells the shape and dtype of "
                "its result; give output_shape= and output_dtype= to go without"
            )
            raise
        if hasattr(value, "__dask_graph__") and hasattr(value, "dtype"):
            return np.broadcast_to(np.empty((), value.dtype), value.shape)  # of a lazy parameter
        try:
            found = np.asarray(value)
        except ValueError as error:
            raise ArgumentValueError(
                f"the function returned something that is no array ({error}): give ragged=True"
            ) from None
        if found.dtype == object:
            raise UDFError(
                f"the function returned {type(value).__name__}, which is no array of numbers: give "
                "ragged=True to collect Python objects"
            )
        return found

    def process_frame(self, frame: Any) -> None:
        """Call the function."""
        params, result = self.params, self.results.result
        if self._each:
            each = {name: _value(getattr(params, key)) for name, key in self._each.items()}
            value = params.f(frame, **params.kwargs, **each)
        else:
            value = params.f(frame, **params.kwargs)
        if params.ragged:
            result[0] = value
            return
        self._store(value, result)

    def process_stack(self, stack: Any) -> None:
        """Call the function for each frame: half the time of process_frame for cheap functions."""
        params, results = self.params, self.results.result
        f, kwargs, ragged = params.f, params.kwargs, params.ragged
        each = {name: getattr(params, key) for name, key in self._each.items()}
        scalars = results.ndim == 1
        expected = results.dtype.type if scalars and not ragged else None
        row = 0
        try:
            for row, frame in enumerate(stack):
                if each:
                    values = {name: _value(rows[row : row + 1]) for name, rows in each.items()}
                    kwargs = {**params.kwargs, **values}
                value = f(frame, **kwargs)
                # nearly always what was expected, which is quickly seen
                if ragged or type(value) is expected:
                    results[row] = value
                else:
                    self._store(value, results[row : row + 1] if scalars else results[row])
        except Exception:
            cursor = self.meta.cursor
            assert cursor is not None
            # the error's note names the frame in place of the whole stack
            cursor.start, cursor.stop = cursor.start + row, cursor.start + row + 1
            raise

    def _store(self, value: Any, result: Any) -> None:
        """Write a value to where it belongs; raise if it would be spread, or cut, to fit."""
        if getattr(value, "dtype", None) is not result.dtype or (
            value.shape != result.shape and not value.size == result.size == 1
        ):
            self._check(value, result)
        result[:] = value

    def _check(self, value: Any, result: Any) -> None:
        """Raise if a value does not fit a result."""
        found = np.asarray(value)
        if found.shape != result.shape and not found.size == result.size == 1:
            raise UDFError(
                f"the function returned an array of shape {found.shape} for this frame, but its "
                f"result has the shape {result.shape}: correct output_shape=, or give ragged=True"
            )
        if self.params.output_dtype is None and _RANK.get(found.dtype.kind, 0) > _RANK.get(
            result.dtype.kind, len(_RANK)
        ):
            raise UDFError(
                f"the function returned {found.dtype} for this frame, but {result.dtype} for a "
                "frame of ones: give output_dtype="
            )


def _stand_in(lazy: Any) -> Any:
    """Return what a function is given in place of a lazy parameter, to find out its result."""
    if not isinstance(getattr(lazy, "dtype", None), np.dtype):  # a Delayed has any attribute
        raise UDFError(
            f"nothing is known of a {type(lazy).__name__} before it is computed, not even its "
            "shape: give output_shape= and output_dtype="
        )
    if type(lazy).__module__.startswith("dask.") and not any(map(math.isnan, lazy.shape)):
        return np.ones(lazy.shape, lazy.dtype)
    return lazy


def _value(view: Any) -> Any:
    """Return the value for a frame: an array without axes of extent 1, or a scalar."""
    return np.squeeze(view)[()]
