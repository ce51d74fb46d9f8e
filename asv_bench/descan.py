"""What descan costs: runs with shifted frames against the same runs without, in turns.

    python asv_bench/descan.py [--mib 512] [--rounds 9] [--threads 2] [--sides 128 256 1024]

prints for each UDF the time of a run without shifts, and the times of runs with shifts by whole
pixels and by parts of a pixel as multiples of it. The data are uint16 in memory, in chunks of
64 MiB, so that nothing hides the cost: reading a file takes longer. Shifts are up to 4 % of the
frame. The contestants take turns, and each number is the median of the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.descan import Descan
from udfdask.udfs import ApplyMasksUDF, CoMUDF, StdDevUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

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
    masks = np.random.default_rng(1).random((4, side, side)).astype("float32")
    return {
        "SumUDF": lambda: [SumUDF()],
        "SumSigUDF": lambda: [SumSigUDF()],
        "VirtualDetectorUDF": lambda: [VirtualDetectorUDF("ring", ri=side / 8, ro=side / 3)],
        "CoMUDF": lambda: [CoMUDF()],
        "StdDevUDF": lambda: [StdDevUDF()],
        "ApplyMasksUDF, 4 masks": lambda: [ApplyMasksUDF(mask_factories=lambda: masks)],
        "maximum, in NumPy": lambda: [Highest()],
        "SumUDF, SumSigUDF, CoMUDF, StdDevUDF": lambda: [
            SumUDF(),
            SumSigUDF(),
            CoMUDF(),
            StdDevUDF(),
        ],
    }


def make(side: int, mib: int) -> tuple[da.Array, np.ndarray]:
    """Data in memory and their shifts."""
    frames = CHUNK_BYTES // (2 * side * side)
    n = max(2, (mib << 20) // CHUNK_BYTES)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 1000, (n, frames, side, side), dtype="uint16")
    shifts = rng.uniform(-side / 25, side / 25, (n, frames, 2))
    return da.from_array(data, chunks=(1, frames, side, side)), shifts


def seconds(results: tuple[ud.Result, ...]) -> float:
    """The time of a computation."""
    start = time.perf_counter()
    ud.compute(*results)
    return time.perf_counter() - start


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=512, help="size of the data")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sides", type=int, nargs="+", default=[128, 256, 1024])
    args = parser.parse_args(arguments)
    print("| frames | UDF | GB/s without | whole pixels | parts of a pixel | goal |")
    print("|---" * 6 + "|")
    with dask.config.set(scheduler="threads", num_workers=args.threads):
        for side in args.sides:
            array, shifts = make(side, args.mib)
            for name, make_udfs in udfs_for(side).items():
                ways = [None, Descan(shifts), Descan(shifts, subpixel=True)]
                runs = [ud.run_udf(array, make_udfs(), descan=way) for way in ways]
                for run in runs:
                    seconds(run)  # compiles
                rounds = [[seconds(run) for run in runs] for _ in range(args.rounds)]
                whole, parts = (
                    statistics.median(times[k] / times[0] for times in rounds) for k in (1, 2)
                )
                speed = array.nbytes / 1e9 / statistics.median(times[0] for times in rounds)
                goal = "reached" if whole <= GOAL else "**missed**"
                print(
                    f"| {side} x {side} | {name} | {speed:.1f} | {whole:.2f} | {parts:.2f} | "
                    f"{goal} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
