"""Kill a run at random moments and go on: equal results, nothing twice.

    python scripts/soak/resume.py --kills 50

A child process computes a result into a zarr store with `to_zarr(resume=True)`, on a cluster of two
processes, on threads and on a pool of processes in turn. At a random moment the child and all its
processes are killed (SIGKILL), and another child goes on. When a store is complete, it is compared
with that of an undisturbed run, byte by byte. Before each child starts, the stored records are
looked up: no chunk that is stored may be processed again. The last lines say how many kills there
were, how many chunks were processed and how many of them were lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import udfdask as ud
from udfdask.io import open_file
from udfdask.scheduling.records.data_names import DataNames
from udfdask.scheduling.records.folder import RecordFolder
from udfdask.scheduling.records.runs import find_runs, look_up, names_of

SCHEDULERS = ("cluster", "threads", "processes")
N_CHUNKS = 64
SECONDS_PER_CHUNK = 0.06


class Noted(ud.UDF):
    """Sums of every kind in a tree of merges; leaves a file for each processed chunk."""

    merge_assigns_nav = True

    def get_preferred_input_dtype(self) -> Any:
        """Use the native dtype."""
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self) -> Any:
        """Declare a buffer of each kind."""
        return {
            "frames": self.buffer("nav", dtype="int64"),
            "total": self.buffer("sig", dtype="float64"),
            "squares": self.buffer("single", dtype="float64"),
        }

    def process_partition(self, partition: Any) -> None:
        """Add up a chunk."""
        self.results.frames[:] = partition.sum(axis=(1, 2))
        self.results.total += np.sqrt(partition).sum(axis=0)
        self.results.squares += (partition.astype("float64") ** 0.3).sum()

    def postprocess(self) -> None:
        """Take some time, and leave the file."""
        time.sleep(SECONDS_PER_CHUNK)
        chunk = int(self.meta.coordinates[0, 0])
        Path(self.params.folder, f"{chunk}~{uuid.uuid4().hex}").touch()

    def merge(self, dest: Any, src: Any) -> None:
        """Add up partial results."""
        dest.frames[:] = src.frames
        dest.total += src.total
        dest.squares += src.squares


def make_result(folder: Path) -> Any:
    """Return the lazy result of the run, which is the same in every process."""
    array = open_file(folder / "scan.npy", chunks=(1, -1, -1, -1)).array
    return ud.run_udf(array, Noted(folder=str(folder / "processed")))


def child(folder: Path, scheduler: str) -> None:
    """Compute the store."""
    store = folder / "out.zarr"
    if scheduler == "cluster":
        from distributed import Client

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            make_result(folder).to_zarr(store, resume=True)
    else:
        make_result(folder).to_zarr(store, resume=True, scheduler=scheduler, num_workers=2)


def stored_chunks(folder: Path) -> set[int]:
    """Return the chunks whose partial results are stored, merged or not."""
    records = RecordFolder(str(folder / "out.zarr.cache" / "records"))
    if not Path(records.path).is_dir():
        return set()
    (run,) = find_runs([make_result(folder)])
    data, (udf,) = names_of(run, DataNames())
    lookup = look_up(run.recipe, 0, data, udf, records.use)
    return {k for k, node in enumerate(lookup.chunks) if node.action != "compute"}


def processed(folder: Path) -> Counter[int]:
    """Return how often each chunk was processed since the last call."""
    files = list((folder / "processed").iterdir())
    for file in files:
        file.unlink()
    return Counter(int(file.name.partition("~")[0]) for file in files)


def run_child(folder: Path, scheduler: str, kill_after: int | None) -> bool:
    """Run a child, and kill it after some chunks; return whether it has finished."""
    command = [sys.executable, __file__, "--child", str(folder), "--scheduler", scheduler]
    program = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    chunks = folder / "processed"
    while program.poll() is None:
        if kill_after is not None and len(list(chunks.iterdir())) >= kill_after:
            time.sleep(random.uniform(0, 1.5))
            break
        time.sleep(0.01)
    finished = program.poll() is not None
    # the workers of a killed client as well; they are of the same group
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    errors = program.communicate()[1]
    if finished and program.returncode:
        sys.exit(errors.decode())
    time.sleep(0.1)
    return finished


def content(store: Path) -> dict[str, bytes]:
    """Return all files of a store."""
    files = (path for path in sorted(store.rglob("*")) if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


def soak(folder: Path, kills: int) -> dict[str, int]:
    """Kill and resume; return what has been counted."""
    data = np.random.default_rng(0).integers(0, 4000, (N_CHUNKS, 8, 32, 32), dtype="uint16")
    np.save(folder / "scan.npy", data)
    (folder / "processed").mkdir()
    store, cache = folder / "out.zarr", folder / "out.zarr.cache"
    make_result(folder).to_zarr(store, resume=True, scheduler="threads")
    expected = content(store)
    processed(folder)
    counted = {"kills": 0, "stores": 0, "chunks": 0, "lost": 0}
    while counted["kills"] < kills:
        scheduler = SCHEDULERS[counted["stores"] % len(SCHEDULERS)]
        shutil.rmtree(store)
        every: Counter[int] = Counter()
        finished = False
        while not finished:
            stored = stored_chunks(folder)
            left = N_CHUNKS - len(stored)
            kill = random.randrange(left) if left and counted["kills"] < kills else None
            finished = run_child(folder, scheduler, kill)
            counted["kills"] += not finished
            new = processed(folder)
            again = stored & new.keys()
            if again:
                sys.exit(f"chunks {sorted(again)} were stored, but processed again")
            if not finished and store.exists() and content(store) != expected:
                sys.exit("after a kill, the store was neither absent nor complete")
            every += new
            finished = finished or store.exists()
        if content(store) != expected:
            sys.exit("the store differs from that of an undisturbed run")
        if cache.exists() and not stored:
            sys.exit("the partial results were left")
        shutil.rmtree(cache, ignore_errors=True)
        counted["stores"] += 1
        counted["chunks"] += N_CHUNKS
        counted["lost"] += every.total() - N_CHUNKS
        print(f"{scheduler}: store {counted['stores']} is equal, {counted}", flush=True)
    return counted


def main() -> None:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path)
    parser.add_argument("--scheduler", choices=SCHEDULERS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.scheduler)
        return
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(soak(Path(folder), options.kills)))


if __name__ == "__main__":
    main()
