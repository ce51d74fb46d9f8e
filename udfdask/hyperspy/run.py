"""Run UDFs over the data of a signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import dask.array as da
from hyperspy.api import signals

from udfdask.advice import SIGNAL
from udfdask.geometry.labels import DataLabels
from udfdask.hyperspy.data import read_frames, wants_progressbar
from udfdask.hyperspy.labels import read_calibration
from udfdask.hyperspy.make_signal import check_dtypes
from udfdask.hyperspy.regions import mask_reader, read_roi
from udfdask.results.result import Result
from udfdask.run.options import RunOptions, check_names
from udfdask.run.read_masks import read_labeled, read_values
from udfdask.run.run_udf import run_for, run_udf
from udfdask.scheduling.compute import compute
from udfdask.scheduling.job import unwrap
from udfdask.tracebacks import own_lines_hidden
from udfdask.udf import UDF


def arrange(
    signal: Any,
    udf: Any,
    roi: Any,
    options: Mapping[str, Any],
    *,
    named: bool = False,
) -> tuple[da.Array, Any, dict[str, Any]]:
    """Return the array of a run, its UDFs aligned with the signal, and all its options."""
    array, sig_dims = read_frames(signal, named=named)
    calibration = read_calibration(signal)
    udf, chosen = read_labeled(udf, options, _axis_labels(signal), mask_reader(signal))
    own = {"axes": calibration.axes, "unit": calibration.unit, "sig_dims": sig_dims}
    own["roi"] = read_roi(signal, roi)
    return array, udf, {**own, **chosen}


def run_on_signal(
    signal: Any,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    roi: Any,
    lazy_output: bool | None,
    show_progressbar: bool | None,
    **options: Unpack[RunOptions],
) -> tuple[Result, ...]:
    """Run UDFs over a signal; compute their results in one pass unless they stay lazy."""
    lazy = bool(signal._lazy if lazy_output is None else lazy_output)
    with own_lines_hidden:
        array, udfs, chosen = arrange(signal, udf, roi, options, named=lazy)
        check_names(run_udf, chosen)
        made = run_for(SIGNAL, array, udfs, **chosen)
        results = tuple(made.values()) if isinstance(udf, dict) else made
        results = results if isinstance(results, tuple) else (results,)
        for result in results:
            check_dtypes(result.udf_name, result.buffers)
        return results if lazy else compute(*results, progress=wants_progressbar(show_progressbar))


def reader_of_changes(signal: Any) -> Callable[..., dict[str, Any]]:
    """Return a function that aligns changes of the parameters of a UDF with a signal."""
    return partial(read_values, read=mask_reader(signal), data=_axis_labels(signal))


def _axis_labels(signal: Any) -> DataLabels:
    """Return the names of the axes of a signal, with which parameters are aligned."""
    manager = signal.axes_manager
    names, n_nav = [a.name for a in read_calibration(signal).axes], len(manager.navigation_axes)
    sizes = [axis.size for axis in (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])]
    return DataLabels(
        nav=tuple(names[:n_nav]),
        sig=tuple(names[n_nav:]),
        sizes=dict(zip(names, sizes, strict=True)),
        indexes={},
    )


@unwrap.register(signals.BaseSignal)
def _open_signal(signal: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the array that dask computes for a signal, and a function that restores the signal.

    A signal in memory is returned unchanged. dask must not get it: it would iterate over it without
    end.
    """
    if not isinstance(signal.data, da.Array):
        return None, lambda _: signal
    return signal.data, lambda data: _with_data(signal, data)


def _with_data(signal: Any, data: Any) -> Any:
    """Return a copy of a signal with other data: lazy if these are lazy, else in memory."""
    made = signal.deepcopy()
    made.data = data
    if made._lazy and not isinstance(data, da.Array):
        made.compute(show_progressbar=False)  # computes nothing, only changes the class
    return made
