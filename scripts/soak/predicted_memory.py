"""The memory that a plan predicts, beside the peak that is measured, for many shapes of runs.

    python scripts/soak/predicted_memory.py [--only NAME,NAME] [--write docs/memory.md]

Each case is a program of its own. It makes its data block by block, runs once on a small part so
that everything is imported and compiled, and then runs while the peak of its memory is read. The
table has the peak above the memory before the run, and the prediction. `--write` puts the table
between the marks in a page of the documentation. The program ends with 1 if a run needs more than
predicted, or if less than 80 % of the prediction was needed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

MIB = 1 << 20
LEAST = 0.8
"""Least share of the prediction that a run must need: the prediction is at most 25 % too high."""

SETTINGS = {
    # every array of more than 64 KiB is given back to the system as soon as it is released
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}
MARKS = ("<!-- measured: begin -->", "<!-- measured: end -->")


@dataclass(frozen=True)
class Case:
    """One shape of a run."""

    what: str
    """What is run, for the table."""
    array: Any
    """The data, lazy."""
    udfs: list[Any]
    """UDFs that run in one pass."""
    options: dict[str, Any]
    """Options of `run_udf`."""
    keep: Any = None
    """What must exist as long as the data."""


CASES: dict[str, Callable[[float], Case]] = {}
"""Functions that make a case, with data of full size (1) or of a smaller one."""


def case(make: Callable[[float], Case]) -> Callable[[float], Case]:
    """Add a case under the name of a function."""
    CASES[make.__name__] = make
    return make


class Meeting:
    """Lets the threads of a run wait for each other, so that each holds a block at the same time."""

    def __init__(self, threads: int = 1) -> None:
        self.barrier = threading.Barrier(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        return Meeting, ()  # the tasks of a worker do not wait

    def wait(self) -> None:
        """Wait until all threads are here; threads that merge in the meantime are not waited for."""
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait(0.3)
        if self.barrier.broken:
            self.barrier.reset()


MEETING = Meeting()


def generate(block_info: Any = None) -> Any:
    """Return a block of ones, whose memory is really used, as soon as all threads have one."""
    about = block_info[None]
    block = np.full(about["chunk-shape"], 1, about["dtype"])
    MEETING.wait()
    return block


def data(
    size: float,
    chunks: tuple[int, ...] = (8, 16),
    n: int = 10,
    sig: tuple[int, ...] = (256, 256),
    dtype: str = "uint16",
) -> Any:
    """Return n blocks of (8, 16) frames, 16 MiB each by default, made while they are read."""
    rows = max(1, int(chunks[0] * size))
    return da.map_blocks(
        generate,
        chunks=((rows,) * n, (chunks[1],), *((s,) if isinstance(s, int) else s for s in sig)),
        dtype=np.dtype(dtype),
        meta=np.empty((0,) * (2 + len(sig)), dtype),
    )


def own_udf(name: str, **methods: Any) -> Any:
    """Return an instance of a new UDF class."""
    import udfdask as ud

    return type(name, (ud.UDF,), methods)()


@case
def sum_frames(size: float) -> Case:
    from udfdask.udfs import SumUDF

    return Case("SumUDF", data(size), [SumUDF()], {})


@case
def sum_of_each_frame(size: float) -> Case:
    from udfdask.udfs import SumSigUDF

    return Case("SumSigUDF", data(size), [SumSigUDF()], {})


@case
def deviation(size: float) -> Case:
    from udfdask.udfs import StdDevUDF

    return Case("StdDevUDF", data(size), [StdDevUDF()], {})


@case
def center_of_mass(size: float) -> Case:
    from udfdask.udfs import CoMUDF

    return Case("CoMUDF", data(size), [CoMUDF.with_params(cy=128, cx=128)], {})


@case
def masks(size: float) -> Case:
    from udfdask.udfs import ApplyMasksUDF

    stack = np.ones((8, 256, 256), "float32")
    return Case(
        "ApplyMasksUDF, 8 masks", data(size), [ApplyMasksUDF(mask_factories=lambda: stack)], {}
    )


@case
def list_of_udfs(size: float) -> Case:
    from udfdask.udfs import CoMUDF, StdDevUDF, SumUDF

    udfs = [SumUDF(), StdDevUDF(), CoMUDF.with_params(cy=128, cx=128)]
    return Case("SumUDF, StdDevUDF and CoMUDF in one pass", data(size), udfs, {})


@case
def partitions(size: float) -> Case:
    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float32")}

    def process(self, partition):
        self.results.v[:] = partition[:, 0, 0]

    udf = own_udf("ByPartition", get_result_buffers=buffers, process_partition=process)
    return Case("process_partition in float32", data(size), [udf], {})


@case
def region(size: float) -> Case:
    from udfdask.udfs import StdDevUDF, SumUDF

    x = data(size)
    roi = np.zeros(x.shape[:2], bool)
    roi[:, ::2] = True
    return Case(
        "SumUDF and StdDevUDF, every second frame", x, [SumUDF(), StdDevUDF()], {"roi": roi}
    )


def large_sums(mode: str) -> Any:
    """Return a UDF with 16 MiB of sig buffers."""

    def buffers(self):
        made = {"v": self.buffer(kind="sig", dtype="float64", extra_shape=(32,))}
        if mode == "chain":
            made["n"] = self.buffer(kind="nav", dtype="float32")
        return made

    def process(self, tile):
        self.results.v[:] += 1

    def merge(self, dest, src):
        dest.v[:] += src.v
        if mode == "chain":
            dest.n[:] = src.n

    return own_udf("LargeSums", get_result_buffers=buffers, process_tile=process, merge=merge)


@case
def merge_tree(size: float) -> Case:
    x = data(size, n=64)
    return Case("sig buffers of 16 MiB, merged in a tree of 8", x, [large_sums("tree")], {})


@case
def merge_tree_of_4(size: float) -> Case:
    x = data(size, n=64)
    return Case("the same in a tree of 4", x, [large_sums("tree")], {"split_every": 4})


@case
def merge_chain(size: float) -> Case:
    x = data(size, n=16)
    return Case("the same in a chain", x, [large_sums("chain")], {})


@case
def merge_all(size: float) -> Case:
    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64", extra_shape=(2048,))}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    def join(self, ordered):
        return {"v": np.concatenate([b.v for b in ordered.values()])}

    udf = own_udf("Joined", get_result_buffers=buffers, process_frame=process, merge_all=join)
    return Case("merge_all with nav buffers of 40 MiB", data(size, n=20), [udf], {})


@case
def large_nav(size: float) -> Case:
    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64", extra_shape=(8192,))}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    udf = own_udf("LargeNav", get_result_buffers=buffers, process_frame=process)
    return Case("nav results of 160 MiB", data(size, n=20), [udf], {})


@case
def get_results(size: float) -> Case:
    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64", extra_shape=(4096,))}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    def results(self):
        return {"v": self.results.v * 2}

    udf = own_udf(
        "Finalized", get_result_buffers=buffers, process_frame=process, get_results=results
    )
    return Case("get_results on nav results of 80 MiB", data(size, n=20), [udf], {})


@case
def signal_chunks(size: float) -> Case:
    from udfdask.udfs import SumUDF

    x = data(size, chunks=(32, 16), sig=((64,) * 8, 512), n=2)
    return Case("SumUDF, one task for each of 8 signal chunks", x, [SumUDF()], {})


@case
def assembled_frames(size: float) -> Case:
    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float32")}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    udf = own_udf("Frames", get_result_buffers=buffers, process_frame=process)
    x = data(size, sig=((128, 128), 256))
    return Case("process_frame over 2 signal chunks", x, [udf], {})


@case
def corrections(size: float) -> Case:
    from udfdask.corrections import CorrectionSet
    from udfdask.udfs import CoMUDF

    planes = CorrectionSet(dark=np.ones((256, 256)), gain=np.full((256, 256), 2.0))
    return Case("CoMUDF with dark and gain", data(size), [CoMUDF()], {"corrections": planes})


@case
def aux_data(size: float) -> Case:

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64")}

    def process(self, frame):
        self.results.v[:] = self.params.shift[0]

    x = data(size)
    values = np.ones((*x.shape[:2], 2048))
    cls = type(own_udf("WithAux", get_result_buffers=buffers, process_frame=process))
    udf = cls(shift=cls.aux_data(values, kind="nav", dtype="float64", extra_shape=(2048,)))
    return Case("aux data of 20 MiB", x, [udf], {})


@case
def sums_in_float(size: float) -> Case:
    from udfdask.udfs import SumUDF

    x = data(size).astype("float32") * 2 + 1
    return Case("SumUDF after astype, * and +", x, [SumUDF()], {})


@case
def rechunked(size: float) -> Case:
    from udfdask.udfs import SumUDF

    x = data(size, n=8).rechunk((-1, 2, -1, -1))
    return Case("SumUDF after a rechunk across the scan", x, [SumUDF()], {})


@case
def sliced(size: float) -> Case:
    from udfdask.udfs import SumUDF

    return Case("SumUDF on a slice of each block", data(size)[:, 2:14], [SumUDF()], {})


@case
def joined_chunks(size: float) -> Case:
    from udfdask.udfs import SumUDF

    x = data(size, chunks=(1, 16), n=80)
    return Case("SumUDF, small chunks joined", x, [SumUDF()], {"merge_small": int(16 * MIB * size)})


@case
def zarr_store(size: float) -> Case:
    import zarr

    from udfdask.udfs import SumUDF

    folder = tempfile.TemporaryDirectory()
    rng = np.random.default_rng(1)
    block = rng.integers(0, 256, (max(1, int(8 * size)), 16, 256, 256), "uint16")
    shape = (10 * len(block), *block.shape[1:])
    store = zarr.create_array(folder.name, shape=shape, chunks=block.shape, dtype="uint16")
    for k in range(10):
        store[k * len(block) : (k + 1) * len(block)] = block
    return Case("SumUDF from a compressed zarr store", da.from_zarr(store), [SumUDF()], {}, folder)


@case
def sparse_chunks(size: float) -> Case:
    import sparse

    from udfdask.udfs import SumUDF

    x = data(size)

    def thin(block):
        return sparse.COO(np.array([[0], [0], [0], [0]]), [1], shape=block.shape).astype(
            block.dtype
        )

    x = x.map_blocks(thin, dtype=x.dtype, meta=sparse.zeros((0,) * 4, dtype=x.dtype))
    return Case("SumUDF on sparse chunks (bound: dense data)", x, [SumUDF()], {})


def peak_bytes(reset: bool = False) -> int:
    """Return the largest resident memory of this process since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measure(name: str, threads: int) -> dict[str, Any]:
    """Run a case in this process; return the predicted and the measured bytes."""
    import udfdask as ud

    make = CASES[name]
    scheduler = {"scheduler": "threads", "num_workers": threads}
    MEETING.barrier = threading.Barrier(threads)
    small = make(1 / 8)
    for _ in range(2):
        ud.compute(*ud.run_udf(small.array, small.udfs, **small.options), **scheduler)
    del small
    full = make(1)
    results = ud.run_udf(full.array, full.udfs, **full.options)
    predicted = results[0].explain().memory.in_process(threads)
    gc.collect()
    peak_bytes(reset=True)
    before = peak_bytes()
    done = ud.compute(*results, **scheduler)
    measured = peak_bytes() - before
    del done
    return {
        "case": name,
        "what": full.what,
        "threads": threads,
        "predicted": predicted.total,
        "parts": predicted.parts(),
        "measured": measured,
        "bound": full.what.endswith("(bound: dense data)"),
    }


