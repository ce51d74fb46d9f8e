"""Products of a tile with dense masks on one core: udfdask's kernel and BLAS, against sgemm.

Run it on a quiet machine: ``python asv_bench/dense_masks.py``. It prints the speed of each product
as a share of the speed of a product of two matrices of 2048 x 2048 numbers in the same precision.
"BLAS" first converts the tile if necessary, into memory that it keeps. The contestants take turns,
and each time is the shortest of several rounds.

udfdask uses the kernel for any number of masks. By default, tiles are as large as the batches of a
run. ``--megabytes 128`` compares whole chunks, for which BLAS is best: for 500 masks it then takes
0.8 to 0.9 of the time. It is not used, because it needs a converted copy of the chunk, and adds up
all products in single precision: for 256 x 256 pixels, its rounding errors were 4 times as large.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from udfdask.kernels.cpu.dense_products import add_dense_products, pack
from udfdask.masks.dense_product import BATCH_BYTES, FEWEST

DTYPES = {
    "uint8": "f4",
    "uint16": "f4",
    ">u2": "f4",
    "float32": "f4",
    "int32": "f8",
    "float64": "f8",
}
"""Dtypes of the data, with the precision of the products."""

GOAL = 0.8
"""Share of the speed of a large product that is to be reached from four masks on."""


def cpu_seconds(function: Callable[[], object]) -> float:
    """Return the CPU time of the second of two calls: the first one fills the caches."""
    function()
    start = time.thread_time()
    function()
    return time.thread_time() - start


def shortest(contestants: list[Callable[[], object]], seconds: float) -> list[float]:
    """Return the shortest time of each contestant; they take turns for a while."""
    times: list[list[float]] = [[] for _ in contestants]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for own, function in zip(times, contestants, strict=True):
            own.append(cpu_seconds(function))
    return [min(own) for own in times]


def shares(
    dtype: str, side: int, count: int, seconds: float, tile_bytes: int
) -> tuple[float, float]:
    """Return the speeds of kernel and BLAS as shares of the speed of a large product."""
    rng = np.random.default_rng(0)
    precision, pixels = DTYPES[dtype], side * side
    batch = max(FEWEST, BATCH_BYTES // (pixels * np.dtype(dtype).itemsize))
    frames = max(FEWEST, tile_bytes // (pixels * np.dtype(dtype).itemsize))
    tile = rng.integers(0, 200, (frames, pixels)).astype(dtype)
    masks = rng.random((count, pixels)).astype(precision)
    columns, packed = np.ascontiguousarray(masks.T), pack(masks)
    out = np.zeros((frames, count), precision)
    is_converted = tile.dtype == precision
    converted = tile if is_converted else np.empty((frames, pixels), precision)
    large = rng.random((2048, 2048)).astype(precision)

    def by_kernel() -> None:
        for first in range(0, frames, batch):
            rows = slice(first, first + batch)
            add_dense_products(tile[rows], packed, out[rows])

    def by_blas() -> None:
        if not is_converted:
            np.copyto(converted, tile)
        np.matmul(converted, columns, out=out)

    times = shortest([lambda: large @ large, by_kernel, by_blas], seconds)
    speed, *others = (
        work / t for work, t in zip((2048**3, *[tile.size * count] * 2), times, strict=True)
    )
    return others[0] / speed, others[1] / speed


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each cell")
    parser.add_argument(
        "--megabytes", type=int, default=BATCH_BYTES >> 20, help="size of a tile (2**20 bytes)"
    )
    parser.add_argument("--masks", type=int, nargs="+", default=[1, 4, 16, 64, 500])
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=list(DTYPES))
    args = parser.parse_args(arguments)
    print("| tile | masks | kernel | BLAS | faster | goal |", "|---" * 6 + "|", sep="\n")
    with threadpool_limits(1, "blas"):
        for dtype in args.dtypes:
            for side in (128, 256):
                for count in args.masks:
                    own, blas = shares(dtype, side, count, args.seconds, args.megabytes << 20)
                    faster = "kernel" if own >= blas else "BLAS"
                    goal = "" if count < 4 else "reached" if own >= GOAL else "**missed**"
                    print(
                        f"| {dtype}, {side} x {side} | {count} | {own:.2f} | {blas:.2f} | "
                        f"{faster} | {goal} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
