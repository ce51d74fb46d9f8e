"""Recordings whose scan comes last, or whose axes are exchanged: lazy transposes, and storing once.

    python asv_bench/transposed.py [--rounds 5] [--folder /tmp]

Each line is a file, its chunks, and the axes after the transpose. It has the best times of the sums
and of the maxima of all frames, and their ratios to those of a file whose scan comes first.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import h5py
import hdf5plugin
import numpy as np

import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import SumSigUDF

NAV, SIG = 192, 64
"""Positions along each axis of the scan, and pixels along each axis of a frame."""

ROWS, LINES = 12, 8
"""Lines of the scan in a chunk of whole frames, and lines of pixels in a chunk of pixels."""

LAST = (2, 3, 0, 1)
"""The order of the axes (*sig, *nav) that gives (*nav, *sig)."""


class MaxUDF(ud.UDF):
    """Needs whole frames."""

    def get_preferred_input_dtype(self) -> Any:
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self) -> Any:
        return {"intensity": self.buffer("nav", dtype=self.meta.input_dtype)}

    def process_frame(self, frame: Any) -> None:
        self.results.intensity[:] = frame.max()


UDFS: dict[str, type[ud.UDF]] = {"sums": SumSigUDF, "maxima": MaxUDF}


def write(folder: Path) -> None:
    """Write counts with the scan first, and last, also compressed."""
    counts = np.random.default_rng(0).poisson(2, (NAV, NAV, SIG, SIG)).astype("uint16")
    np.save(folder / "first.npy", counts)
    last = np.ascontiguousarray(counts.transpose(2, 3, 0, 1))
    np.save(folder / "last.npy", last)
    with h5py.File(folder / "last.h5", "w") as file:
        stored = {"chunks": (LINES, LINES, NAV, NAV), **hdf5plugin.Bitshuffle()}
        file.create_dataset("counts", data=last, **stored)


def cases(folder: Path) -> dict[str, Callable[[], da.Array]]:
    """Return functions that open the files, by what they are."""

    def opened(name: str, chunks: tuple[int, ...], *order: int) -> da.Array:
        return open_file(folder / name, chunks=chunks).array.transpose(*order)

    first, whole = (ROWS, NAV, SIG, SIG), {0: ROWS, 2: -1, 3: -1}
    frames, pixels = (SIG, SIG, ROWS, NAV), (LINES, SIG, NAV, NAV)
    return {
        "scan first": lambda: opened("first.npy", first, 0, 1, 2, 3),
        "scan first, y and x exchanged": lambda: opened("first.npy", first, 1, 0, 2, 3),
        "scan first, ky and kx exchanged": lambda: opened("first.npy", first, 0, 1, 3, 2),
        "scan last, chunks of whole frames": lambda: opened("last.npy", frames, *LAST),
        "scan last, chunks of pixels": lambda: opened("last.npy", pixels, *LAST),
        "scan last, pixels, rechunk": lambda: opened("last.npy", pixels, *LAST).rechunk(whole),
        "compressed, chunks of whole frames": lambda: opened("last.h5", frames, *LAST),
        "compressed, chunks of pixels": lambda: opened("last.h5", pixels, *LAST),
        "compressed, pixels, rechunk": lambda: opened("last.h5", pixels, *LAST).rechunk(whole),
        "stored once": lambda: open_file(folder / "stored.zarr").array,
    }


def seconds(work: Callable[..., object], *arguments: object, **options: object) -> float:
    """Return the time of a call."""
    start = time.perf_counter()
    work(*arguments, **options)
    return time.perf_counter() - start


def run(array: da.Array, udf: ud.UDF) -> None:
    """Compute the results of a UDF."""
    ud.run_udf(array, udf).compute()


def main(arguments: list[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="folder for the files, 1 GB")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ud.UDFWarning)  # some of these chunks are bad ones
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        write(folder)
        opened = cases(folder)
        for turn in range(args.rounds + 1):
            if not turn:  # compiles, and stores what the last case opens
                opened["compressed, pixels, rechunk"]().to_zarr(str(folder / "stored.zarr"))
            again = opened["compressed, pixels, rechunk"]()
            stored = seconds(again.to_zarr, str(folder / "again.zarr"), overwrite=True)
            times["storing", ""].append(stored)
            for what, make in opened.items():
                for kind, udf in UDFS.items():
                    times[what, kind].append(seconds(run, make(), udf()))
    best = {key: min(every[1:]) for key, every in times.items()}
    print(f"{NAV**2 * SIG**2 * 2 >> 20} MiB of uint16, {dask.system.CPU_COUNT} threads. ", end="")
    print(f"Storing once takes {best['storing', '']:.2f} s.\n")
    print("| file and chunks | sums | | maxima | |\n|---|---|---|---|---|")
    for what in opened:
        cells = ((best[what, kind], best[what, kind] / best["scan first", kind]) for kind in UDFS)
        print(f"| {what} |", *(f"{taken:.2f} s | {ratio:.1f} |" for taken, ratio in cells))


if __name__ == "__main__":
    main()
