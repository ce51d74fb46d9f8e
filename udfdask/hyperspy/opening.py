"""Signals in joint computations: HyperSpy's lazy signals are no dask collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da


def open_signal(signal: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Take a signal; return what dask computes in its place, and what makes a signal of that.

    A signal in memory stays what it is; dask must not see it: it would look into it for ever.
    """
    if not isinstance(signal.data, da.Array):
        return None, lambda _: signal
    return signal.data, lambda data: _with_data(signal, data)


def _with_data(signal: Any, data: Any) -> Any:
    """Return a signal over other data: in memory where these are, lazy otherwise."""
    made = signal.deepcopy()
    made.data = data
    if made._lazy and not isinstance(data, da.Array):
        made.compute(show_progressbar=False)  # nothing is left to compute: it changes the class
    return made
