"""Runs UDFs over a signal: its data to the engine, results back as signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import dask.array as da

from udfdask.hyperspy.data import Frames, read_frames, wants_lazy, wants_progressbar
from udfdask.hyperspy.labels import read_labels
from udfdask.hyperspy.make_signal import check_dtypes, make_mapped
from udfdask.hyperspy.progressive import SignalIterator, SignalSnapshot
from udfdask.hyperspy.regions import read_roi
from udfdask.hyperspy.results import SignalResult
from udfdask.results.explanation import Explanation
from udfdask.results.result import Result
from udfdask.run.options import IterOptions, RunOptions
from udfdask.run.progressive.start import prepare_run
from udfdask.run.run_udf import as_list, explain, run_udf
from udfdask.scheduling.compute import compute
from udfdask.udf import UDF


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Which scan positions are processed."""

    roi: Any = None
    """True = processed: signal of booleans, region of HyperSpy's, or what `run_udf` takes."""
    navigation_mask: Any = None
    """True = excluded: signal of booleans, or array of shape (x, y)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What becomes of results."""

    lazy: bool | None = None
    """Stay lazy; None as the signal."""
    show_progressbar: bool | None = None
    """Show a bar while computing; None as in HyperSpy's preferences."""


def run_on_signal(
    signal: Any,
    udf: UDF | Sequence[UDF],
    region: Region,
    output: Output,
    **options: Unpack[RunOptions],
) -> SignalResult | tuple[SignalResult, ...]:
    """Run UDFs over a signal; return one mapping of signals, or a tuple of them for a list."""
    lazy = wants_lazy(signal, output.lazy)
    frames = read_frames(signal, named=lazy)
    roi = read_roi(signal, region.roi, region.navigation_mask)
    results = run_udf(frames.array, as_list(udf), sig_dims=frames.sig_dims, roi=roi, **options)
    for result in results:
        check_dtypes(result.udf_name, result.buffers)
    labels = read_labels(signal)
    done = _finished(results, lazy, output)
    made = tuple(SignalResult(result, labels) for result in done)
    return made[0] if isinstance(udf, UDF) else made


def map_on_signal(signal: Any, udf: UDF, region: Region, output: Output) -> Any:
    """Run a UDF that calls a function with each frame of a signal; return a signal."""
    lazy = wants_lazy(signal, output.lazy)
    frames = read_frames(signal, named=lazy)
    roi = read_roi(signal, region.roi, region.navigation_mask)
    result = run_udf(frames.array, udf, sig_dims=frames.sig_dims, roi=roi)
    check_dtypes("the function", result.buffers)
    (done,) = _finished((result,), lazy, output)
    return make_mapped(done["result"], done.axes["result"], read_labels(signal))


def iterate_on_signal(
    signal: Any, udf: UDF | Sequence[UDF], region: Region, **options: Unpack[IterOptions]
) -> SignalIterator:
    """Run UDFs over a signal; return an iterator over snapshots."""
    frames, roi = _input(signal, region)
    run = prepare_run(frames.array, udf, sig_dims=frames.sig_dims, roi=roi, **options)
    for about in run.abouts:
        check_dtypes(about.udf_name, about.buffers)
    return SignalIterator(run, partial(SignalSnapshot, labels=read_labels(signal)))


def explain_on_signal(
    signal: Any, udf: UDF | Sequence[UDF], region: Region, **options: Unpack[RunOptions]
) -> Explanation:
    """Return what a run over a signal would do."""
    frames, roi = _input(signal, region)
    return explain(frames.array, udf, sig_dims=frames.sig_dims, roi=roi, **options)


def _input(signal: Any, region: Region) -> tuple[Frames, Any]:
    """Return the data of a signal and the region to process, for a run under no lasting name."""
    roi = read_roi(signal, region.roi, region.navigation_mask)
    return read_frames(signal, named=False), roi


def _finished(results: tuple[Result, ...], lazy: bool, output: Output) -> tuple[Result, ...]:
    """Return results as they are, or computed together in one pass."""
    if lazy:
        return results
    return compute(*results, progress=wants_progressbar(output.show_progressbar))
