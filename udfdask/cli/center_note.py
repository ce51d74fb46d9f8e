"""Notes on centers that are not on the beam, after a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfdask.cli.live import detector_outlines
from udfdask.plan.centers import zero_inside
from udfdask.results.result import Result
from udfdask.udf import UDF
from udfdask.udfs import CoMUDF, SumUDF

_HALF_PIXEL = 0.5
"""Distance between ``shape // 2``, the default center, and the middle of a frame of even size."""


def center_notes(results: Mapping[str, Result], udfs: Mapping[str, UDF]) -> list[str]:
    """Return a note for each `com` without a center if its shifts are similar for all frames.

    The mean shift is then larger than the standard deviation of the shifts over the scan.
    """
    notes = []
    for name, udf in udfs.items():
        if not isinstance(udf, CoMUDF) or not _measures_from_the_default(udf):
            continue
        shifts = np.asarray(results[name].raw["raw_shifts"], np.float64).reshape(-1, 2)
        shifts = shifts[np.isfinite(shifts).all(axis=1)]
        if len(shifts) < 2:
            continue
        (y, x), spread = shifts.mean(axis=0), np.hypot(*shifts.std(axis=0))
        if np.hypot(y, x) > max(spread, _HALF_PIXEL):
            axes, sig = results[name].calibration.axes, results[name].sig_shape
            zero = zero_inside(axes[-len(sig) :], sig)
            start = "the middle of the frame" if zero is None else "0 of the axes"
            notes.append(
                f"{name} measures shifts from {start}. Their mean is y {y:.3g}, "
                f"x {x:.3g} px, more than their standard deviation of {spread:.3g} px: is the beam "
                "elsewhere? --center find measures from the beam"
            )
    return notes


def beam_notes(results: Mapping[str, Result], udfs: Mapping[str, UDF]) -> list[str]:
    """Return a note for each virtual detector that misses or cuts the beam, if `sum` runs too."""
    patterns = [results[name]["intensity"] for name, udf in udfs.items() if type(udf) is SumUDF]
    if not patterns:
        return []
    from udfdask.masks.coverage import beam_remark

    remarks = {
        name: beam_remark(mask, patterns[0])
        for name, mask in detector_outlines(results, udfs).items()
    }
    return [
        f"{name} {remark}: is its center on the beam? --center find puts it there"
        for name, remark in remarks.items()
        if remark
    ]


def _measures_from_the_default(udf: CoMUDF) -> bool:
    """Return whether no center was given, and no mean or plane is subtracted."""
    given = udf._kwargs
    centers = [given[name] for name in ("cy", "cx", "centers")]
    regression = given["regression"]
    no_center = all(each is None for each in centers)
    return no_center and isinstance(regression, int) and regression < 0
