"""Guess how the detector is turned against the scan, and show why."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.udf.buffers import BufferSpec
from udfdask.udfs.com import CoMUDF, over_scan
from udfdask.udfs.shared.built_in import check_scan
from udfdask.udfs.shared.com_corrections import weigh_angles

CURVES = ("curl_by_angle", "divergence_by_angle")
FLIPS = ("as it is", "y flipped")
"""Labels of the two curves."""


class ScanRotationUDF(CoMUDF):
    """Guess the scan rotation and the flip from the centers of mass, with the evidence.

    The field of a thin object has no curl. The right rotation and flip are those with the smallest
    curl; of two opposite rotations, the one whose field points to atoms.

    Its parameters are those of `CoMUDF`. The guess is made from `raw_com`, without their rotation
    and flip.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `CoMUDF`; in `run_udf`, if the scan is not 2-D with at least 2 positions along each
        axis.

    See Also
    --------
    udfdask.udfs.guess_corrections : The same from centers of mass, as a function.

    Notes
    -----
    Results of kind single, in addition to those of `CoMUDF`:

    - `curl_by_angle` and `divergence_by_angle`, shape (360, 2), float64: root mean square over the
      scan after a rotation by 0, 1, ... 359 degrees, as it is and with y flipped, in pixels per
      scan position. Curves that are nearly flat say that there is no answer.
    - `scan_rotation`, in degrees, and `flip_y`, bool, shape (): parameters of `CoMUDF`.

    The last row and column of the scan do not count. If no position is left, the results are NaN,
    and `flip_y` is False.

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.analyses import ScanRotationUDF
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(24, 24), scan_rotation=30, flip_y=True)
    >>> guess = ud.run_udf(thin, ScanRotationUDF()).compute()
    >>> print(guess["scan_rotation"], guess["flip_y"])
    30.0 True
    """

    default_plots = CURVES
    promises = CoMUDF.promises

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        check_scan(self)
        declare = partial(self.buffer, "single", dtype="float64", use="result_only")
        curves = {name: declare((360, 2)) for name in CURVES}
        guessed = {"scan_rotation": declare(), "flip_y": declare(dtype="bool")}
        return {**super().get_result_buffers(), **curves, **guessed}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        angle, flip = Axis(name="scan_rotation", unit="deg"), Axis(name="flip", labels=FLIPS)
        return {**super().get_result_axes(), **dict.fromkeys(CURVES, (angle, flip))}

    def get_result_units(self) -> Mapping[str, str | None]:
        curves = dict.fromkeys(CURVES, "px/position")
        return {**super().get_result_units(), **curves, "scan_rotation": "deg"}

    def get_results(self) -> Mapping[str, Any]:
        results = super().get_results()
        y, x = over_scan(self.meta, results["raw_com"])
        found = weigh_angles(y, x, (slice(0, -1), slice(0, -1)))
        values = [np.full((360, 2), np.nan)] * 2 + [np.nan, False]
        if found is not None:
            angle, flip, *_ = found.guess
            values = [found.curl, found.divergence, float(angle), flip]
        return {**results, **dict(zip((*CURVES, "scan_rotation", "flip_y"), values, strict=True))}
