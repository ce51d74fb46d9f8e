"""A signal as a dask collection, for joint computations: HyperSpy's lazy signals are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dask.array as da
from dask.highlevelgraph import HighLevelGraph


class SignalCollection:
    """A signal that dask can compute: a lazy one becomes one in memory, another stays what it is.

    Signals in memory are wrapped as well, with nothing to compute: dask would try to look into
    them, and never come back.
    """

    def __init__(self, signal: Any) -> None:
        self.signal = signal
        self.data = signal.data if isinstance(signal.data, da.Array) else None

    def __dask_graph__(self) -> Any:
        return HighLevelGraph({}, {}) if self.data is None else self.data.__dask_graph__()

    def __dask_keys__(self) -> list[Any]:
        return [] if self.data is None else self.data.__dask_keys__()

    def __dask_layers__(self) -> tuple[str, ...]:
        return () if self.data is None else self.data.__dask_layers__()

    def __dask_tokenize__(self) -> Any:
        # two signals of the same data are not the same signal
        return ("udfdask.SignalCollection", id(self.signal))

    __dask_optimize__ = da.Array.__dask_optimize__
    __dask_scheduler__ = da.Array.__dask_scheduler__

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self.data is None:
            return _unchanged, (self.signal,)
        gather, extra = self.data.__dask_postcompute__()
        return _computed, (gather, extra, self.signal)

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self.data is None:
            return _unchanged, (self.signal,)
        rebuild, state = self.data.__dask_postpersist__()
        return _persisted, (rebuild, state, self.signal)


def _unchanged(_: Any, signal: Any, rename: Any = None) -> Any:
    """Return a signal for which there was nothing to do."""
    return signal


def _computed(
    blocks: Any, gather: Callable[..., Any], extra: tuple[Any, ...], signal: Any
) -> Any:
    """Return a signal in memory from the blocks of a lazy one."""
    done = signal.deepcopy()
    done.data = gather(blocks, *extra)
    if done._lazy:
        done.compute(show_progressbar=False)  # nothing is left to compute: it changes the class
    return done


def _persisted(
    graph: Any,
    rebuild: Callable[..., Any],
    state: tuple[Any, ...],
    signal: Any,
    rename: Mapping[str, str] | None = None,
) -> Any:
    """Return the same lazy signal over another graph."""
    done = signal.deepcopy()
    done.data = rebuild(graph, *state, rename=rename)
    return done
