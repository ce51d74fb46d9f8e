"""Call a plain function for each frame."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.backends.table import backend_of, known_backends, to_backend, to_host
from udfdask.errors import ArgumentTypeError, ArgumentValueError, DeviceError, UDFError
from udfdask.tracebacks import add_origin
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.params import with_all
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import check_flag

_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Kinds of numbers: each kind can hold the numbers of a lower rank."""
_RESULT = "result"
"""Name of the result, if there is only one."""
_EACH = "each_"
"""Prefix of the names of parameters with a value for each frame."""


class AutoUDF(UDF):
    """Call a function for each frame and collect the return values.

    Parameters
    ----------
    f : callable
        Called as ``f(frame, **kwargs)`` with each frame, shape `sig`; returns an array or scalar.
    output_shape : tuple of int, optional
        Shape of the return value of `f`. If `output_shape` or `output_dtype` is missing, the plan
        calls `f` once, with a frame of ones.
    output_dtype : dtype-like, optional
        Dtype of the return value of `f`.
    ragged : bool
        Allow `f` to return a different shape for each frame; the result has the dtype object.
    backends : str or sequence of str, optional
        The array types in which `f` takes frames, as constants of `UDF` such as "cupy"; by default
        NumPy arrays. Frames in matrix formats have the shape (1, pixels).
    kwargs : dict, optional
        Parameters of `f`: constants, or `UDF.aux_data` of kind nav, from which `f` gets the value
        for its frame.
    monitor : bool
        Add a result with the return value of `f` for the last frame that has been processed, in the
        order of the scan, for live plots. The results of all chunks are then gathered in one task.
    output_names : sequence of str, optional
        Names of several results, such as ``("position", "width")``: `f` returns a tuple, list or
        array with one value for each, which may have different shapes and dtypes. `output_shape`
        and `output_dtype` are then those of each value.
    **each : AuxData
        The `kwargs` that have a value for each frame, in a run.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument has a wrong type or value, is unknown, or `monitor` is used with
        `output_names`.

    Notes
    -----
    Buffer `result`, or one for each of `output_names`, kind nav, shape (*nav, *output_shape). With
    `monitor`, also `monitor`, kind single, shape `output_shape`: zeros (None if `ragged`) if there
    is no frame.

    If `f` returns None for a frame, for example because a fit failed, the result is NaN there. A
    run stops with a `UDFError` if the dtype of the result has no NaN, if `f` returns another shape,
    or, without `output_dtype`, if the dtype that was found with a frame of ones cannot hold a
    value.

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
    _plain_function = "your function"

    def __init__(
        self,
        f: Callable[..., Any],
        output_shape: tuple[int, ...] | None = None,
        output_dtype: Any = None,
        ragged: bool = False,
        backends: str | Sequence[str] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        monitor: bool = False,
        output_names: Sequence[str] | None = None,
        **each: Any,
    ) -> None:
        given: Any = f  # users pass other things too
        if isinstance(given, UDF) or (isinstance(given, type) and issubclass(given, UDF)):
            name = getattr(given, "__name__", type(given).__name__)
            raise ArgumentTypeError(
                f"expected a function of a frame, got the UDF {name}: run it with run_udf"
            )
        if not callable(f):
            raise ArgumentTypeError(f"expected a function of a frame, got {type(f).__name__}")
        if not (kwargs is None or isinstance(kwargs, Mapping)):
            raise ArgumentTypeError(
                f"kwargs must be a mapping of names to parameters, not {type(kwargs).__name__}"
            )
        if unknown := sorted(name for name in each if not name.startswith(_EACH)):
            raise ArgumentTypeError(
                f"AutoUDF takes no argument {', '.join(map(repr, unknown))}: parameters of the "
                f"function go into kwargs={{{unknown[0]!r}: ...}}"
            )
        if backends is not None:
            known_backends(backends, f"backends={backends!r}")
        monitor = check_flag("monitor", monitor)
        if output_names is not None:
            output_names = _checked_names(output_names)
            if monitor:
                raise ArgumentValueError(
                    "monitor=True is for a function with one result: leave out output_names="
                )
        # a run only cuts aux data that are themselves parameters, not members of a dictionary
        constant = {}
        for name, value in (kwargs or {}).items():
            if isinstance(value, AuxData):
                each[f"{_EACH}{name}"] = value
            else:
                constant[name] = value
        self._each = {name.removeprefix(_EACH): name for name in each}
        super().__init__(
            f=f,
            output_shape=output_shape,
            output_dtype=output_dtype,
            ragged=ragged,
            backends=backends,
            kwargs=constant,
            monitor=monitor,
            output_names=output_names,
            **each,
        )

    def get_backends(self) -> Any:
        return (self.BACKEND_NUMPY,) if self.params.backends is None else self.params.backends

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result; call the function once if its shape or dtype is unknown."""
        p, names = self.params, self._names
        shape, dtype = p.output_shape, p.output_dtype
        known = p.ragged or (shape is not None and dtype is not None)
        samples = [None] * len(names) if known else self._sample()
        buffers = {}
        for name, sample in zip(names, samples, strict=True):
            if p.ragged:
                buffers[name] = self.buffer(kind="nav", dtype=object)
                continue
            buffers[name] = self.buffer(
                kind="nav",
                extra_shape=sample.shape if shape is None else shape,
                dtype=sample.dtype if dtype is None else dtype,
                where="device",  # so that no frame has to wait for a copy to the host
            )
        if p.monitor:
            shape, dtype = buffers[_RESULT].extra_shape, buffers[_RESULT].dtype
            buffers["monitor"] = self.buffer("single", shape, dtype, use="result_only")
        return buffers

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the results."""
        return self.params.output_names or (_RESULT,)

    @property
    def get_results(self) -> Any:
        """The method that fills `monitor`, or else that of the base class, which does nothing."""
        # with a method of its own, a run without `monitor` too would gather its results in one task
        return self._get_monitor if self.params.monitor else super().get_results

    def _get_monitor(self) -> Mapping[str, Any]:
        """Return the result of the last frame that has been merged."""
        merged = self.meta.get_valid_nav_mask()
        assert merged is not None
        valid, result = np.flatnonzero(merged), self.results.result
        if valid.size:
            return {"monitor": result[valid[-1]]}
        nothing = None if self.params.ragged else np.zeros((), result.dtype)
        return {"monitor": np.full(result.shape[1:] or (1,), nothing, result.dtype)}

    def _sample(self) -> list[Any]:
        """Return the value of each result for a frame of ones."""
        backends = known_backends(self.get_backends(), "backends")
        # the first one that needs no device, if there is one
        backend = min(backends, key=lambda one: one.device == "cuda")
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(backend.dense.at_work(own_stream=False))
                ones = np.ones((1, *self.meta.dataset_shape.sig), dtype=self.meta.input_dtype)
                frame = to_backend(ones, backend, ones.shape)
            except DeviceError as error:
                raise DeviceError(
                    f"{error}. Or pass output_shape= and output_dtype=: without them, the plan "
                    "calls the function with a frame of ones on the device"
                ) from None
            frame = frame if backend.is_matrix else frame[0]
            parts, names = self._parts(self._called_with(frame)), self.params.output_names
            texts = [""] if names is None else [f" (result {name!r})" for name in names]
            rows = zip(parts, texts, strict=True)
            return [self._as_sample(part, frame, text) for part, text in rows]

    def _called_with(self, frame: Any) -> Any:
        """Return what the function returns for a frame that the plan has made."""
        try:
            ones = {
                name: _value(np.ones(aux.extra_shape, aux.dtype))
                for name, key in self._each.items()
                if isinstance(aux := self._kwargs[key], AuxData)
            }
            return self.params.f(frame, **with_all(self.params.kwargs, _stand_in), **ones)
        except Exception as error:
            add_origin(
                error,
                "raised by the function for a frame of ones, with which the plan finds the shape "
                "and dtype of the result; pass output_shape= and output_dtype= to avoid this call",
            )
            raise

    def _as_sample(self, value: Any, frame: Any, of: str) -> np.ndarray[Any, Any]:
        """Return a value for a frame of ones as an array; `of` names its result in messages."""
        if hasattr(value, "__dask_graph__") and hasattr(value, "dtype"):
            # the function computed with a lazy parameter
            return np.broadcast_to(np.empty((), value.dtype), value.shape)
        if value is None:
            raise UDFError(
                f"the function returned None for a frame of ones{of}: add a return statement; if "
                "None stands for frames without a result, pass output_shape= and output_dtype="
            )
        several = "" if of else ", or output_names= if it returns several results"
        try:
            sample = to_host(value)
        except ValueError:  # ragged
            sample = np.empty(0, object)
        if sample.dtype == object:
            raise UDFError(
                f"the function returned {type(value).__name__}{of}, which is not an array of "
                f"numbers: pass ragged=True to collect Python objects{several}"
            )
        if not sample.size and self.params.output_shape is None and math.prod(frame.shape):
            raise ArgumentValueError(
                f"the function returned an empty array for a frame of ones{of}: pass ragged=True "
                "to collect arrays of any length, or output_shape=..."
            )
        return sample

    def _parts(self, value: Any) -> Sequence[Any]:
        """Return the value of each result; None stands for a frame without results."""
        names = self.params.output_names
        if names is None:
            return (value,)
        if value is None:
            return (None,) * len(names)
        found = type(value).__name__
        if isinstance(value, Sequence):
            has_parts = not isinstance(value, (str, bytes))
        else:
            has_parts = not backend_of(value).is_sparse and np.ndim(value) > 0
        if has_parts and len(value) == len(names):
            return value  # type: ignore[no-any-return]
        raise UDFError(
            f"the function returned {f'{len(value)} values' if has_parts else found}, but "
            f"output_names={names} needs a tuple, list or array of {len(names)} values, one for "
            "each name in this order"
        )

    def process_frame(self, frame: Any) -> None:
        params = self.params
        each = {name: _value(getattr(params, key)) for name, key in self._each.items()}
        value = params.f(frame, **params.kwargs, **each)
        self._store_parts(value, [getattr(self.results, name) for name in self._names])

    def process_stack(self, stack: Any) -> None:
        """Call the function for each frame of a stack, which costs half as much for cheap ones.

        Parameters
        ----------
        stack : array, shape (n, *sig)
            Frames.
        """
        params = self.params
        f, kwargs = params.f, params.kwargs
        each = {name: getattr(params, key) for name, key in self._each.items()}
        buffers = [getattr(self.results, name) for name in self._names]
        first = buffers[0]
        is_number = params.output_names is None and first.ndim == 1 and not params.ragged
        expected = first.dtype.type if is_number else None
        row = 0
        try:
            for row, frame in enumerate(stack):
                if each:
                    values = {name: _value(rows[row : row + 1]) for name, rows in each.items()}
                    kwargs = {**params.kwargs, **values}
                value = f(frame, **kwargs)
                # fast path: a NumPy scalar of the right dtype
                if type(value) is expected:
                    first[row] = value
                else:
                    rows = slice(row, row + 1)
                    self._store_parts(value, [b[rows] if b.ndim == 1 else b[row] for b in buffers])
        except Exception:
            cursor = self.meta.cursor
            assert cursor is not None
            # then the note on the error names this frame, not the whole stack
            cursor.start, cursor.stop = cursor.start + row, cursor.start + row + 1
            raise

    def _store_parts(self, value: Any, results: Sequence[Any]) -> None:
        """Assign what the function returned for a frame to its results."""
        for part, result in zip(self._parts(value), results, strict=True):
            if self.params.ragged:  # objects are sent to other processes: on the host
                result[0] = to_host(part) if backend_of(part).on_device else part
            elif part is None:
                result[...] = _no_value(result.dtype)
            else:
                self._check(part, result)
                # the function may return an array of another type than that of the buffer
                result[:] = part if self.params.backends is None else self.forbuf(part, result)

    def _check(self, value: Any, result: Any) -> None:
        """Raise if NumPy would have to broadcast or truncate a value of a result."""
        if getattr(value, "dtype", None) is result.dtype and (
            value.shape == result.shape or value.size == result.size == 1
        ):
            return
        backend = backend_of(value)
        array = value if backend.on_device and not backend.is_sparse else to_host(value)
        if array.shape != result.shape and not array.size == result.size == 1:
            raise UDFError(
                f"the function returned an array of shape {array.shape} for this frame, but its "
                f"result has the shape {result.shape}: correct output_shape=, or pass ragged=True"
            )
        given, own = (_RANK.get(kind, -1) for kind in (array.dtype.kind, result.dtype.kind))
        if self.params.output_dtype is None and given > own >= 0:
            raise UDFError(
                f"the function returned {array.dtype} for this frame, but {result.dtype} for a "
                "frame of ones: pass output_dtype="
            )


def _checked_names(names: Any) -> tuple[str, ...]:
    """Return the names of several results; raise unless they are different names."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        what = "a list of names"
    elif wrong := [one for one in names if not isinstance(one, str) or not one.isidentifier()]:
        what = f"a list of names: {wrong[0]!r} is not a name of letters"
    elif not names or len(set(names)) < len(names):
        what = "one or more different names"
    else:
        return tuple(names)
    kind = ArgumentTypeError if what == "a list of names" else ArgumentValueError
    raise kind(f"output_names={names!r} must be {what}, as in ('position', 'width')")


def _no_value(dtype: np.dtype[Any]) -> Any:
    """Return what stands in a result for a frame for which the function returned None."""
    if dtype.kind in "fc":
        return np.nan
    if dtype.kind in "mM":
        return np.array("NaT", dtype)
    raise UDFError(
        f"the function returned None for this frame, but its result is {dtype}, which has no NaN: "
        "pass output_dtype=float"
    )


def _stand_in(lazy: Any) -> Any:
    """Return an array of ones in place of a lazy parameter, to find the shape of the result."""
    if not isinstance(getattr(lazy, "dtype", None), np.dtype):  # a Delayed has any attribute
        raise UDFError(
            f"the shape of a {type(lazy).__name__} is unknown: pass output_shape= and output_dtype="
        )
    if type(lazy).__module__.startswith("dask.") and not any(map(math.isnan, lazy.shape)):
        return np.ones(lazy.shape, lazy.dtype)
    return lazy


def _value(view: Any) -> Any:
    """Return the value for a frame: an array without axes of size 1, or a scalar."""
    return np.squeeze(view)[()]
