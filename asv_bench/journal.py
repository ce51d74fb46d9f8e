"""What a journal costs: runs over a file of chunks of 64 MiB with and without one, in turn.

    python asv_bench/journal.py [--gib 2] [--rounds 7] [--folder /tmp]

The file is read once before, so that it is in the page cache. For each UDF, the shortest wall time
and the least CPU time of the process, and their ratios. The time to name and look up records is
included, and so is the time until all records are on the disk.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

SIG = (256, 256)
FRAMES = (64 << 20) // (2 * SIG[0] * SIG[1])
CASES = {
    "sum": lambda: [SumUDF()],
    "sumsig": lambda: [SumSigUDF()],
    "sumsig + com": lambda: [SumSigUDF(), CoMUDF()],
    "sum + sumsig + com": lambda: [SumUDF(), SumSigUDF(), CoMUDF()],
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


def measure(path: Path, name: str, journal: Path | None) -> tuple[float, float]:
    """Return wall time and CPU time of one run."""
    options = {} if journal is None else {"journal": journal}
    start, cpu = time.perf_counter(), time.process_time()
    array = open_file(path, chunks=(1, -1, -1, -1)).array
    ud.compute(*ud.run_udf(array, CASES[name]()), scheduler="threads", **options)
    return time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, journal = Path(folder, "scan.npy"), Path(folder, "journal")
        make_file(path, options.gib)
        print("UDFs, seconds without and with a journal, ratio; the same in CPU time, ratio")
        for name in CASES:
            measure(path, name, None)
            times = []
            for _ in range(options.rounds):
                shutil.rmtree(journal, ignore_errors=True)
                times.append((*measure(path, name, None), *measure(path, name, journal)))
            wall, cpu, wall_journal, cpu_journal = np.min(times, axis=0)
            medians = np.median(np.array(times)[:, 2:] / np.array(times)[:, :2], axis=0)
            print(
                f"{name:20} {wall:.3f} {wall_journal:.3f} {wall_journal / wall:.3f}; "
                f"{cpu:.3f} {cpu_journal:.3f} {cpu_journal / cpu:.3f}; "
                f"medians of the ratios {medians[0]:.3f} and {medians[1]:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