ON_CLUSTER = ("sum_of_each_frame", "partitions", "merge_tree", "large_nav", "get_results")
"""The cases that are measured on workers too."""

WORKERS = 2


def memory_now() -> int:
    """Return the resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def before_on_worker() -> int:
    """Release what can be released, and return the memory of this process."""
    gc.collect()
    return peak_bytes(reset=True) and memory_now()


def measure_on_cluster(name: str, threads: int) -> dict[str, Any]:
    """Run a case on two worker processes; return the bytes of the worker that needs most."""
    import distributed

    import udfdask as ud

    make = CASES[name]
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=threads, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        small = make(1 / 8)
        for _ in range(2):
            ud.compute(*ud.run_udf(small.array, small.udfs, **small.options))
        full = make(1)
        results = ud.run_udf(full.array, full.udfs, **full.options)
        predicted = results[0].explain().memory.in_worker(threads, WORKERS)
        while any(client.run(lambda dask_worker: len(dask_worker.data)).values()):
            time.sleep(0.05)
        before = client.run(before_on_worker)
        done = ud.compute(*results)
        after = client.run(peak_bytes)
        del done
    return {
        "case": name,
        "what": f"{full.what}; on {WORKERS} workers",
        "threads": threads,
        "predicted": predicted.total,
        "parts": predicted.parts(),
        "measured": max(after[worker] - before[worker] for worker in after),
        "bound": False,
    }


def in_program(name: str, threads: int, *, cluster: bool) -> dict[str, Any]:
    """Measure a case in a program of its own."""
    done = subprocess.run(
        [
            sys.executable,
            __file__,
            "--measure",
            name,
            "--threads",
            str(threads),
            *["--cluster"] * cluster,
        ],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_right(found: dict[str, Any]) -> bool:
    """Return whether the prediction is not too low, and at most 25 % too high."""
    share = found["measured"] / found["predicted"]
    return share <= 1 and (share >= LEAST or found["bound"])


def line_of(found: dict[str, Any]) -> str:
    """Return a line of the table."""
    measured, predicted = (round(found[k] / MIB) for k in ("measured", "predicted"))
    share = found["predicted"] / found["measured"]
    return f"| {found['what']} | {found['threads']} | {measured} | {predicted} | {share:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of cases")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cluster", action="store_true", help="on worker processes")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the numbers of each case")
    arguments = parser.parse_args()
    if arguments.measure:
        how = measure_on_cluster if arguments.cluster else measure
        print(json.dumps(how(arguments.measure, arguments.threads)))
        return
    names = arguments.only.split(",") if arguments.only else list(CASES)
    lines, wrong = [], []
    for name in names:
        for threads in [arguments.threads] if arguments.threads else (1, 2):
            found = in_program(name, threads, cluster=arguments.cluster)
            lines.append(line_of(found))
            print(json.dumps(found) if arguments.json else lines[-1], flush=True)
            if not is_right(found):
                wrong.append(name)
    if wrong:
        raise SystemExit(f"not within 25 %: {', '.join(dict.fromkeys(wrong))}")
    print("all within 25 %, and none needs more than predicted")


if __name__ == "__main__":
    main()
