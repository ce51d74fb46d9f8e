"""Time and peak memory of the analyses on small simulated recordings in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import dask.array as da
import numpy as np

import udfdask as ud
from benchmarks.layouts import default_gigabytes
from udfdask import analyses
from udfdask.demo import PhaseObject, make_recording
from udfdask.masks import DiskTemplate

TEMPLATE = DiskTemplate(radius=6, radius_outer=9)
"""The disks of the crystal."""


def positions() -> int:
    """Return the extent of both axes of a scan: 64 positions, or fewer if data are to be tiny."""
    return int(np.clip(32 * default_gigabytes(), 16, 64))


def thin_object() -> tuple[da.Array, dict[str, Any]]:
    """Return a recording of a phase object, and the options of its run."""
    n = positions()
    thin = PhaseObject(nav_shape=(n, n), defocus=20, dose=1e5)
    return thin.array, {"axes": thin.axes, "voltage": thin.voltage}


def crystal() -> tuple[da.Array, dict[str, Any]]:
    """Return a recording of a strained crystal; it needs no options."""
    n = positions()
    return make_recording((n, n), (96, 96)), {}


def disks_of_crystal() -> tuple[ud.Result, dict[str, Any]]:
    """Return the disks of a strained crystal."""
    frames, options = crystal()
    return analyses.find_disks(frames, TEMPLATE).compute(scheduler="threads"), options


ANALYSES: dict[str, tuple[Callable[[], Any], Callable[..., ud.Result]]] = {
    "integrated_dpc": (thin_object, analyses.integrated_dpc),
    "parallax": (thin_object, lambda x, **o: analyses.parallax(x, "20 mrad", bin=4, **o)),
    "single_side_band": (
        thin_object,
        lambda x, **o: analyses.single_side_band(x, semiangle="20 mrad", **o),
    ),
    "PolarUDF": (crystal, lambda x: ud.run_udf(x, analyses.PolarUDF(n_angles=36))),
    "find_disks": (crystal, lambda x: analyses.find_disks(x, TEMPLATE)),
    "fit_lattice": (disks_of_crystal, analyses.fit_lattice),
}
"""What each analysis is run over, and the function that runs it."""


class EachAnalysis:
    """One analysis, built and computed."""

    timeout = 600
    param_names: ClassVar = ["analysis"]
    params: ClassVar[Any] = list(ANALYSES)

    def setup(self, analysis: str) -> None:
        make, self.analyze = ANALYSES[analysis]
        self.data, self.options = make()
        if isinstance(self.data, da.Array):  # otherwise, its simulation would be measured
            rows = -(-positions() // 4)
            frames = self.data.compute(scheduler="threads")
            self.data = da.from_array(frames, chunks=(rows, -1, -1, -1))

    def run(self) -> None:
        self.analyze(self.data, **self.options).compute(scheduler="threads")

    def time_run(self, analysis: str) -> None:
        self.run()

    def peakmem_run(self, analysis: str) -> None:
        self.run()
