"""What a cache costs, and what it saves: runs over a file of chunks of 64 MiB.

    python asv_bench/cache.py [--gib 2] [--rounds 7] [--folder /tmp]

Each round measures a run without a cache, one with an empty cache, and one whose results are all
there. For each list of UDFs: the least times, the median ratio of an empty cache, and the median
ratio of a full one. The time to name and look up records and to write them is included.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumSigUDF, SumUDF

FRAMES, SIDE = 512, 256
CASES = {
    "sum": lambda: [SumUDF()],
    "sumsig": lambda: [SumSigUDF()],
    "com": lambda: [CoMUDF()],
    "sum + com + masks": lambda: [SumUDF(), CoMUDF(), ApplyMasksUDF(mask_factories=rings)],
}


def rings() -> np.ndarray:
    """Return eight masks."""
    distance = np.hypot(*(np.indices((SIDE, SIDE)) - SIDE / 2))
    return np.stack([(distance * 16 / SIDE).astype(int) == k for k in range(8)]).astype("float32")


def make_file(path: Path, gib: float) -> None:
    """Write the data."""
    shape = (round(gib * 16), FRAMES, SIDE, SIDE)
    file = np.lib.format.open_memmap(path, mode="w+", dtype="uint16", shape=shape)
    for k in range(len(file)):
        file[k] = np.random.default_rng(k).integers(0, 1000, shape[1:], dtype="uint16")
    file.flush()


def measure(path: Path, name: str, cache: Path | None) -> tuple[float, float]:
    """Return wall time and CPU time of one run."""
    start, cpu = time.perf_counter(), time.process_time()
    with contextlib.nullcontext() if cache is None else ud.cache(cache):
        array = open_file(path, chunks=(1, -1, -1, -1)).array
        ud.compute(*ud.run_udf(array, CASES[name]()), scheduler="threads")
    return time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, cache = Path(folder, "scan.npy"), Path(folder, "cache")
        make_file(path, options.gib)
        print("UDFs; wall seconds without, empty, full, ratios; the same in CPU seconds")
        for name in CASES:
            measure(path, name, None)
            times = []
            for _ in range(options.rounds):
                shutil.rmtree(cache, ignore_errors=True)
                times.append([measure(path, name, each) for each in (None, cache, cache)])
            for kind, values in zip(("wall", "CPU"), np.moveaxis(times, 2, 0), strict=True):
                least = values.min(axis=0)
                ratios = np.median(values[:, 1:] / values[:, :1], axis=0)
                print(
                    f"{name:20} {kind:4} {least[0]:.3f} {least[1]:.3f} {least[2]:.4f}; "
                    f"medians of the ratios {ratios[0]:.3f} and {ratios[1]:.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
