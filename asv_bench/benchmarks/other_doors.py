"""Progressive runs, functions of frames, the check of a UDF, and what building a graph costs."""

from __future__ import annotations

import dask.array as da
import numpy as np

import udfdask as ud
from benchmarks.layouts import LAYOUTS, dataset
from udfdask.testing import check_udf
from udfdask.udfs import SumSigUDF, SumUDF


def power(frame: np.ndarray) -> np.float64:
    """Return the power of a frame, from an FFT."""
    return np.float64((np.abs(np.fft.fft2(frame)) ** 2).sum())


class Progressive:
    """`run_udf_iter` with every snapshot read."""

    timeout = 600

    def setup(self) -> None:
        self.array = dataset("scan")

    def run(self) -> None:
        for snapshot in ud.run_udf_iter(self.array, [SumUDF(), SumSigUDF()], scheduler="threads"):
            total, sums = snapshot.buffers
            assert total["intensity"].shape == self.array.shape[2:]
            assert sums["intensity"].shape == self.array.shape[:2]

    def time_every_snapshot(self) -> None:
        self.run()

    def peakmem_every_snapshot(self) -> None:
        self.run()


class Frames:
    """`map_frames` with an FFT for each of at most 8192 frames."""

    timeout = 600

    def setup(self) -> None:
        array = dataset("scan")
        self.array = array[: max(1, 8192 // array.shape[1])]

    def time_fft(self) -> None:
        ud.map_frames(self.array, power).compute(scheduler="threads")

    def peakmem_fft(self) -> None:
        self.time_fft()


class Check:
    """`check_udf` on its own data: it is for the test suite of whoever writes a UDF."""

    timeout = 600

    def setup(self) -> None:
        self.udf = SumUDF()

    def time_check_udf(self) -> None:
        check_udf(self.udf)


class Graph:
    """Building a run over 4096 chunks, and the tasks and layers it has."""

    def setup(self) -> None:
        line, sig = 64, LAYOUTS["scan"].sig
        self.array = da.zeros((64, line, *sig), chunks=(1, 1, *sig), dtype="uint16")

    def build(self) -> ud.Result:
        return ud.run_udf(self.array, SumUDF())

    def time_build(self) -> None:
        self.build()

    def track_tasks(self) -> int:
        return len(dict(self.build()["intensity"].dask))

    def track_layers(self) -> int:
        return len(self.build()["intensity"].dask.layers)

    track_tasks.unit = "tasks"
    track_layers.unit = "layers"
