"""Compare the built-in UDFs with the limits of the machine, for each dtype.

    python asv_bench/roofline.py [--gigabytes 0.4] [--dtypes uint16,float32] [--works sum,com]

prints a table for each dtype, and with ``--write PAGE`` replaces the marked part of that page of
the documentation. ``--save FILE`` writes the ratios as JSON, for `vector_widths.py`. It takes 9 to
14 minutes on two quiet cores, most of it for the other libraries.

The limits are measured in the same run. *Read* is the time to add up the 64-bit words of the same
file from the page cache. *Products* is the time that the multiplications with dense masks take at
the speed of a large matrix product (`sgemm`, or `dgemm` for results in double precision). *Of read
+ products* compares with both, one after the other: the first access to a page of a mapped file
takes processor time. The last column says which goals are missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import dask
import numpy as np
from threadpoolctl import threadpool_limits

from comparison import by_libertem
from comparison.by_libertem import LiberTEM
from comparison.cases import Case
from comparison.contest import Outcome, run_case
from comparison.material import MASK_COUNTS
from comparison.options import chosen
from peers import versions

START, STOP = "<!-- roofline: start -->", "<!-- roofline: stop -->"

DTYPES = {
    "bool": "bool",
    "uint8": "uint8",
    "uint16": "scan",
    ">u2": "big-endian",
    "int32": "int32",
    "float32": "float32",
    "float64": "float64",
}
"""The dtypes, with the names of their data sets."""

WORKS = {
    "sum": "sum over the frames",
    "sumsig": "sum over the pixels",
    "stddev": "variance over the frames",
    "com": "center of mass",
    **{f"masks-{n}": f"{n} dense masks" for n in MASK_COUNTS},
    "profile": "radial profile",
    "detector": "virtual detector",
    "logsum": "sum of logarithms",
    "four": "sums, variance, center of mass",
}
"""Kinds of work, with their names in the table."""

LEAST_OF_READ = 0.6
LEAST_OF_PRODUCTS = 0.8
MOST_OF_APART = 0.5
LEAST_BESIDE_LIBERTEM = {1: 5.0, 2: 5.0, 4: 2.0, 8: 2.0}
"""By bytes per pixel. If the read is the limit, 1.0 is enough: nothing can be faster."""

ARITHMETIC = {"profile", "logsum"}
"""Work that is limited by arithmetic for which no separate limit is measured."""

MANY = {"masks-500": 1 / 4}
"""The share of the data that is used for work that takes long in all libraries."""

EXECUTORS = ("threads", "dask")
"""LiberTEM's faster ones; its third one would add minutes."""

PATIENCE = 1.0
"""Seconds of timed turns after which a contestant is measured well enough."""

SIZE = 2048
"""Rows and columns of the matrices of the large product."""


@dataclass(frozen=True)
class Verdict:
    """The times of a case compared with its limits."""

    outcome: Outcome
    flops: float
    """Operations per second of a large matrix product."""

    @property
    def seconds(self) -> float:
        """The time of udfdask."""
        return self.outcome.seconds["udfdask"]

    @property
    def masks(self) -> int:
        """The number of dense masks, 0 for other work."""
        work = self.outcome.case.work
        return int(work.removeprefix("masks-")) if work.startswith("masks-") else 0

    @property
    def products(self) -> float:
        """The shortest time of the multiplications, in seconds."""
        return 2 * self.masks * self.outcome.pixels / self.flops

    @property
    def limit(self) -> str:
        """The name of the limit that is reached first."""
        if self.products > self.outcome.seconds["read"]:
            return "products"
        return "arithmetic" if self.outcome.case.work in ARITHMETIC else "read"

    @property
    def of_limit(self) -> float:
        """The time of the limit, divided by the time of udfdask."""
        return max(self.products, self.outcome.seconds["read"]) / self.seconds

    @property
    def of_both(self) -> float | None:
        """The time to read and then to multiply, divided by the time of udfdask."""
        if not self.masks:
            return None
        return (self.outcome.seconds["read"] + self.products) / self.seconds

    def ratio(self, other: str) -> float | None:
        """Return the time of another contestant, divided by the time of udfdask."""
        taken = self.outcome.seconds.get(other)
        return None if taken is None else taken / self.seconds

    def misses(self) -> list[str]:
        """Return the goals that are missed; every text says what was asked for."""
        missed = list(self.outcome.differences)
        libertem, apart = self.ratio("LiberTEM"), self.ratio("apart")
        least = LEAST_BESIDE_LIBERTEM[np.dtype(self.outcome.dtype).itemsize]
        if self.limit != "arithmetic" and self.of_limit >= LEAST_OF_READ:
            least = 1.0
        if libertem is not None and libertem < least:
            missed.append(f"LiberTEM < {least:g}")
        if self.masks:
            if self.of_limit < LEAST_OF_PRODUCTS:
                missed.append(f"limit < {LEAST_OF_PRODUCTS}")
        elif apart is not None:
            if 1 / apart > MOST_OF_APART:
                missed.append(f"one by one: {1 / apart:.2f} > {MOST_OF_APART}")
        elif self.limit == "read" and self.of_limit < LEAST_OF_READ:
            missed.append(f"limit < {LEAST_OF_READ}")
        return missed

    def row(self) -> str:
        """Return the line of the table."""
        speed = self.outcome.nbytes / 1e9 / self.seconds
        frames = math.prod(self.outcome.shape[:-2]) / self.seconds
        ratios = (self.of_limit, self.of_both, self.ratio("dask"), self.ratio("LiberTEM"))
        cells = [WORKS[self.outcome.case.work], f"{speed:.2f}", f"{frames:,.0f}", self.limit]
        cells += ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        cells += ["; ".join(self.misses()) or "reached"]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| {dtype} | GB/s | frames/s | limit | of the limit | of read + products | dask / udfdask "
    "| LiberTEM / udfdask | goals |\n" + "|---" * 9 + "|"
)


