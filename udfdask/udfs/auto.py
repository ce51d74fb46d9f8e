"""Call a plain function for each frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.backends.table import backend_of, known_backends, to_backend, to_host
from udfdask.base.tracebacks import add_origin
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.params import with_all
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import check_flag
from udfdask.udfs.shared.returned_values import as_sample, checked_names, parts_of, store

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
        The array types in which `f` takes frames, such as "cupy"; by default NumPy arrays. Frames
        in matrix formats have the shape (1, pixels).
    kwargs : dict, optional
        Parameters of `f`: constants, or `UDF.aux_data` of kind nav, from which `f` gets the value
        for its frame.
    monitor : bool
        Add a result with the return value of `f` for the last frame that has been processed, in the
        order of the scan, for live plots. The results of all chunks are then gathered in one task.
    output_names : sequence of str, optional
        Names of several results, such as ``("position", "width")``: `f` returns a tuple, list or
        array with one value for each; `output_shape` and `output_dtype` are those of each value.
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
    or, without `output_dtype`, if the dtype found with a frame of ones cannot hold a value.

    Examples
    --------
    >>> import functools, dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import AutoUDF
    >>> x = da.ones((2, 2, 4, 3))
    >>> ud.run_udf(x, AutoUDF(f=functools.partial(np.sum, axis=-1)))["result"].shape
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
        function: Any = f  # users pass other things too
        kind = f if isinstance(f, type) else type(f)
        if not callable(function) or issubclass(kind, UDF):
            raise ArgumentTypeError(
                "expected a function of a frame (on the command line f=numpy:max or "
                f"f=mine.py:peak), got {kind.__name__}: run_udf runs UDFs"
            )
        if not (kwargs is None or isinstance(kwargs, Mapping)):
            raise ArgumentTypeError(
                f"kwargs must be a mapping of names to parameters, not {type(kwargs).__name__}"
            )
        for name in each:
            if not name.startswith(_EACH):
                raise ArgumentTypeError(
                    f"AutoUDF takes no argument {name!r}: parameters of the function go into "
                    f"kwargs={{{name!r}: ...}}"
                )
        if backends is not None:
            known_backends(backends, f"backends={backends!r}")
        monitor = check_flag("monitor", monitor)
        if output_names is not None:
            output_names = checked_names(output_names)
            if monitor:
                raise ArgumentValueError(
                    "monitor=True is for a function with one result: leave out output_names="
                )
        # a run only cuts aux data that are themselves parameters, not members of a dictionary
        constant = dict(kwargs or {})
        for name in [name for name, value in constant.items() if isinstance(value, AuxData)]:
            each[f"{_EACH}{name}"] = constant.pop(name)
        self._each = {name.removeprefix(_EACH): name for name in each}
        output = {"output_shape": output_shape, "output_dtype": output_dtype, "ragged": ragged}
        rest = {"monitor": monitor, "output_names": output_names, **each}
        super().__init__(f=f, **output, backends=backends, kwargs=constant, **rest)

    def get_backends(self) -> Any:
        return (self.BACKEND_NUMPY,) if self.params.backends is None else self.params.backends

    @property
    def _names(self) -> tuple[str, ...]:
        return self.params.output_names or ("result",)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the results; call the function once if their shape or dtype is unknown."""
        p = self.params
        shape, dtype = ((), object) if p.ragged else (p.output_shape, p.output_dtype)
        is_unknown = shape is None or dtype is None
        samples: dict[str, Any] = self._samples() if is_unknown else dict.fromkeys(self._names)
        buffers = {
            name: self.buffer(
                "nav",
                sample.shape if shape is None else shape,
                sample.dtype if dtype is None else dtype,
                where="device",  # so that no frame has to wait for a copy to the host
            )
            for name, sample in samples.items()
        }
        if p.monitor:
            extra, dtype = buffers["result"].extra_shape, buffers["result"].dtype
            buffers["monitor"] = self.buffer("single", extra, dtype, use="result_only")
        return buffers

    def _samples(self) -> dict[str, Any]:
        """Call the function with a frame of ones; return the value of each result."""
        # with the first backend that needs no device, if there is one
        backends = known_backends(self.get_backends(), "backends")
        backend = min(backends, key=lambda one: one.device == "cuda")
        shape, dtype = (1, *self.meta.dataset_shape.sig), self.meta.input_dtype
        try:
            with backend.dense.at_work(own_stream=False):
                frame = to_backend(np.ones(shape, dtype), backend, shape)
                frame = frame if backend.is_matrix else frame[0]
                kwargs = with_all(self.params.kwargs, _stand_in)
                for name, key in self._each.items():
                    aux = self._kwargs[key]
                    kwargs[name] = _value(np.ones(aux.extra_shape, aux.dtype))
                parts = parts_of(self.params.f(frame, **kwargs), self.params.output_names)
                pairs = zip(self._names, parts, strict=True)
                samples = {n: as_sample(part, n, self.params.output_names) for n, part in pairs}
        except Exception as error:
            add_origin(
                error,
                "raised for a frame of ones, with which the plan finds the shape and dtype of the "
                "result; pass output_shape= and output_dtype= to avoid this call",
            )
            raise

        for sample in samples.values():
            if not sample.size and self.params.output_shape is None and math.prod(shape):
                raise ArgumentValueError(
                    "the function returned an empty array for a frame of ones: pass ragged=True to "
                    "collect arrays of any length, or output_shape=..."
                )
        return samples

    @property
    def get_results(self) -> Any:
        """The method that fills `monitor`, or else that of the base class, which does nothing."""
        # with a method of its own, a run without `monitor` too would gather its results in one task
        return self._get_monitor if self.params.monitor else super().get_results

    def _get_monitor(self) -> Mapping[str, Any]:
        """Return the result of the last frame that has been merged."""
        merged, result = self.meta.get_valid_nav_mask(), self.results.result
        if merged.any():
            return {"monitor": result[np.flatnonzero(merged)[-1]]}
        make = np.empty if self.params.ragged else np.zeros  # objects are None, numbers 0
        return {"monitor": make(result.shape[1:] or (1,), result.dtype)}

    def process_frame(self, frame: Any) -> None:
        params = self.params
        each = {name: _value(getattr(params, key)) for name, key in self._each.items()}
        value = params.f(frame, **params.kwargs, **each)
        self._store(value, [getattr(self.results, name) for name in self._names])

    def process_stack(self, stack: Any) -> None:
        """Call the function for each frame of a stack, which costs half as much for cheap ones.

        Parameters
        ----------
        stack : array, shape (n, *sig)
            Frames.
        """
        params, row = self.params, 0
        f, kwargs = params.f, params.kwargs
        each = {name: getattr(params, key) for name, key in self._each.items()}
        buffers = [getattr(self.results, name) for name in self._names]
        first = buffers[0]
        is_number = params.output_names is None and first.ndim == 1 and not params.ragged
        expected = first.dtype.type if is_number else None
        try:
            for row, frame in enumerate(stack):
                rows = slice(row, row + 1)
                if each:
                    values = {name: _value(aux[rows]) for name, aux in each.items()}
                    kwargs = {**params.kwargs, **values}
                value = f(frame, **kwargs)
                if type(value) is expected:  # a NumPy scalar of the right dtype
                    first[row] = value
                else:
                    self._store(value, [b[rows] if b.ndim == 1 else b[row] for b in buffers])
        except Exception:
            cursor = self.meta.cursor
            assert cursor is not None
            # then the note on the error names this frame, not the whole stack
            cursor.start, cursor.stop = cursor.start + row, cursor.start + row + 1
            raise

    def _store(self, value: Any, results: Sequence[Any]) -> None:
        p = self.params
        for part, result in zip(parts_of(value, p.output_names), results, strict=True):
            if p.ragged:  # objects are sent to other processes: on the host
                result[0] = to_host(part) if backend_of(part).on_device else part
            else:
                store(part, result, is_any_dtype=p.output_dtype is not None)


def _stand_in(lazy: Any) -> Any:
    """Return an array of ones in place of a lazy parameter, or itself if its size is unknown."""
    if not isinstance(getattr(lazy, "dtype", None), np.dtype):  # a Delayed has any attribute
        raise ArgumentTypeError(
            f"the shape of a {type(lazy).__name__} is unknown: pass output_shape= and output_dtype="
        )
    if type(lazy).__module__.startswith("dask.") and not any(map(math.isnan, lazy.shape)):
        return np.ones(lazy.shape, lazy.dtype)
    return lazy


def _value(view: Any) -> Any:
    """Return the value for a frame: an array without axes of size 1, or a scalar."""
    return np.squeeze(view)[()]
