"""Read shifts of frames that are signals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from udfdask.arrays.geometry.labeled_values import check_in_pixels
from udfdask.descan import Descan
from udfdask.errors import ArgumentValueError
from udfdask.hyperspy.data import aligned_data


def read_descan(signal: Any, descan: Any) -> Any:
    """Return ``descan=`` as `udfdask.run_udf` takes it, in the order of ``signal.data``.

    A signal over the same navigation axes has the shift along (y, x) as its signal axis.
    """
    from hyperspy.api import signals

    shifts = descan.shifts if isinstance(descan, Descan) else descan
    if not isinstance(shifts, signals.BaseSignal):
        return descan
    nav = signal.axes_manager.navigation_shape
    if shifts.axes_manager.navigation_shape != nav:
        raise ArgumentValueError(
            f"descan is {shifts!r}, but {signal!r} is processed: pass a signal with navigation "
            f"axes of the same sizes {nav}, and the shift along each signal axis as signal axis"
        )
    if shifts._signal_type == "beam_shift":
        raise ArgumentValueError(
            f"descan is {shifts!r}, a beam shift with x before y that points to the center: pass "
            "-shifts.data[..., ::-1]"
        )
    check_in_pixels("descan", shifts, "raw_shifts")
    data = aligned_data(shifts)
    return replace(descan, shifts=data) if isinstance(descan, Descan) else data
