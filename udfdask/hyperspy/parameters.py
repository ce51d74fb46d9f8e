"""Parameters of a mapped function that are signals: a value for each position, as in `s.map`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.hyperspy.data import aligned_data
from udfdask.udf import UDF


def read_parameters(signal: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Take a signal and parameters; return these with signals made aux data, or constant."""
    from hyperspy.api import signals

    return {
        name: _read(signal, name, value) if isinstance(value, signals.BaseSignal) else value
        for name, value in kwargs.items()
    }


def _read(signal: Any, name: str, given: Any) -> Any:
    """Return a value for each position, or the only one that there is."""
    nav = signal.axes_manager.navigation_shape
    own = given.axes_manager.navigation_shape
    if own == nav:
        data = aligned_data(given)
        extra = data.shape[len(nav) :]
        return UDF.aux_data(data, kind="nav", extra_shape=extra, dtype=data.dtype)
    if own not in ((), (1,)):
        raise ArgumentValueError(
            f"the parameter {name} is {given!r}, but {signal!r} is mapped: its navigation axes "
            f"must have the same sizes {nav}, or there must be none"
        )
    if isinstance(given.data, da.Array):
        raise ArgumentTypeError(
            f"the parameter {name} is a lazy signal with one value for all positions: call its "
            ".compute() first"
        )
    return np.squeeze(given.data)
