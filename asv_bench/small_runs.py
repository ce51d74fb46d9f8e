"""What a run costs where the data hardly count: eight tiny chunks, and the first run of a process.

Run it on a quiet machine: ``python asv_bench/small_runs.py``. It prints two tables, and with
``--write PAGE`` replaces the marked part of that page of the documentation.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da

import udfdask as ud
from comparison.by_udfdask import FOUR, make
from peers import versions

START, STOP = "<!-- small runs: start -->", "<!-- small runs: stop -->"

SIG = (64, 64)
"""Shape of a frame."""

WORKS = {
    "sum": ("sum",),
    "sumsig": ("sumsig",),
    "stddev": ("stddev",),
    "com": ("com",),
    "masks-16": ("masks-16",),
    "profile": ("profile",),
    "detector": ("detector",),
    "logsum": ("logsum",),
    "four": FOUR,
}
"""Kinds of work, with their parts."""

NAMES = {
    "sum": "sum over the frames",
    "sumsig": "sum over the pixels",
    "stddev": "variance over the frames",
    "com": "center of mass",
    "masks-16": "16 dense masks",
    "profile": "radial profile",
    "detector": "virtual detector",
    "logsum": "sum of logarithms",
    "four": "sums, variance, center of mass",
}

MOST_BESIDE_DASK = {"four": 2.5}
"""Goals: the largest ratio to the time of one sum in dask; 1.5 where nothing else is said."""

MOST_SECONDS = {"empty": 1.5, "warm": 0.3}
"""Goals for one UDF: the longest first run, less a later one, by what the cache of kernels holds.
"""

FIRST_RESULT = """
import sys, time
work, dtype = sys.argv[1:]
import dask.array as da
import udfdask as ud
import udfdask.udfs
from small_runs import SIG, udfs_of
x = da.ones((8, 8, *SIG), chunks=(1, 8, *SIG), dtype=dtype)
times = []
for _ in range(3):
    start = time.perf_counter(), time.process_time()
    for result in ud.run_udf(x, udfs_of(work)):
        result.compute(scheduler="synchronous")
    times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
print(*(first - min(second, third) for first, second, third in zip(*times)))
"""
"""A process that prints how much longer its first run takes than a later one: time, CPU time."""


def udfs_of(work: str) -> list[ud.UDF]:
    """Return the UDFs of a kind of work."""
    return [make(part, SIG) for part in WORKS[work]]


def overheads(dtype: str, rounds: int) -> dict[str, float]:
    """Return for each work the best time over eight tiny chunks, in seconds; for dask too."""
    x = da.ones((8, 4, *SIG), chunks=(1, 4, *SIG), dtype=dtype)

    def by_dask() -> object:
        return x.sum(axis=(0, 1)).compute()

    def by_udfdask(work: str) -> object:
        made = udfs_of(work)
        return ud.compute(*ud.run_udf(x, made))

    turns: dict[str, Callable[[], Any]] = {"dask": by_dask}
    turns |= {work: lambda work=work: by_udfdask(work) for work in WORKS}
    best = dict.fromkeys(turns, math.inf)
    for turn in turns.values():
        turn()  # compiles
    for _ in range(rounds):
        for name, turn in turns.items():
            start = time.perf_counter()
            turn()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def overhead_table(rounds: int) -> str:
    """Return the table of runs over eight tiny chunks."""
    best = overheads("uint16", rounds)
    lines = [
        "| eight chunks of 4 small frames | time | divided by that of dask | goal: at most | |",
        "|---" * 5 + "|",
        f"| `x.sum(axis=(0, 1))` in dask | {best['dask'] * 1e3:.1f} ms | 1.00 | | |",
    ]
    for work in WORKS:
        ratio, most = best[work] / best["dask"], MOST_BESIDE_DASK.get(work, 1.5)
        verdict = "reached" if ratio <= most else "**missed**"
        lines.append(
            f"| {NAMES[work]} | {best[work] * 1e3:.1f} ms | {ratio:.2f} | {most} | {verdict} |"
        )
    return "\n".join(lines)


def first_result(work: str, dtype: str, cache: Path) -> tuple[float, float]:
    """Return how much longer the first run of a fresh process takes: seconds, and CPU seconds."""
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", FIRST_RESULT, work, dtype],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "NUMBA_CACHE_DIR": str(cache),
        },
    )
    wall, cpu = map(float, done.stdout.split()[-2:])
    return wall, cpu


def first_result_table() -> str:
    """Return the table of first results."""
    lines = [
        "| first run, less a later one | dtype | empty cache | its CPU time | warm cache | |",
        "|---" * 6 + "|",
    ]
    for dtype in ("uint16", "float32"):
        for work, parts in WORKS.items():
            with tempfile.TemporaryDirectory() as folder:
                empty, cpu = first_result(work, dtype, Path(folder))
                warm = min(first_result(work, dtype, Path(folder))[0] for _ in range(2))
            reached = empty <= MOST_SECONDS["empty"] and warm <= MOST_SECONDS["warm"]
            verdict = "" if len(parts) > 1 else "reached" if reached else "**missed**"
            lines.append(
                f"| {NAMES[work]} | {dtype} | {empty:.2f} s | {cpu:.2f} s | {warm:.2f} s "
                f"| {verdict} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Print both tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args(arguments)
    overhead = overhead_table(args.rounds)
    print(overhead, flush=True)
    first = first_result_table()
    about = f"Measured {time.strftime('%Y-%m-%d')} on {dask.system.CPU_COUNT} cores, best of"
    text = f"{about} {args.rounds}, {versions(libertem=False)}."
    if args.write:
        before, rest = args.write.read_text().split(START)
        text = f"{START}\n{text}\n\n{overhead}\n\n{first}\n{STOP}"
        args.write.write_text(before + text + rest.split(STOP)[1])


if __name__ == "__main__":
    main()
