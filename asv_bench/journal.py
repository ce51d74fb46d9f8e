"""What a journal costs: runs over files of chunks of 64 MiB with and without one, in turn.

    python asv_bench/journal.py [--chunks 16 64] [--side 256] [--rounds 9]
                                [--names 1] [--folder /tmp]

The files are read once before, so that they are in the page cache. For each list of UDFs and each
number of chunks, the median ratio of a run with a journal to one without, in CPU time of the
process and in wall time. The time to name and look up records is included, and so is the time until
all records are written. From two numbers of chunks follows what a journal adds to each chunk and to
each run, in CPU time: from the shortest runs, because other programs only make runs longer.

`--names 8` reads each file under eight names, so that runs are eight times longer and need no more
memory for their files: what is written at the end of a run counts less.

`--side 8` measures this on chunks of 512 frames of 8 x 8 pixels, whose runs take little time
themselves, so that the difference is more precise.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumSigUDF, SumUDF

FRAMES = 512
CASES = {
    "sum": lambda _: [SumUDF()],
    "sumsig": lambda _: [SumSigUDF()],
    "com": lambda _: [CoMUDF()],
    "sum + com + masks": lambda side: [
        SumUDF(),
        CoMUDF(),
        ApplyMasksUDF(mask_factories=lambda: rings(side)),
    ],
}


def rings(side: int) -> np.ndarray:
    """Return eight masks."""
    distance = np.hypot(*(np.indices((side, side)) - side / 2))
    return np.stack([(distance * 16 / side).astype(int) == k for k in range(8)]).astype("float32")


def make_file(path: Path, n_chunks: int, side: int, names: int) -> list[Path]:
    """Write the data; return the paths under which they are read."""
    shape = (n_chunks, FRAMES, side, side)
    file = np.lib.format.open_memmap(path, mode="w+", dtype="uint16", shape=shape)
    chunk = np.random.default_rng(0).integers(0, 1000, shape[1:], dtype="uint16")
    for k in range(n_chunks):
        file[k] = chunk
    file.flush()
    paths = [path.with_name(f"{path.stem}-{k}.npy") for k in range(names)]
    for each in paths:
        each.hardlink_to(path)
    return paths


def measure(paths: list[Path], name: str, side: int, journal: Path | None) -> tuple[float, float]:
    """Return CPU time and wall time of one run."""
    options = {} if journal is None else {"journal": journal}
    start, cpu = time.perf_counter(), time.process_time()
    array = da.concatenate([open_file(path, chunks=(1, -1, -1, -1)).array for path in paths])
    ud.compute(*ud.run_udf(array, CASES[name](side)), scheduler="threads", **options)
    return time.process_time() - cpu, time.perf_counter() - start


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs=2, default=[16, 64])
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--names", type=int, default=1)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = [
            make_file(Path(folder, f"{n}.npy"), n, options.side, options.names)
            for n in options.chunks
        ]
        # A new folder for each: ext4 does not use the numbers of files again that were deleted in
        # the last seconds, and looks at each of them for each new file, which takes up to 0.8 ms.
        journals = (Path(folder, f"journal-{k}") for k in itertools.count())
        for name in CASES:
            measure(files[0], name, options.side, None)
            measure(files[0], name, options.side, next(journals))
            times = [
                [
                    [measure(paths, name, options.side, j) for j in (None, next(journals))]
                    for paths in files
                ]
                for _ in range(options.rounds)
            ]
            report(name, [n * options.names for n in options.chunks], np.array(times))


def report(name: str, chunks: list[int], times: np.ndarray) -> None:
    """Print a line; `times` has shape (rounds, files, 2 without and with, 2 CPU and wall)."""
    ratios = np.median(times[:, :, 1] / times[:, :, 0], axis=0)
    least = times.min(axis=0)[..., 0]
    short, long = least[:, 1] - least[:, 0]
    each = (long - short) / (chunks[1] - chunks[0])
    own = (least[1, 0] - least[0, 0]) / (chunks[1] - chunks[0])
    of_chunks = ", ".join(
        f"{n} chunks {cpu:.3f} (wall {wall:.3f})"
        for n, (cpu, wall) in zip(chunks, ratios, strict=True)
    )
    print(
        f"{name:18} ratios: {of_chunks}; a chunk takes {1e3 * own:.2f} ms of CPU time, a journal "
        f"{1e6 * each:.0f} us for each and {1e3 * (short - each * chunks[0]):.1f} ms for the run",
        flush=True,
    )


if __name__ == "__main__":
    main()
