"""Read the data of signals, without copying them: as frames, or as parameters of a function."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import slices_from_chunks
from dask.base import tokenize
from hyperspy.api import preferences, signals

from udfdask.advice import SIGNAL
from udfdask.base.config import chunk_bytes
from udfdask.base.types import is_expression_array
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import DataLabels, plain_array
from udfdask.hyperspy.make_signal import read_calibration
from udfdask.hyperspy.regions import lazy_signal_error, read_mask, read_roi
from udfdask.run.labeled_data import LabeledData
from udfdask.udf import UDF


def arrange(signal: Any, roi: Any, *, named: bool = False) -> LabeledData:
    """Return the data of a run; with `named`, the key of data in memory is a hash of their values.

    Raise if the signal has no frames.
    """
    manager = signal.axes_manager
    n_nav, n_sig = len(manager.navigation_axes), len(manager.signal_axes)
    if signal.ragged or not n_sig:
        raise ArgumentValueError(
            f"{signal!r} is ragged or has no signal axes, so that it has no frames of one shape: "
            "transpose it, as in signal.T or signal.transpose(signal_axes=2)"
        )
    array = plain_array(signal)
    if is_expression_array(array):
        raise ArgumentTypeError(
            f"{signal!r} holds an array of dask-array, but HyperSpy only knows those of dask.array "
            "as lazy: make the signal of one, such as dask.array.from_zarr(...), or run over the "
            "array, udfdask.run_udf(signal.data, udf)"
        )
    calibration = read_calibration(signal)
    names = [axis.name for axis in calibration.axes]
    return LabeledData(
        door=SIGNAL,
        array=array if isinstance(array, da.Array) else _wrap(array, n_sig, named=named),
        roi=read_roi(signal, roi),
        labels=DataLabels(
            nav=tuple(names[:n_nav]),
            sig=tuple(names[n_nav:]),
            sizes=dict(zip(names, array.shape, strict=True)),
            indexes={},
        ),
        calibration=calibration,
        read_mask=partial(read_mask, signal),
    )


def wants_progressbar(asked: bool | None) -> bool:
    """Return whether to show a progress bar; None means HyperSpy's preference."""
    return bool(preferences.General.show_progressbar) if asked is None else asked


def _wrap(data: Any, sig_dims: int, *, named: bool) -> da.Array:
    """Return a dask array whose blocks are views of an array in memory.

    `dask.array.from_array` would copy the data first.
    """
    chunks = memory_chunks(data.shape, data.dtype.itemsize, sig_dims)
    # equal data give equal names, but hashing reads all data: only lazy results pay for it
    name = f"signal-{tokenize(data, chunks) if named else uuid.uuid4().hex}"
    keys = itertools.product([name], *(range(len(sizes)) for sizes in chunks))
    blocks = {key: data[index] for key, index in zip(keys, slices_from_chunks(chunks), strict=True)}
    return da.Array(blocks, name, chunks, meta=data[(slice(0, 0),) * data.ndim])


MEMORY_CHUNKS = 64
"""Approximate number of chunks for data in memory: enough for many threads, cheap for one."""


def memory_chunks(
    shape: tuple[int, ...], itemsize: int, sig_dims: int
) -> tuple[tuple[int, ...], ...]:
    """Return chunks of full frames that are contiguous in memory, for data of this shape."""
    n_nav = len(shape) - sig_dims
    max_frames = chunk_bytes() // max(1, math.prod(shape[n_nav:]) * itemsize)
    room = max(1, min(max_frames, math.prod(shape[:n_nav]) // MEMORY_CHUNKS))
    chunks: list[tuple[int, ...]] = [(n,) for n in shape]
    for axis in reversed(range(n_nav)):
        size = shape[axis]
        n = max(1, math.ceil(size / room))
        chunks[axis] = tuple(size * (k + 1) // n - size * k // n for k in range(n))
        room = max(1, room // size) if n == 1 and size else 1
    return tuple(chunks)


def read_parameters(signal: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a map; signals become aux data, or constants without a scan."""
    nav = signal.axes_manager.navigation_shape
    read = dict(kwargs)
    for name, value in kwargs.items():
        if not isinstance(value, signals.BaseSignal):
            continue
        own = value.axes_manager.navigation_shape
        if own == nav:
            data = plain_array(value)
            extra = data.shape[len(nav) :]
            read[name] = UDF.aux_data(data, kind="nav", extra_shape=extra, dtype=data.dtype)
        elif own not in ((), (1,)):
            raise ArgumentValueError(
                f"the parameter {name} is {value!r}, but {signal!r} is mapped: the parameter needs "
                f"navigation axes of the same sizes {nav}, or none"
            )
        elif isinstance(value.data, da.Array):
            raise lazy_signal_error(f"parameter {name}")
        else:
            read[name] = np.squeeze(value.data)
    return read
