"""What a chunk costs on a cluster of two processes: dask's own reductions and udfdask, tiny chunks.

    python scripts/soak/many_chunks.py [--chunks 1000,10000,100000] [--contestants "dask; SumUDF"]
                                       [--save found.jsonl]

Client, scheduler and workers are processes of their own, new for each line of the table. A line
shows the time to build the graph and to optimize it, the bytes that the client sends, the time in
which the scheduler makes tasks of them, the CPU time of the scheduler and of the workers, the wall
time, and by how much the memory of each process has grown at its peak. The table at the end shows
the same for each chunk (the slope between the smallest and the largest number of chunks), with
the ratio to dask's own reductions: a sum over all frames beside `SumUDF`, sums of the frames beside
`CoMUDF`, and both with the maximum of each frame beside three UDFs in one pass. `--save` adds the
lines to a file and makes the last table of all lines in it, so that the contestants can run one at
a time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster_processes import PATIENCE, ClusterProcesses, Usage

WORKERS = 2
FRAME = (16, 16)

CONTESTANTS = {
    "dask": None,
    "SumUDF": "dask",
    "SumUDF, merge_small": "dask",
    "dask, frames": None,
    "CoMUDF": "dask, frames",
    "dask, three": None,
    "three UDFs": "dask, three",
}
"""Who computes, and the contestant without udfdask that it is compared with."""

COLUMNS = {
    "build": "build, us",
    "optimize": "optimize, us",
    "sent": "sent, bytes",
    "tasks": "tasks",
    "make tasks": "make tasks, us",
    "scheduler cpu": "scheduler CPU, us",
    "workers cpu": "workers CPU, us",
    "wall": "wall, us",
    "client": "client, bytes",
    "scheduler": "scheduler, bytes",
    "worker": "worker, bytes",
}
"""What is measured, and its heading in the table of slopes."""

MIB = ("client", "scheduler", "worker")
COUNTS = ("sent", "tasks")


def lazy(contestant: str, n: int) -> Any:
    """Return the lazy result of a contestant over `n` chunks."""
    import dask.array as da
    import numpy as np

    import udfdask as ud
    from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumUDF

    x = da.ones((n, *FRAME), chunks=(1, *FRAME), dtype="uint16")
    if contestant == "dask":
        return x.sum(axis=0)
    if contestant == "dask, frames":
        return x.sum(axis=(1, 2))
    if contestant == "dask, three":
        return x.sum(axis=0), x.sum(axis=(1, 2)), x.max(axis=(1, 2))
    if contestant == "CoMUDF":
        return ud.run_udf(x, CoMUDF())
    if contestant == "three UDFs":
        masks = ApplyMasksUDF(mask_factories=[lambda: np.ones(FRAME, "float32")])
        return ud.run_udf(x, [SumUDF(), CoMUDF(), masks])
    joined = {"merge_small": "64 KiB"} if "merge_small" in contestant else {}
    return ud.run_udf(x, SumUDF(), **joined)


def compute(built: Any) -> tuple[Any, ...]:
    """Compute the result of a contestant."""
    import udfdask as ud

    return ud.compute(*built) if isinstance(built, tuple) else ud.compute(built)


def check(contestant: str, values: tuple[Any, ...], n: int) -> None:
    """Compare results with what they must be."""
    import numpy as np

    if contestant == "dask":
        assert (np.asarray(values[0]) == n).all()
    if contestant in ("dask, frames", "dask, three"):
        frames = values[0 if contestant == "dask, frames" else 1]
        assert (np.asarray(frames) == FRAME[0] * FRAME[1]).all()
    if "SumUDF" in contestant or contestant == "three UDFs":
        assert (values[0]["intensity"] == n).all()
    if contestant in ("CoMUDF", "three UDFs"):
        moments = values[1 if contestant == "three UDFs" else 0]["raw_com"]
        assert np.allclose(moments, moments[0])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a function takes, and what it returns."""
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def client(address: str, contestant: str, n: int) -> None:
    """Compute `n` chunks; print what it took as JSON."""
    from dask.base import collections_to_expr, unpack_collections
    from distributed import Client

    def update_graph_events(dask_scheduler: Any) -> list[Any]:
        """Return what the scheduler has noted on graphs."""
        events = [event for _, event in dask_scheduler.get_events("scheduler")]
        return [event for event in events if event.get("action") == "update-graph"]

    def n_tasks(dask_scheduler: Any) -> int:
        return len(dask_scheduler.tasks)

    with Client(address, timeout=PATIENCE) as connected:
        connected.wait_for_workers(WORKERS, timeout=PATIENCE)
        compute(lazy(contestant, 64))  # imports and compiles
        workers = connected.run(os.getpid).values()
        scheduler = connected.run_on_scheduler(os.getpid)
        gc.collect()
        used = {pid: Usage(pid) for pid in (os.getpid(), scheduler, *workers)}
        sent = connected.scheduler_comm.byte_count
        build, built = timed(lambda: lazy(contestant, n))
        wall, values = timed(lambda: compute(built))
        found: dict[str, float] = {"build": build, "wall": wall}
        found["sent"] = connected.scheduler_comm.byte_count - sent
        check(contestant, values, n)
        found["client"] = used[os.getpid()].so_far()["grown"]
        del values
        while connected.run_on_scheduler(n_tasks):
            time.sleep(0.05)
        found["scheduler cpu"] = used[scheduler].so_far()["cpu"]
        found["scheduler"] = used[scheduler].so_far()["grown"]
        found["workers cpu"] = sum(used[pid].so_far()["cpu"] for pid in workers)
        found["worker"] = max(used[pid].so_far()["grown"] for pid in workers)
        found["worker peak"] = max(used[pid].so_far()["peak"] for pid in workers)
        metrics = connected.run_on_scheduler(update_graph_events)[-1]["metrics"]
        found["make tasks"] = metrics["duration_seconds"]
        found["tasks"] = metrics["tasks"]
        collections = unpack_collections(built)[0]
        found["optimize"], _ = timed(lambda: collections_to_expr(collections).optimize())
        print(json.dumps(found))


