"""The memory that a plan predicts, beside the peak that is measured, for many shapes of runs.

    python scripts/soak/predicted_memory.py [--only NAME,NAME] [--threads 2] [--cluster]

Each case makes its data block by block, runs twice on a small part so that everything is imported
and compiled, and then runs while the peak of the memory of its process is read. The
table has the peak above the memory before the run, and the prediction. The program ends with 1 if
a run needs more than predicted, or if less than half of the prediction was needed with one thread.
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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

MIB = 1 << 20
LEAST = 0.5
"""Least share of the prediction that a run must need: the prediction is at most twice too high."""

SETTINGS = {
    # every array of more than 64 KiB is given back to the system as soon as it is released
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}
PROGRAMS = 2
"""Programs that measure at the same time, each with its own memory."""


@dataclass(frozen=True)
class Case:
    """One shape of a run."""

    array: Any
    """The data, lazy."""
    udfs: list[Any]
    """UDFs that run in one pass."""
    options: dict[str, Any]
    """Options of `run_udf`."""
    keep: Any = None
    """What must exist as long as the data."""


CASES: dict[str, Callable[[float], Case]] = {}
"""Functions that make a case, with data of full size (1) or of a smaller one.

The table has their docstrings.
"""


def case(make: Callable[[float], Case]) -> Callable[[float], Case]:
    """Add a case under the name of a function."""
    CASES[make.__name__] = make
    return make


class Meeting:
    """Lets the threads of a run wait for each other: each holds a block at the same time."""

    def __init__(self, threads: int = 1) -> None:
        self.barrier = threading.Barrier(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        return Meeting, ()  # the tasks of a worker do not wait

    def wait(self) -> None:
        """Wait until all threads are here, but not long: one may have nothing to load any more."""
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
    """SumUDF."""
    from udfdask.udfs import SumUDF

    return Case(data(size), [SumUDF()], {})


@case
def sum_of_each_frame(size: float) -> Case:
    """SumSigUDF."""
    from udfdask.udfs import SumSigUDF

    return Case(data(size), [SumSigUDF()], {})


@case
def deviation(size: float) -> Case:
    """StdDevUDF."""
    from udfdask.udfs import StdDevUDF

    return Case(data(size), [StdDevUDF()], {})


@case
def center_of_mass(size: float) -> Case:
    """CoMUDF."""
    from udfdask.udfs import CoMUDF

    return Case(data(size), [CoMUDF.with_params(cy=128, cx=128)], {})


@case
def masks(size: float) -> Case:
    """ApplyMasksUDF, 8 masks."""
    from udfdask.udfs import ApplyMasksUDF

    stack = np.ones((8, 256, 256), "float32")
    return Case(data(size), [ApplyMasksUDF(mask_factories=lambda: stack)], {})


@case
def list_of_udfs(size: float) -> Case:
    """SumUDF, StdDevUDF and CoMUDF in one pass."""
    from udfdask.udfs import CoMUDF, StdDevUDF, SumUDF

    udfs = [SumUDF(), StdDevUDF(), CoMUDF.with_params(cy=128, cx=128)]
    return Case(data(size), udfs, {})


@case
def partitions(size: float) -> Case:
    """process_partition in float32."""

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float32")}

    def process(self, partition):
        self.results.v[:] = partition[:, 0, 0]

    udf = own_udf("ByPartition", get_result_buffers=buffers, process_partition=process)
    return Case(data(size), [udf], {})


@case
def region(size: float) -> Case:
    """SumUDF and StdDevUDF, every second frame."""
    from udfdask.udfs import StdDevUDF, SumUDF

    x = data(size)
    roi = np.zeros(x.shape[:2], bool)
    roi[:, ::2] = True
    return Case(x, [SumUDF(), StdDevUDF()], {"roi": roi})


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
    """Sig buffers of 16 MiB, merged in a tree of 8."""
    x = data(size, n=64)
    return Case(x, [large_sums("tree")], {})


@case
def merge_tree_of_4(size: float) -> Case:
    """Sig buffers of 16 MiB, merged in a tree of 4."""
    x = data(size, n=64)
    return Case(x, [large_sums("tree")], {"split_every": 4})


@case
def merge_chain(size: float) -> Case:
    """Sig buffers of 16 MiB, merged in a chain."""
    x = data(size, n=16)
    return Case(x, [large_sums("chain")], {})


@case
def merge_all(size: float) -> Case:
    """merge_all with nav buffers of 40 MiB."""

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64", extra_shape=(2048,))}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    def join(self, ordered):
        return {"v": np.concatenate([b.v for b in ordered.values()])}

    udf = own_udf("Joined", get_result_buffers=buffers, process_frame=process, merge_all=join)
    return Case(data(size, n=20), [udf], {})


@case
def large_nav(size: float) -> Case:
    """Nav results of 160 MiB."""

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64", extra_shape=(8192,))}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    udf = own_udf("LargeNav", get_result_buffers=buffers, process_frame=process)
    return Case(data(size, n=20), [udf], {})


@case
def get_results(size: float) -> Case:
    """get_results on nav results of 80 MiB."""

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64", extra_shape=(4096,))}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    def results(self):
        return {"v": self.results.v * 2}

    udf = own_udf(
        "Finalized", get_result_buffers=buffers, process_frame=process, get_results=results
    )
    return Case(data(size, n=20), [udf], {})


@case
def signal_chunks(size: float) -> Case:
    """SumUDF, one task for each of 8 signal chunks."""
    from udfdask.udfs import SumUDF

    x = data(size, chunks=(32, 16), sig=((64,) * 8, 512), n=2)
    return Case(x, [SumUDF()], {})


@case
def assembled_frames(size: float) -> Case:
    """process_frame over 2 signal chunks."""

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float32")}

    def process(self, frame):
        self.results.v[:] = frame[0, 0]

    udf = own_udf("Frames", get_result_buffers=buffers, process_frame=process)
    x = data(size, sig=((128, 128), 256))
    return Case(x, [udf], {})


@case
def corrections(size: float) -> Case:
    """CoMUDF with dark and gain."""
    from udfdask.corrections import CorrectionSet
    from udfdask.udfs import CoMUDF

    planes = CorrectionSet(dark=np.ones((256, 256)), gain=np.full((256, 256), 2.0))
    return Case(data(size), [CoMUDF()], {"corrections": planes})


@case
def aux_data(size: float) -> Case:
    """Aux data of 20 MiB."""

    def buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float64")}

    def process(self, frame):
        self.results.v[:] = self.params.shift[0]

    x = data(size)
    values = np.ones((*x.shape[:2], 2048))
    cls = type(own_udf("WithAux", get_result_buffers=buffers, process_frame=process))
    udf = cls(shift=cls.aux_data(values, kind="nav", dtype="float64", extra_shape=(2048,)))
    return Case(x, [udf], {})


@case
def sums_in_float(size: float) -> Case:
    """SumUDF after astype, * and +."""
    from udfdask.udfs import SumUDF

    x = data(size).astype("float32") * 2 + 1
    return Case(x, [SumUDF()], {})


@case
def rechunked(size: float) -> Case:
    """SumUDF after a rechunk across the scan."""
    from udfdask.udfs import SumUDF

    x = data(size, n=8).rechunk((-1, 2, -1, -1))
    return Case(x, [SumUDF()], {})


@case
def sliced(size: float) -> Case:
    """SumUDF on a slice of each block."""
    from udfdask.udfs import SumUDF

    return Case(data(size)[:, 2:14], [SumUDF()], {})


@case
def joined_chunks(size: float) -> Case:
    """SumUDF, small chunks joined."""
    from udfdask.udfs import SumUDF

    x = data(size, chunks=(1, 16), n=80)
    return Case(x, [SumUDF()], {"merge_small": int(16 * MIB * size)})


@case
def hdf5_file(size: float) -> Case:
    """SumUDF from an HDF5 file, chunks of gzip."""
    import h5py

    from udfdask.io import open_file
    from udfdask.udfs import SumUDF

    folder = tempfile.TemporaryDirectory()
    rng = np.random.default_rng(1)
    block = rng.integers(0, 1 << 16, (max(1, int(8 * size)), 16, 256, 256), "uint16")
    path = Path(folder.name) / "scan.h5"
    with h5py.File(path, "w") as file:
        shape = (10 * len(block), *block.shape[1:])
        stored = file.create_dataset("d", shape, "uint16", chunks=block.shape, compression=1)
        for k in range(10):
            stored[k * len(block) : (k + 1) * len(block)] = block
    array = open_file(path, sig_dims=2, chunks=block.shape).array
    return Case(array, [SumUDF()], {}, folder)


@case
def zarr_store(size: float) -> Case:
    """SumUDF from a compressed zarr store."""
    import zarr

    from udfdask.udfs import SumUDF

    folder = tempfile.TemporaryDirectory()
    rng = np.random.default_rng(1)
    block = rng.integers(0, 256, (max(1, int(8 * size)), 16, 256, 256), "uint16")
    shape = (10 * len(block), *block.shape[1:])
    store = zarr.create_array(folder.name, shape=shape, chunks=block.shape, dtype="uint16")
    for k in range(10):
        store[k * len(block) : (k + 1) * len(block)] = block
    return Case(da.from_zarr(store), [SumUDF()], {}, folder)


@case
def sparse_chunks(size: float) -> Case:
    """SumUDF on sparse chunks (bound: dense data)."""
    import sparse

    from udfdask.udfs import SumUDF

    x = data(size)

    def thin(block):
        return sparse.COO(np.array([[0], [0], [0], [0]]), [1], shape=block.shape).astype(
            block.dtype
        )

    x = x.map_blocks(thin, dtype=x.dtype, meta=sparse.zeros((0,) * 4, dtype=x.dtype))
    return Case(x, [SumUDF()], {})


def peak_bytes(reset: bool = False) -> int:
    """Return the largest resident memory of this process since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def what_runs(name: str) -> str:
    """Return the text of a case for the table."""
    return (CASES[name].__doc__ or "").rstrip(".")


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
    predicted = results[0].explain().memory
    gc.collect()
    peak_bytes(reset=True)
    before = peak_bytes()
    done = ud.compute(*results, **scheduler)
    measured = peak_bytes() - before
    del done
    return {
        "case": name,
        "what": what_runs(name),
        "threads": threads,
        "predicted": predicted.total(threads),
        "parts": predicted.parts(threads),
        "measured": measured,
        "bound": name in BOUNDS,
        "cluster": False,
    }


