"""Compare built-in UDFs on a CUDA device with the limits of the device and its link.

    python asv_bench/gpu.py [--gigabytes 4] [--repeats 5]

prints versions, the device and a table. Runs over chunks on the device are compared with a copy on
the device, or with CuPy's matrix product of the same size; runs over NumPy chunks with a transfer
from pinned memory. All are measured in one run, in turns, and results are compared with those of
the CPU. The exit status is 1 if results differ, and 2 without a device.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.backends import device
from udfdask.backends.table import to_host
from udfdask.udfs import ApplyMasksUDF, CoMUDF, StdDevUDF, SumSigUDF, SumUDF

HEAD = "| chunks | UDF | time | rate | at most | of that | asked | results |"
SIG = (256, 256)
CHUNK_FRAMES = 2048
MOVED = 2**30
"""Bytes that are copied on the device, and to the device, to measure the rates."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: a UDF, and the limit that it is compared with."""

    chunks: str
    title: str
    make: Callable[[], Any]
    """Makes the UDF."""
    dtype: str
    """Dtype of the data."""
    most: Callable[[Any, int], Callable[[], float]]
    """Takes CuPy and the number of masks; returns a function that measures the highest rate."""
    masks: int = 0
    """Number of masks: with masks, rates are in 10^12 operations/s, otherwise in 10^9 bytes/s."""
    asked: float | None = None
    """The required fraction of that rate."""


def stack(number: int) -> np.ndarray:
    """Return dense masks, shape (number, *SIG)."""
    return np.random.default_rng(2).random((number, *SIG), dtype=np.float32)


def copy_rate(cupy: Any, masks: int) -> Callable[[], float]:
    """Return a function that measures a copy on the device, in bytes/s."""
    source = cupy.ones(MOVED, dtype=cupy.uint8)
    target = cupy.empty_like(source)

    def measure() -> float:
        seconds = on_device(cupy, lambda: cupy.copyto(target, source))
        # a copy reads and writes each byte; a UDF that only reads can use the rate of both
        return 2 * source.nbytes / seconds

    return measure


def link_rate(cupy: Any, masks: int) -> Callable[[], float]:
    """Return a function that measures a transfer from pinned memory, in bytes/s."""
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(MOVED), np.uint8, MOVED)
    target = cupy.empty(MOVED, dtype=cupy.uint8)

    def measure() -> float:
        return MOVED / on_device(cupy, lambda: target.set(pinned))

    return measure


def product_rate(cupy: Any, masks: int) -> Callable[[], float]:
    """Return a function that measures a matrix product of that shape, in operations/s."""
    frames = cupy.ones((CHUNK_FRAMES, math.prod(SIG)), dtype=cupy.float32)
    matrix = cupy.ones((math.prod(SIG), masks), dtype=cupy.float32)
    operations = 2 * frames.size * masks

    def measure() -> float:
        return operations / on_device(cupy, lambda: frames @ matrix)

    return measure


def on_device(cupy: Any, function: Callable[[], Any]) -> float:
    """Return the time of some work on the device in seconds, until the device is finished."""
    function()
    cupy.cuda.runtime.deviceSynchronize()
    start = time.perf_counter()
    for _ in range(8):
        function()
    cupy.cuda.runtime.deviceSynchronize()
    return (time.perf_counter() - start) / 8


def masks_udf(number: int) -> ApplyMasksUDF:
    """Return the UDF that multiplies with a number of dense masks."""
    return ApplyMasksUDF(partial(stack, number), mask_count=number, mask_dtype="float32")


ROWS = [
    *(
        Row(
            chunks="on the device",
            title=name,
            make=make,
            dtype="float32",
            most=copy_rate,
            asked=0.7,
        )
        for name, make in {
            "sum": SumUDF,
            "sum of each frame": SumSigUDF,
            "center of mass": CoMUDF,
            "deviation": StdDevUDF,
        }.items()
    ),
    *(
        Row(
            chunks="on the device",
            title=f"{number} masks",
            make=partial(masks_udf, number),
            dtype="float32",
            most=product_rate,
            masks=number,
            asked=0.5,
        )
        for number in (16, 1000)
    ),
    *(
        Row(chunks="NumPy", title=name, make=make, dtype="uint16", most=link_rate)
        for name, make in {"sum": SumUDF, "16 masks": partial(masks_udf, 16)}.items()
    ),
]