def run(contestant: str, n: int, timeout: float) -> dict[str, float]:
    """Start a cluster and a client; return what they took."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ClusterProcesses(Path(folder), WORKERS) as cluster,
    ):
        script = str(Path(__file__).resolve())
        printed = cluster.run_client(
            [script, "--client", cluster.address, contestant, str(n)], timeout
        )
    last = [line for line in printed.splitlines() if line.startswith("{")][-1]
    found: dict[str, float] = json.loads(last)
    return found


def shown(column: str, value: float) -> str:
    """Return a number with its unit."""
    if column == "sent":
        return f"{value / 1e3:.0f} kB"
    if column == "tasks":
        return f"{value:.0f}"
    return f"{value:.0f} MiB" if column in MIB else f"{value:.2f} s"


def slopes(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return what one more chunk takes, for each contestant with several numbers of chunks."""
    found = {}
    for contestant in dict.fromkeys(line["contestant"] for line in lines):
        own = sorted((x for x in lines if x["contestant"] == contestant), key=lambda x: x["n"])
        first, last = own[0], own[-1]
        if last["n"] > first["n"]:
            found[contestant] = {
                column: (last[column] - first[column]) / (last["n"] - first["n"])
                for column in COLUMNS
            }
    return found


def show_slopes(lines: list[dict[str, Any]]) -> None:
    """Print what a chunk costs, and the ratios to dask's own sum."""
    found = slopes(lines)
    if not found:
        return
    print("\n| each chunk | " + " | ".join(found) + " |\n" + "|---" * (len(found) + 1) + "|")
    for column, heading in COLUMNS.items():
        factor = 1 if column in COUNTS else 1 << 20 if column in MIB else 1e6
        cells = []
        for name, slope in found.items():
            cell = f"{slope[column] * factor:.{2 if column == 'tasks' else 0}f}"
            partner = found.get(CONTESTANTS[name] or "")
            if partner is not None and partner[column] > 0:
                cell += f" ({slope[column] / partner[column]:.2f})"
            cells.append(cell)
        print(f"| {heading} | " + " | ".join(cells) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", default="1000,10000,100000")
    parser.add_argument("--contestants", default="; ".join(CONTESTANTS), help="separated by ';'")
    parser.add_argument("--save", type=Path, help="file to which lines are added")
    parser.add_argument("--timeout", type=float, default=7200, help="seconds for each line")
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        address, contestant, n = args.client
        client(address, contestant, int(n))
        return
    chosen = [name.strip() for name in args.contestants.split(";")]
    if unknown := set(chosen) - set(CONTESTANTS):
        sys.exit(f"unknown: {', '.join(unknown)}; there are {'; '.join(CONTESTANTS)}")
    lines: list[dict[str, Any]] = []
    if args.save is not None and args.save.exists():
        lines = [json.loads(line) for line in args.save.read_text().splitlines()]
    print("| chunks | by | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 2) + "|", flush=True)
    for n in filter(None, args.chunks.split(",")):
        for contestant in chosen:
            line = {"n": int(n), "contestant": contestant, **run(contestant, int(n), args.timeout)}
            lines.append(line)
            if args.save is not None:
                with args.save.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            cells = [shown(column, line[column]) for column in COLUMNS]
            print(f"| {int(n):,} | {contestant} | " + " | ".join(cells) + " |", flush=True)
    show_slopes(lines)


if __name__ == "__main__":
    main()
