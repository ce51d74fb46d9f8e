"""Runs UDFs over a signal: its data to the engine, results back as signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

import dask.array as da

from udfdask.hyperspy.data import read_frames, wants_progressbar
from udfdask.hyperspy.labels import read_labels
from udfdask.hyperspy.make_signal import check_dtypes
from udfdask.hyperspy.progressive import SignalIterator, SignalSnapshot
from udfdask.results.result import Result
from udfdask.run.options import IterOptions, RunOptions
from udfdask.run.progressive.start import prepare_run
from udfdask.run.run_udf import as_list, run_udf
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


def run_on_signal(
    signal: Any,
    udf: UDF | Sequence[UDF],
    roi: Any,
    *,
    lazy_output: bool | None,
    show_progressbar: bool | None,
    **options: Unpack[RunOptions],
) -> tuple[Result, ...]:
    """Run UDFs over a signal; return their results, computed in one pass unless they stay lazy."""
    lazy = bool(signal._lazy if lazy_output is None else lazy_output)
    array, sig_dims = read_frames(signal, named=lazy)
    results = run_udf(array, as_list(udf), sig_dims=sig_dims, roi=roi, **options)
    for result in results:
        check_dtypes(result.udf_name, result.buffers)
    return results if lazy else compute(*results, progress=wants_progressbar(show_progressbar))


def iterate_on_signal(
    signal: Any, udf: UDF | Sequence[UDF], roi: Any, **options: Unpack[IterOptions]
) -> SignalIterator:
    """Run UDFs over a signal; return an iterator over snapshots."""
    array, sig_dims = read_frames(signal, named=False)
    run = prepare_run(array, udf, sig_dims=sig_dims, roi=roi, **options)
    for about in run.abouts:
        check_dtypes(about.udf_name, about.buffers)
    return SignalIterator(run, partial(SignalSnapshot, labels=read_labels(signal)))
