"""Read the data of signals, without copying them: as frames, or as parameters of a function."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Mapping
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.core import slices_from_chunks
from dask.base import tokenize
from dask.utils import parse_bytes

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udf import UDF


def wants_progressbar(asked: bool | None) -> bool:
    """Return whether to show a progress bar; None means HyperSpy's preference."""
    from hyperspy.api import preferences

    return bool(preferences.General.show_progressbar) if asked is None else asked


MEMORY_CHUNKS = 64
"""Approximate number of chunks for data in memory: enough for many threads, cheap for one."""


def read_frames(signal: Any, *, named: bool) -> tuple[da.Array, int]:
    """Return the data of a signal, shape (*nav, *sig), and the number of its signal axes.

    With `named`, the dask name of data in memory is a hash of their values.
    """
    manager = signal.axes_manager
    sig_dims = len(manager.signal_axes)
    if signal.ragged:
        raise ArgumentTypeError(
            f"{signal!r} is ragged, but UDFs need frames of one shape: map a function with s.map"
        )
    if not sig_dims:
        raise ArgumentValueError(
            f"{signal!r} has no signal axes, so it has no frames: transpose it, as in signal.T or "
            "signal.transpose(signal_axes=2)"
        )
    data = aligned_data(signal)
    if not isinstance(data, da.Array):
        data = _wrap(data, sig_dims, named=named)
    return data, sig_dims


def aligned_data(signal: Any) -> Any:
    """Return the array of a signal with navigation axes first, transposed if necessary."""
    manager = signal.axes_manager
    axes = (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])
    order = tuple(axis.index_in_array for axis in axes)
    return signal.data if order == tuple(range(signal.data.ndim)) else signal.data.transpose(order)


def _wrap(data: Any, sig_dims: int, *, named: bool) -> da.Array:
    """Return a dask array whose blocks are views of an array in memory.

    `dask.array.from_array` would copy the data first.
    """
    chunks = memory_chunks(data.shape, data.dtype.itemsize, sig_dims)
    # equal data give equal names, but hashing reads all data: only lazy results pay for it
    token = tokenize(data, chunks) if named else uuid.uuid4().hex
    name = f"signal-{token}"
    keys = itertools.product([name], *(range(len(sizes)) for sizes in chunks))
    blocks = {key: data[index] for key, index in zip(keys, slices_from_chunks(chunks), strict=True)}
    return da.Array(blocks, name, chunks, meta=data[(slice(0, 0),) * data.ndim])


def memory_chunks(
    shape: tuple[int, ...], itemsize: int, sig_dims: int
) -> tuple[tuple[int, ...], ...]:
    """Return chunks of full frames that are contiguous in memory, for data of this shape."""
    n_nav = len(shape) - sig_dims
    frame_bytes = max(1, math.prod(shape[n_nav:]) * itemsize)
    max_frames = parse_bytes(dask.config.get("array.chunk-size")) // frame_bytes
    room = max(1, min(max_frames, math.prod(shape[:n_nav]) // MEMORY_CHUNKS))
    chunks: list[tuple[int, ...]] = [(n,) for n in shape]
    for axis in reversed(range(n_nav)):
        size = shape[axis]
        n = max(1, math.ceil(size / room))
        chunks[axis] = tuple(size * (k + 1) // n - size * k // n for k in range(n))
        room = max(1, room // size) if n == 1 and size else 1
    return tuple(chunks)


def lazy_signal_error(what: str, pass_as: str) -> ArgumentTypeError:
    """Return the error about a lazy signal whose values must be known before a run.

    `pass_as` is how a signal called `mask` is passed.
    """
    # `roi=mask.compute()` would be None, which means all positions
    return ArgumentTypeError(
        f"the {what} is a lazy signal: write mask.compute() on a line of its own, which changes "
        f"the signal in place and returns None, then pass {pass_as}"
    )


def read_parameters(signal: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a map over `signal`; signals become aux data or constants."""
    from hyperspy.api import signals

    return {
        name: _read_parameter(signal, name, v) if isinstance(v, signals.BaseSignal) else v
        for name, v in kwargs.items()
    }


def _read_parameter(signal: Any, name: str, value: Any) -> Any:
    """Return a signal as aux data if it has a value for each position, else its constant value."""
    nav = signal.axes_manager.navigation_shape
    own = value.axes_manager.navigation_shape
    if own == nav:
        data = aligned_data(value)
        extra = data.shape[len(nav) :]
        return UDF.aux_data(data, kind="nav", extra_shape=extra, dtype=data.dtype)
    if own not in ((), (1,)):
        raise ArgumentValueError(
            f"the parameter {name} is {value!r}, but {signal!r} is mapped: the parameter needs "
            f"navigation axes of the same sizes {nav}, or none"
        )
    if isinstance(value.data, da.Array):
        raise lazy_signal_error(f"parameter {name}", f"{name}=mask")
    return np.squeeze(value.data)
