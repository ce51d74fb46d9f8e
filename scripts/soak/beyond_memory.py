"""Run much more data than memory through two worker processes, and watch their memory.

    python scripts/soak/beyond_memory.py [--gigabytes 100] [--limit 2GB] [--block "64 MiB"]

The data are made lazily, block by block, from the number of the block. Two workers compute
`sum + sumsig + com` in one pass. The results are compared with exact values, and the peak memory of
each worker process must be below the limit. No worker may be restarted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.utils import format_bytes, parse_bytes

import udfdask as ud
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

FRAME = (256, 256)
PERIOD = 61
"""Frames repeat after this number; a prime, so that neighboring blocks differ."""


def pattern() -> Any:
    """Return what all frames have in common."""
    return (np.arange(FRAME[0] * FRAME[1], dtype="uint16") % 1009).reshape(FRAME)


def fill(frames: int, block_id: tuple[int, ...]) -> Any:
    """Return a block: frame k of the data is the pattern plus k modulo the period."""
    offsets = (np.arange(frames) + frames * block_id[0]) % PERIOD
    return pattern() + offsets.astype("uint16")[:, None, None]


def make_data(gigabytes: float, block: str) -> da.Array:
    """Return the lazy data."""
    frames = parse_bytes(block) // (2 * FRAME[0] * FRAME[1])
    blocks = -(-int(gigabytes * 1e9) // (frames * 2 * FRAME[0] * FRAME[1]))
    return da.map_blocks(
        fill,
        frames,
        chunks=((frames,) * blocks, *((n,) for n in FRAME)),
        dtype="uint16",
        meta=np.empty((0,) * 3, "uint16"),
    )


def check(results: Any, frames: int) -> None:
    """Compare results with the values that follow from the definition of the data."""
    total, sums, centers = results
    offsets = np.arange(frames, dtype="uint64") % PERIOD
    base = pattern().astype("uint64")
    pixels = FRAME[0] * FRAME[1]
    np.testing.assert_array_equal(total["intensity"], base * frames + offsets.sum())
    np.testing.assert_array_equal(sums["intensity"], base.sum() + pixels * offsets)
    for axis in range(2):
        place = np.arange(FRAME[axis], dtype="uint64")
        moment = (base.sum(axis=1 - axis) * place).sum() + offsets * place.sum() * FRAME[1 - axis]
        expected = moment / (base.sum() + pixels * offsets)
        np.testing.assert_allclose(centers["raw_com"][:, axis], expected, rtol=1e-6)


def peak_bytes(pid: int) -> int:
    """Return the largest memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this script needs Linux")


def soak(gigabytes: float, limit: str, block: str, timeout: float) -> None:
    """Run, check, and print the peaks."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=timeout)
        before = set(client.run(os.getpid).values())
        data = make_data(gigabytes, block)
        start = time.perf_counter()
        udfs = [SumUDF(), SumSigUDF(), CoMUDF()]
        results = ud.compute(*ud.run_udf(data, udfs))
        seconds = time.perf_counter() - start
        pids = client.run(os.getpid)
        peaks = {worker: peak_bytes(pid) for worker, pid in pids.items()}
        print(
            f"{format_bytes(data.nbytes)} in {data.npartitions} blocks, {seconds:.1f} s, "
            f"{data.nbytes / seconds / 1e9:.2f} GB/s"
        )
        for worker, peak in peaks.items():
            print(f"{worker}: peak {format_bytes(peak)} of {limit}")
        if set(pids.values()) != before:
            sys.exit("a worker was restarted")
    check(results, data.shape[0])
    if max(peaks.values()) >= parse_bytes(limit):
        sys.exit("a worker needed more memory than its limit")
    print("all values are right")


def main() -> None:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=100)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--block", default="64 MiB")
    parser.add_argument(
        "--timeout", type=float, default=7200, help="seconds for the start of the workers"
    )
    options = parser.parse_args()
    soak(options.gigabytes, options.limit, options.block, options.timeout)


if __name__ == "__main__":
    main()
