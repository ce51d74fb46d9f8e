"""Read parameters of a mapped function that are signals, as `s.map` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.hyperspy.data import aligned_data
from udfdask.udf import UDF


def read_parameters(signal: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a map over `signal`; signals become aux data or constants."""
    from hyperspy.api import signals

    return {
        name: _read_parameter(signal, name, value)
        if isinstance(value, signals.BaseSignal)
        else value
        for name, value in kwargs.items()
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
        raise ArgumentTypeError(
            f"the parameter {name} is a lazy signal with one value for all positions: call its "
            ".compute() first"
        )
    return np.squeeze(value.data)