ON_CLUSTER = ("sum_of_each_frame", "partitions", "merge_tree", "large_nav", "get_results")
"""The cases that are measured on workers too."""

WORKERS = 2

BOUNDS = ("sparse_chunks",)
"""The cases of which the prediction is only an upper bound."""

ONE_THREAD = ("hdf5_file", "zarr_store")
"""The cases in which nothing makes two threads reach their peak at the same time."""


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
        predicted = results[0].explain().memory
        while any(client.run(lambda dask_worker: len(dask_worker.data)).values()):
            time.sleep(0.05)
        before = client.run(before_on_worker)
        done = ud.compute(*results)
        after = client.run(peak_bytes)
        del done
    return {
        "case": name,
        "what": f"{what_runs(name)}; on {WORKERS} workers",
        "threads": threads,
        "predicted": predicted.total(threads),
        "parts": predicted.parts(threads),
        "measured": max(after[worker] - before[worker] for worker in after),
        "bound": False,
        "cluster": True,
    }


def in_program(names: Sequence[str], threads: int, cluster: bool) -> list[dict[str, Any]]:
    """Measure some cases in a program of its own, one after another."""
    done = subprocess.run(
        [
            sys.executable,
            __file__,
            "--measure",
            ",".join(names),
            "--threads",
            str(threads),
            *["--cluster"] * cluster,
        ],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise SystemExit(f"{', '.join(names)}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def is_right(found: dict[str, Any]) -> bool:
    """Return whether the prediction is not too low, and at most twice too high.

    That two threads need most at the same moment is likely, but depends on time.
    """
    share = found["measured"] / found["predicted"]
    return share <= 1 and (share >= LEAST or found["bound"] or found["threads"] > 1)


def line_of(found: dict[str, Any]) -> str:
    """Return a line of the table."""
    measured, predicted = (round(found[k] / MIB) for k in ("measured", "predicted"))
    share = found["predicted"] / found["measured"]
    return f"| {found['what']} | {found['threads']} | {measured} | {predicted} | {share:.2f} |"


def runs_of(arguments: argparse.Namespace) -> list[tuple[list[str], int, bool]]:
    """Return cases, threads and place of each program that the user asks for."""
    names = arguments.only.split(",") if arguments.only else list(CASES)
    runs = []
    if not arguments.cluster:
        for threads in [arguments.threads] if arguments.threads else [1, 2]:
            some = [name for name in names if threads == 1 or name not in ONE_THREAD]
            runs += [(some[k::PROGRAMS], threads, False) for k in range(PROGRAMS)]
    if arguments.cluster:
        runs += [([name], arguments.threads or 1, True) for name in names if name in ON_CLUSTER]
    return [run for run in runs if run[0]]


def main() -> None:
    """Measure the cases that the user asks for, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of cases")
    parser.add_argument("--threads", type=int, help="threads of a process; by default 1, then 2")
    parser.add_argument("--cluster", action="store_true", help="on worker processes")
    parser.add_argument("--json", action="store_true", help="print the numbers of each case")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        how = measure_on_cluster if arguments.cluster else measure
        for name in arguments.measure.split(","):
            print(json.dumps(how(name, arguments.threads)), flush=True)
        return
    wrong = []
    with ThreadPoolExecutor(PROGRAMS) as pool:
        for program in pool.map(lambda run: in_program(*run), runs_of(arguments)):
            for found in program:
                print(json.dumps(found) if arguments.json else line_of(found), flush=True)
                if not is_right(found):
                    wrong.append(found["case"])
    if wrong:
        raise SystemExit(
            f"more than predicted, or less than half: {', '.join(dict.fromkeys(wrong))}"
        )
    print("no run needs more than predicted, and with one thread all need at least half of it")


if __name__ == "__main__":
    main()