def make_chunks(row: Row, cupy: Any, gigabytes: float) -> da.Array:
    """Return data with chunks on the device or the host; equal for all rows with the same dtype."""
    itemsize = np.dtype(row.dtype).itemsize
    frames = max(2 * CHUNK_FRAMES, int(gigabytes * 1e9 / math.prod(SIG) / itemsize))
    rng = np.random.default_rng(1)
    one = rng.integers(0, 100, (CHUNK_FRAMES, *SIG), dtype=np.uint16).astype(row.dtype)
    block = cupy.asarray(one) if row.chunks == "on the device" else one
    blocks = [da.from_array(block + block.dtype.type(k % 3), chunks=-1) for k in range(2)]
    return da.concatenate((blocks * (frames // CHUNK_FRAMES))[: frames // CHUNK_FRAMES])


def measure(row: Row, cupy: Any, gigabytes: float, repeats: int) -> Iterator[tuple[float, float]]:
    """Yield the time of a run in seconds and the highest rate, in turns."""
    array = make_chunks(row, cupy, gigabytes)
    best = row.most(cupy, row.masks)

    def run() -> float:
        start = time.perf_counter()
        backends = None if row.chunks == "on the device" else "cupy"
        ud.run_udf(array, row.make(), backends=backends).compute(scheduler="threads")
        cupy.cuda.runtime.deviceSynchronize()
        return time.perf_counter() - start

    run()
    for _ in range(repeats):
        yield run(), best()


def agrees(row: Row, cupy: Any) -> bool:
    """Return whether a short run has the same results as a run on the CPU."""
    array = make_chunks(row, cupy, 0)[: CHUNK_FRAMES // 8]
    backends = None if row.chunks == "on the device" else "cupy"
    found = ud.run_udf(array, row.make(), backends=backends).compute()
    host = array.map_blocks(to_host, meta=np.empty((0, *SIG), row.dtype))
    wanted = ud.run_udf(host, row.make(), backends="numpy").compute()
    return all(
        np.allclose(to_host(found[name]), wanted[name], rtol=1e-4, equal_nan=True)
        for name in wanted.keys()  # noqa: SIM118  # a Result is not a mapping
    )


def line(row: Row, cupy: Any, gigabytes: float, repeats: int) -> tuple[str, bool]:
    """Return a line of the table, and whether the results agree."""
    runs = list(measure(row, cupy, gigabytes, repeats))
    seconds = min(s for s, _ in runs)
    most = max(rate for _, rate in runs)
    array = make_chunks(row, cupy, gigabytes)
    work = 2 * array.size * row.masks if row.most is product_rate else array.nbytes
    unit, scale = ("TFLOP/s", 1e12) if row.most is product_rate else ("GB/s", 1e9)
    right = agrees(row, cupy)
    cells = [row.chunks, f"{row.title}, {row.dtype}", f"{1e3 * seconds:.1f} ms"]
    cells += [f"{work / seconds / scale:.1f} {unit}", f"{most / scale:.1f} {unit}"]
    cells += [f"{work / seconds / most:.2f}", "" if row.asked is None else f"{row.asked}"]
    cells.append("agree" if right else "DIFFERENT")
    return f"| {' | '.join(cells)} |", right


def about(cupy: Any) -> str:
    """Return the versions and the name of the device as text."""
    properties = cupy.cuda.runtime.getDeviceProperties(device.device_number())
    name = properties["name"]
    packages = ", ".join(
        f"{package} {importlib.metadata.version(package)}"
        for package in ("udfdask", "dask", "numpy", "numba")
    )
    return (
        f"{dt.date.today()}, {name.decode() if isinstance(name, bytes) else name}, "
        f"{properties['totalGlobalMem'] / 2**30:.0f} GiB; cupy {cupy.__version__}, CUDA driver "
        f"{cupy.cuda.runtime.driverGetVersion()}, runtime {cupy.cuda.runtime.runtimeGetVersion()}, "
        f"{packages}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=4, help="size of the data")
    parser.add_argument("--repeats", type=int, default=5, help="rounds; the best counts")
    parser.add_argument("--about", action="store_true", help="only print versions and the device")
    options = parser.parse_args(arguments)
    try:
        cupy = device.cupy()
    except ud.UDFError as error:
        print(error, file=sys.stderr)
        return 2
    if options.about:
        print(about(cupy))
        return 0
    print(about(cupy), "", HEAD, "|---" * (HEAD.count("|") - 1) + "|", sep="\n", flush=True)
    right = True
    for row in ROWS:
        text, agree = line(row, cupy, options.gigabytes, options.repeats)
        right &= agree
        print(text, flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
