"""LiberTEM's own UDF objects, run here and by LiberTEM, on the same data and threads.

    python asv_bench/libertem_objects.py [--cases SumUDF,CoMUDF] [--dtypes uint16] [--seconds 5]

prints a Markdown table, and with ``--write PAGE`` replaces the marked part of that page of the
documentation. Both libraries get the same array in memory and as many threads, and take turns in
pairs. A ratio is LiberTEM's time over the time here, the median over the pairs: work of other
processes disturbs both partners of a pair. The CPU time counts all threads of the process. Results
are compared. It ends with status 1 if results differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from libertem.api import Context
from libertem.udf import UDF
from libertem.udf.auto import AutoUDF
from libertem.udf.base import NoOpUDF
from libertem.udf.com import CoMUDF
from libertem.udf.crystallinity import CrystallinityUDF
from libertem.udf.FEM import FEMUDF
from libertem.udf.logsum import LogsumUDF
from libertem.udf.masks import ApplyMasksUDF
from libertem.udf.raw import PickUDF
from libertem.udf.stddev import StdDevUDF
from libertem.udf.sum import SumUDF
from libertem.udf.sumsigudf import SumSigUDF
from libertem_blobfinder.common.patterns import RadialGradient
from libertem_blobfinder.udf.correlation import (
    FastCorrelationUDF,
    FullFrameCorrelationUDF,
    SparseCorrelationUDF,
)
from libertem_blobfinder.udf.integration import IntegrationUDF

import udfdask as ud
from comparison.contest import wait_for_idle_threads
from comparison.options import chosen

START, STOP = "<!-- speed: start -->", "<!-- speed: stop -->"

NAV, SIG = (64, 32), (256, 256)
"""256 MiB of uint16, 512 MiB of float32."""

PARTS = 4
"""Number of chunks and of LiberTEM's partitions: equal data for each task."""