def product_speed(dtype: str, threads: int, repeats: int = 3) -> float:
    """Return the operations per second of large products, one in each thread at the same time."""
    pairs = [np.random.default_rng(n).random((2, SIZE, SIZE)).astype(dtype) for n in range(threads)]
    best = math.inf
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            start = time.perf_counter()
            list(pool.map(lambda pair: pair[0] @ pair[1], pairs))
            best = min(best, time.perf_counter() - start)
    return threads * 2 * SIZE**3 / best


def case_of(work: str, layout: str) -> Case:
    """Return the case of a kind of work on a data set."""
    apart = "four-apart" if work == "four" else None
    share = MANY.get(work, 1)
    return Case(name=work, title=WORKS[work], work=work, layout=layout, share=share, apart=apart)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparisons; return the exit status: 1 if one failed or results differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=0.4, help="size of a file (2**30 bytes)")
    parser.add_argument("--dtypes", help="names, separated by commas; all by default")
    parser.add_argument("--works", help="names, separated by commas; all by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=dask.system.CPU_COUNT)
    parser.add_argument("--no-libertem", action="store_true")
    parser.add_argument("--folder", type=Path, help="folder of the data; else a temporary one")
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    parser.add_argument("--save", type=Path, help="JSON file for the ratios")
    args = parser.parse_args(arguments)
    works, dtypes = chosen(args.works, WORKS, "work"), chosen(args.dtypes, DTYPES, "dtype")
    libertem = by_libertem.INSTALLED and not args.no_libertem
    flops = {dtype: product_speed(dtype, args.threads) for dtype in ("float32", "float64")}
    about = f"with {args.threads} threads, best of {args.repeats}, {versions(libertem)}"
    speeds = f"sgemm {flops['float32'] / 1e9:.0f}, dgemm {flops['float64'] / 1e9:.0f} GFlop/s"
    lines = [f"Measured {time.strftime('%Y-%m-%d')} {about}; {speeds}."]
    print(lines[0], flush=True)
    failed, ratios = False, []
    folder = nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    with folder as made, LiberTEM(args.threads) if libertem else nullcontext() as peer:
        how = {"folder": Path(made), "threads": args.threads, "repeats": args.repeats}
        how |= {"peer": peer, "executors": EXECUTORS, "patience": PATIENCE}
        for dtype in dtypes:
            lines.append("\n" + HEAD.format(dtype=dtype))
            print(lines[-1], flush=True)
            for work in works:
                outcome = run_case(case_of(work, DTYPES[dtype]), gigabytes=args.gigabytes, **how)
                failed |= outcome.failed
                wide = np.result_type(outcome.dtype, "float32").name
                verdict = Verdict(outcome, flops[wide])
                ratios.append([dtype, work, verdict.of_limit, verdict.ratio("LiberTEM")])
                lines.append(verdict.row())
                print(lines[-1], flush=True)
    if args.save:
        args.save.write_text(json.dumps({"about": versions(libertem), "ratios": ratios}))
    if args.write:
        before, rest = args.write.read_text().split(START)
        text = "\n".join(lines)
        args.write.write_text(f"{before}{START}\n{text}\n{STOP}{rest.split(STOP)[1]}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
