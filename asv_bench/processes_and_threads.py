"""A cluster of two processes over a mapped file, and two threads of this process, in turn.

    python asv_bench/processes_and_threads.py [--gib 2] [--rounds 7] [--folder /tmp]

The file has chunks of 64 MiB and is read once before, so that it is in the page cache. For each
UDF, the shortest wall time on threads and on the cluster, their ratio, and the median of the ratios
of all rounds. The cluster is allowed 1.25 times the time of threads.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

SIG = (256, 256)
FRAMES = (64 << 20) // (2 * SIG[0] * SIG[1])
CASES = {
    "sum": lambda: [SumUDF()],
    "sumsig": lambda: [SumSigUDF()],
    "com": lambda: [CoMUDF()],
    "stddev": lambda: [StdDevUDF()],
}


def make_file(path: Path, gib: float) -> None:
    """Write the data."""
    n_chunks = round(gib * 16)
    shape = (n_chunks, FRAMES, *SIG)
    file = np.lib.format.open_memmap(path, mode="w+", dtype="uint16", shape=shape)
    chunk = np.random.default_rng(0).integers(0, 1000, shape[1:], dtype="uint16")
    for k in range(n_chunks):
        file[k] = chunk
    file.flush()


def measure(path: Path, name: str, options: dict[str, Any]) -> float:
    """Return the wall time of one run."""
    start = time.perf_counter()
    array = open_file(path, chunks=(1, -1, -1, -1)).array
    ud.compute(*ud.run_udf(array, CASES[name]()), **options)
    return time.perf_counter() - start


def main() -> None:
    """Measure, and print a table."""
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        path = Path(folder, "scan.npy")
        make_file(path, options.gib)
        threads = {"scheduler": "threads", "num_workers": 2}
        print("UDF, seconds on threads and on two processes, ratio; median of the ratios")
        for name in CASES:
            for where in (threads, {"scheduler": client}):
                measure(path, name, where)
            times = [
                (measure(path, name, threads), measure(path, name, {"scheduler": client}))
                for _ in range(options.rounds)
            ]
            here, there = map(min, zip(*times, strict=True))
            median = statistics.median(b / a for a, b in times)
            print(f"{name:10} {here:.3f} {there:.3f} {there / here:.2f}; {median:.2f}", flush=True)


if __name__ == "__main__":
    main()