PEAKS = np.array([(y, x) for y in (60, 128, 196) for x in (60, 128, 196)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A UDF of LiberTEM, and the part of the data that it gets."""

    make: Callable[[], UDF]
    """Makes the UDF."""
    rows: int = NAV[0]
    """Number of rows of the scan: few for UDFs that take long."""
    pick: bool = False
    """Only every 64th frame is selected."""


class PartitionUDF(UDF):
    """The sum of each frame, by `process_partition`."""

    def get_result_buffers(self) -> dict[str, Any]:
        """Declare the sums."""
        return {"sums": self.buffer(kind="nav", dtype="float32")}

    def process_partition(self, partition: np.ndarray) -> None:
        """Add up the pixels of each frame."""
        self.results.sums[:] = partition.sum(axis=(1, 2))


class FrameUDF(UDF):
    """The brightest pixel of each frame, by `process_frame`."""

    def get_result_buffers(self) -> dict[str, Any]:
        """Declare the brightest pixel."""
        return {"peak": self.buffer(kind="nav", dtype="float32")}

    def process_frame(self, frame: np.ndarray) -> None:
        """Find the brightest pixel."""
        self.results.peak[:] = frame.max()


def masks(count: int) -> Callable[[], UDF]:
    """Return a maker of `ApplyMasksUDF`."""

    def factory() -> np.ndarray:
        return np.random.default_rng(1).random((count, *SIG)).astype(np.float32)

    return lambda: ApplyMasksUDF(mask_factories=factory)


def correlation(cls: Any, **options: Any) -> Callable[[], UDF]:
    """Return a maker of a UDF that finds disks."""
    pattern = RadialGradient(radius=8, search=16)
    return lambda: cls(peaks=PEAKS, match_pattern=pattern, **options)


def integration() -> UDF:
    """Return a UDF that integrates disks."""
    centers = np.tile(PEAKS.astype(np.int64), (8 * NAV[1], 1, 1))
    aux = UDF.aux_data(centers, kind="nav", extra_shape=PEAKS.shape, dtype=np.int64)
    return IntegrationUDF(centers=aux, pattern=RadialGradient(radius=8, search=16))


CASES = {
    "SumUDF": Case(make=SumUDF),
    "SumSigUDF": Case(make=SumSigUDF),
    "StdDevUDF": Case(make=StdDevUDF),
    "LogsumUDF": Case(make=LogsumUDF, rows=16),
    "ApplyMasksUDF, 1 mask": Case(make=masks(1)),
    "ApplyMasksUDF, 16 masks": Case(make=masks(16)),
    "CoMUDF": Case(make=lambda: CoMUDF.with_params(cy=128, cx=128, r=100)),
    "FEMUDF": Case(make=lambda: FEMUDF(center=(128, 128), rad_in=20, rad_out=90)),
    "CrystallinityUDF": Case(
        make=lambda: CrystallinityUDF(rad_in=20, rad_out=90, real_center=(128, 128), real_rad=10),
        rows=8,
    ),
    "PickUDF": Case(make=PickUDF, pick=True),
    "AutoUDF": Case(make=lambda: AutoUDF(f=lambda frame: frame.sum(axis=0))),
    "NoOpUDF": Case(make=NoOpUDF),
    "FastCorrelationUDF": Case(make=correlation(FastCorrelationUDF), rows=8),
    "FullFrameCorrelationUDF": Case(make=correlation(FullFrameCorrelationUDF), rows=8),
    "SparseCorrelationUDF": Case(make=correlation(SparseCorrelationUDF, steps=3), rows=8),
    "IntegrationUDF": Case(make=integration, rows=8),
    "a UDF with `process_partition`": Case(make=PartitionUDF),
    "a UDF with `process_frame`": Case(make=FrameUDF),
}
"""The UDFs by their titles in the table."""

DTYPES = ("uint16", "float32")


def make_data(dtype: str) -> np.ndarray:
    """Return frames with disks on noise, shape (*NAV, *SIG)."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: SIG[0], : SIG[1]]
    frame = np.zeros(SIG, dtype=np.uint16)
    for cy, cx in PEAKS:
        frame[(y - cy) ** 2 + (x - cx) ** 2 < 64] = 150
    data = np.empty((*NAV, *SIG), dtype=dtype)
    for row in data:
        row[:] = frame + rng.integers(0, 20, SIG, dtype=np.uint16)
    return data


class Pair:
    """The two runs of a case, and their times."""

    def __init__(self, context: Context, data: np.ndarray, case: Case, threads: int) -> None:
        self._context, self._case, self._threads = context, case, threads
        self._roi = None
        data = data[: case.rows]
        if case.pick:
            self._roi = np.zeros(data.shape[:2], dtype=bool)
            self._roi.reshape(-1)[::64] = True
        self._dataset = context.load("memory", data=data, sig_dims=2, num_partitions=PARTS)
        rows = -(-len(data) // PARTS)
        self._array = da.from_array(data, chunks=(rows, *data.shape[1:]), name=False)
        self.times: list[tuple[float, float, float, float]] = []

    def theirs(self) -> dict[str, np.ndarray]:
        """Return the results of LiberTEM."""
        udf = self._case.make()
        results = self._context.run_udf(dataset=self._dataset, udf=udf, roi=self._roi)
        return {name: np.asarray(buffer.raw_data) for name, buffer in results.items()}

    def ours(self) -> dict[str, np.ndarray]:
        """Return the results of udfdask."""
        result = ud.run_udf(self._array, self._case.make(), roi=self._roi)
        done = result.compute(scheduler="threads", num_workers=self._threads)
        return {name: done.raw[name] for name in done}

    def differences(self) -> list[str]:
        """Run both once, and return the names of results that differ."""
        ours, theirs = self.ours(), self.theirs()
        if set(ours) != set(theirs):
            return sorted(set(ours) ^ set(theirs))
        return [n for n in ours if not _agree(np.reshape(ours[n], theirs[n].shape), theirs[n])]

    def take_turns(self, seconds: float, least: int) -> None:
        """Time both in turns, at least `least` times and for a number of seconds."""
        end = time.monotonic() + seconds
        while len(self.times) < least or time.monotonic() < end:
            found = {}
            turns = [self.theirs, self.ours]
            for turn in turns if len(self.times) % 2 else turns[::-1]:
                wait_for_idle_threads()
                wall, cpu = time.perf_counter(), time.process_time()
                turn()
                found[turn.__name__] = time.perf_counter() - wall, time.process_time() - cpu
            self.times.append((*found["theirs"], *found["ours"]))

    def row(self, title: str, dtype: str, differences: list[str]) -> str:
        """Return the row of the table."""
        theirs, their_cpu, ours, our_cpu = (
            statistics.median(column) for column in zip(*self.times, strict=True)
        )
        wall = statistics.median(t[0] / t[2] for t in self.times)
        cpu = statistics.median(t[1] / t[3] for t in self.times)
        cells = [title if " " in title else f"`{title}`", dtype]
        cells += [f"{1e3 * t:.0f}" for t in (theirs, ours)] + [f"{wall:.2f}"]
        cells += [f"{1e3 * t:.0f}" for t in (their_cpu, our_cpu)] + [f"{cpu:.2f}"]
        if differences:
            cells[0] += f" DIFFERENT: {', '.join(differences)}"
        return f"| {' | '.join(cells)} |"


def _agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether results are equal, up to the rounding of float32 sums."""
    if one.dtype.kind in "iub":
        return bool(np.array_equal(one, other))
    # shifts are small differences of positions: LiberTEM rounds them to 1e-4 pixels
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-3 * scale, equal_nan=True))


HEAD = (
    "| UDF | data | LiberTEM, ms | here, ms | ratio "
    "| LiberTEM, CPU ms | here, CPU ms | ratio |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def replace_part(page: Path, text: str) -> None:
    """Write a text between the marks of a page."""
    before, rest = page.read_text("utf-8").split(START)
    page.write_text(f"{before}{START}\n\n{text}\n\n{STOP}{rest.split(STOP)[1]}", "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", help="titles with commas between them; all by default")
    parser.add_argument("--dtypes", help="dtypes of the data with commas between them")
    parser.add_argument("--seconds", type=float, default=4, help="for each case and dtype")
    parser.add_argument("--pairs", type=int, default=3, help="at least, for each case and dtype")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args = parser.parse_args(arguments)
    if args.cases:
        args.cases = args.cases.replace(", ", ";")
    names = [t.replace(", ", ";") for t in CASES]
    titles = [t.replace(";", ", ") for t in chosen(args.cases, names, "cases")]
    lines = [HEAD]
    print(HEAD, flush=True)
    failed = False
    warnings.simplefilter("ignore")  # such as those of LiberTEM on np.divide(where=)
    with Context.make_with("threads", cpus=args.threads) as context:
        for dtype in chosen(args.dtypes, DTYPES, "dtypes"):
            data = make_data(dtype)
            for title in titles:
                pair = Pair(context, data, CASES[title], args.threads)
                differences = pair.differences()
                failed |= bool(differences)
                pair.take_turns(args.seconds, args.pairs)
                lines.append(pair.row(title, dtype, differences))
                print(lines[-1], flush=True)
    if args.write:
        replace_part(args.write, "\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
