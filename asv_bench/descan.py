"""What descan costs: runs with shifted frames against the same runs without, in turns.

    python asv_bench/descan.py [--mib 512] [--rounds 9] [--threads 2] [--sides 128 256 1024] [--cpu]

prints for each UDF the speed of a run without shifts, and the times of runs with shifts by whole
pixels and by parts of a pixel as multiples of its time. The data are uint16 in chunks of 64 MiB:
a compressed zarr store and a plain file, both in the page cache, and the same in memory, where
nothing hides the cost of a copy. Shifts are up to 4 % of the frame. The contestants take turns,
and each number is the median of the ratios of the rounds. The goal is that of runs over files,
with whole pixels.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.corrections import Descan
from udfdask.io import open_file
from udfdask.udfs import (
    ApplyMasksUDF,
    CoMUDF,
    RadialFourierUDF,
    StdDevUDF,
    SumSigUDF,
    SumUDF,
    VirtualDetectorUDF,
)

GOAL = 1.3
"""Largest cost of shifts by whole pixels, as a multiple of the time without shifts."""

CHUNK_BYTES = 64 << 20


class Highest(ud.UDF):
    """A UDF that a user would write: the maximum of each frame."""

    def get_result_buffers(self):
        """One number for each frame."""
        return {"highest": self.buffer("nav", dtype=self.meta.input_dtype)}

    def get_preferred_input_dtype(self):
        """The dtype of the data."""
        return self.USE_NATIVE_DTYPE

    def process_tile(self, tile):
        """The maximum of the pixels so far."""
        most = tile.max(axis=(1, 2))
        self.results.highest[:] = np.maximum(self.results.highest, most)


def udfs_for(side: int) -> dict[str, Callable[[], list[ud.UDF]]]:
    """UDFs over frames of `side` x `side` pixels."""
    masks = np.random.default_rng(1).random((64, side, side)).astype("float32")
    return {
        "SumUDF": lambda: [SumUDF()],
        "SumSigUDF": lambda: [SumSigUDF()],
        "VirtualDetectorUDF": lambda: [VirtualDetectorUDF("ring", ri=side / 8, ro=side / 3)],
        "CoMUDF": lambda: [CoMUDF()],
        "StdDevUDF": lambda: [StdDevUDF()],
        "ApplyMasksUDF, 4 masks": lambda: [ApplyMasksUDF(mask_factories=lambda: masks[:4])],
        "ApplyMasksUDF, 64 masks": lambda: [ApplyMasksUDF(mask_factories=lambda: masks)],
        "RadialFourierUDF": lambda: [RadialFourierUDF()],
        "maximum, in NumPy": lambda: [Highest()],
        "SumUDF, SumSigUDF, CoMUDF, StdDevUDF": lambda: [
            SumUDF(),
            SumSigUDF(),
            CoMUDF(),
            StdDevUDF(),
        ],
    }


def make(side: int, mib: int, folder: str) -> tuple[dict[str, da.Array], np.ndarray]:
    """Data in files and in memory, and their shifts."""
    frames = CHUNK_BYTES // (2 * side * side)
    n = max(2, (mib << 20) // CHUNK_BYTES)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 1000, (n, frames, side, side), dtype="uint16")
    shifts = rng.uniform(-side / 25, side / 25, (n, frames, 2))
    path, chunks = Path(folder, f"frames-{side}.npy"), (1, frames, side, side)
    np.save(path, data)
    array = da.from_array(data, chunks=chunks)
    store = Path(folder, f"frames-{side}.zarr")
    array.to_zarr(str(store))
    arrays = {
        "zarr": open_file(store).array,
        "file": open_file(path, chunks=chunks).array,
        "memory": array,
    }
    return arrays, shifts


def seconds(results: tuple[ud.Result, ...], clock: Callable[[], float]) -> float:
    """The time of a computation."""
    start = clock()
    ud.compute(*results)
    return clock() - start


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=512, help="size of the data")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sides", type=int, nargs="+", default=[128, 256, 1024])
    parser.add_argument("--folder", help="where the file is written")
    parser.add_argument("--cpu", action="store_true", help="compare CPU times, if others run too")
    args = parser.parse_args(arguments)
    print("| frames | UDF | data | GB/s without | whole pixels | parts of a pixel | goal |")
    print("|---" * 7 + "|")
    with (
        dask.config.set(scheduler="threads", num_workers=args.threads),
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        for side in args.sides:
            arrays, shifts = make(side, args.mib, folder)
            ways = [None, Descan(shifts), Descan(shifts, subpixel=True)]
            for name, make_udfs in udfs_for(side).items():
                for where, array in arrays.items():
                    runs = [ud.run_udf(array, make_udfs(), descan=way) for way in ways]
                    show(f"{side} x {side} | {name}", where, array.nbytes, runs, args)


def show(
    case: str, where: str, size: int, runs: list[tuple[ud.Result, ...]], args: argparse.Namespace
) -> None:
    """Print a row: a run without shifts, by whole pixels, and by parts of a pixel."""
    clock = time.process_time if args.cpu else time.perf_counter
    for run in runs:
        seconds(run, clock)  # compiles
    rounds = [[seconds(run, clock) for run in runs] for _ in range(args.rounds)]
    whole, parts = (statistics.median(times[k] / times[0] for times in rounds) for k in (1, 2))
    speed = size / 1e9 / statistics.median(times[0] for times in rounds)
    goal = "" if where == "memory" else "reached" if whole <= GOAL else "**missed**"
    print(f"| {case} | {where} | {speed:.1f} | {whole:.2f} | {parts:.2f} | {goal} |", flush=True)


if __name__ == "__main__":
    main()
