"""Peak memory of a run over data that are generated while they are read.

    python asv_bench/memory.py [--gigabytes 20] [--layout frames|signal] [--snapshots]

prints the peak resident set size of this process in MB, and the seconds. Chunks have 64 MiB and
two threads work on them. `frames` has whole frames of 256x256 uint16 in each chunk, `signal` cuts
frames of 1024x1024 uint16 into 32 signal chunks of (32, 1024). With `--snapshots` it is a
progressive run, every snapshot of which is read.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.udfs import SumSigUDF, SumUDF

CHUNK_BYTES = 64 << 20


def generate(block_info=None):
    """A chunk of ones, written to in full so that its memory is really used."""
    shape = block_info[None]["chunk-shape"]
    return np.ones(shape, dtype=np.uint16)


def make(layout: str, gigabytes: float) -> da.Array:
    """A lazy array of about so many gigabytes (10**9 bytes)."""
    n_chunks = max(2, round(gigabytes * 1e9 / CHUNK_BYTES))
    if layout == "frames":
        frame, sig = 256 * 256 * 2, ((256,), (256,))
        per_chunk = CHUNK_BYTES // frame
    else:
        frame, sig = 1024 * 1024 * 2, ((32,) * 32, (1024,))
        per_chunk = CHUNK_BYTES // (32 * 1024 * 2)
        n_chunks = max(1, round(n_chunks / 32))
    rows = per_chunk // 32
    return da.map_blocks(
        generate,
        chunks=((rows,) * n_chunks, (32,), *sig),
        dtype=np.uint16,
        meta=np.empty((0,) * 4, dtype=np.uint16),
    )


def peak_bytes(pid: int | str = "self") -> int:
    """Largest resident set size of a process so far.

    On Linux, `ru_maxrss` begins with that of the process that started this one.
    """
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--layout", choices=["frames", "signal"], default="frames")
    parser.add_argument("--snapshots", action="store_true")
    arguments = parser.parse_args()
    x = make(arguments.layout, arguments.gigabytes)
    how = {"scheduler": "threads", "num_workers": 2}
    before = peak_bytes()
    start = time.perf_counter()
    if arguments.snapshots:
        for snapshot in ud.run_udf_iter(x, [SumUDF(), SumSigUDF()], **how):
            total, sums = snapshot.buffers
    else:
        total, sums = ud.compute(*ud.run_udf(x, [SumUDF(), SumSigUDF()]), **how)
    seconds = time.perf_counter() - start
    n_frames = x.shape[0] * x.shape[1]
    assert (total["intensity"] == n_frames).all()
    assert (sums["intensity"] == x.shape[2] * x.shape[3]).all()
    print(
        f"peak {peak_bytes() / 1e6:.0f} MB, {before / 1e6:.0f} MB before, "
        f"{x.nbytes / 1e9:.1f} GB in {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
