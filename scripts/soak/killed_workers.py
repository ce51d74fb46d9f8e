"""Kill workers during a run: the results must equal those of an undisturbed run, bit for bit.

    python scripts/soak/killed_workers.py [--repeats 20] [--chunks 5000] [--kills 10]

Three worker processes compute `sum + com + masks` in one pass. During each run, ten workers get
SIGKILL, each after a random share of the chunks; their nannies start new ones. The first lines say
how long the run takes without kills, then there is one line for each run with kills.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumUDF

WORKERS = 3
FRAME = (32, 32)
FRAMES_PER_CHUNK = 4


def fill(block_id: tuple[int, ...]) -> Any:
    """Return a chunk of random floats, whose sum depends on the order of the additions."""
    shape = (1, FRAMES_PER_CHUNK, *FRAME)
    return np.random.default_rng(block_id).random(shape, dtype="float32")


def make_results(chunks: int) -> list[Any]:
    """Return the lazy results of a new array with this number of chunks, at least."""
    rows = -(-chunks // 50)
    array = da.map_blocks(
        fill,
        chunks=((1,) * rows, (FRAMES_PER_CHUNK,) * 50, *((n,) for n in FRAME)),
        dtype="float32",
        meta=np.empty((0,) * 4, "float32"),
    )
    weights = np.random.default_rng(1).random((3, *FRAME), dtype="float32")
    masks = [lambda k=k: weights[k] for k in range(len(weights))]
    return list(ud.run_udf(array, [SumUDF(), CoMUDF(), ApplyMasksUDF(mask_factories=masks)]))


def content(results: Any) -> dict[str, bytes]:
    """Return the bytes of all results."""
    return {
        f"{number} {name}": np.ascontiguousarray(result[name]).tobytes()
        for number, result in enumerate(results)
        for name in result
    }


class Killer:
    """Kills workers while a run goes on; an object for `progress=`."""

    def __init__(self, cluster: Any, kills: int) -> None:
        self._cluster = cluster
        self._shares = sorted(random.uniform(0, 0.98) for _ in range(kills))
        self._dead: set[int] = set()

    @property
    def killed(self) -> int:
        """The number of workers killed so far."""
        return len(self._dead)

    def start(self, state: Any) -> None:
        """Kill workers whose time has come."""
        self.update(state)

    def update(self, state: Any) -> None:
        """Kill a worker for each share of the chunks that has been reached."""
        while self._shares and state.num_part_complete >= self._shares[0] * state.num_part_total:
            self._shares.pop(0)
            self._kill_one()

    def end(self, state: Any) -> None:
        """Do nothing: the run has ended."""

    def _kill_one(self) -> None:
        """Kill a worker that runs, after a short random time."""
        time.sleep(random.uniform(0, 0.3))
        for _ in range(1200):
            # a nanny does not replace a worker that ends while it starts
            processes = [nanny.process for nanny in self._cluster.workers.values()]
            pids = [p.pid for p in processes if p is not None and p.status.name == "running"]
            if alive := [pid for pid in pids if pid and pid not in self._dead]:
                pid = random.choice(alive)
                self._dead.add(pid)
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.1)
        raise RuntimeError("no worker was started again for two minutes")


@contextmanager
def workers(timeout: float) -> Iterator[Any]:
    """Yield a new cluster. After kills it may lack a worker that its nanny did not replace."""
    from distributed import Client, LocalCluster

    how = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=WORKERS, **how) as cluster, Client(cluster) as client:
        client.wait_for_workers(WORKERS, timeout=timeout)
        ud.compute(*make_results(50))  # imports and compiles
        yield cluster


def soak(repeats: int, chunks: int, kills: int, timeout: float) -> None:
    """Compare runs with kills and a run without."""
    settings = {
        # otherwise dask gives up on a task that was on four of them
        "distributed.scheduler.allowed-failures": kills,
        # otherwise a LocalCluster removes a worker whose restart takes 15 s, on a loaded machine
        "distributed.deploy.lost-worker-timeout": "600s",
    }
    with dask.config.set(settings):
        with workers(timeout):
            start = time.perf_counter()
            expected = content(ud.compute(*make_results(chunks)))
            print(f"undisturbed: {time.perf_counter() - start:.1f} s", flush=True)
        for repeat in range(repeats):
            with workers(timeout) as cluster:
                killer = Killer(cluster, kills)
                start = time.perf_counter()
                found = ud.compute(*make_results(chunks), progress=killer)
                seconds = time.perf_counter() - start
            if killer.killed != kills:
                raise SystemExit(f"{killer.killed} of {kills} workers were killed")
            differ = [name for name, data in content(found).items() if data != expected[name]]
            if differ:
                raise SystemExit(f"run {repeat + 1}: {', '.join(differ)} differ")
            print(f"run {repeat + 1}: {kills} workers killed, equal, {seconds:.1f} s", flush=True)
    print(f"{repeats} runs with {kills} killed workers each: all equal", flush=True)


def main() -> None:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--timeout", type=float, default=600, help="seconds for the start of the workers"
    )
    options = parser.parse_args()
    random.seed(options.seed)
    soak(options.repeats, options.chunks, options.kills, options.timeout)


if __name__ == "__main__":
    main()
