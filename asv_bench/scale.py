"""Many small chunks on clusters of distributed and of Frisky, compared with dask's own sum.

    python asv_bench/scale.py [--chunks 10000,100000] [--schedulers frisky] [--limit 600]

The data are generated while they are read: chunks of 8 frames of 64x64 uint16, 64 KiB each. Client,
scheduler and two workers of one thread are processes of their own, started anew for each case. For
each of them the peak memory (resident set size) and the time of the processor. A case that reaches
the limit in seconds is ended. `--results FILE` keeps what was measured, one case a line, and goes
on from there; ``--write PAGE`` replaces the marked part of that page of the documentation.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.system import CPU_COUNT

import udfdask as ud
from comparison.options import chosen
from comparison.pages import replace_part
from memory import peak_bytes
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

FRAMES, SIG = 8, (64, 64)
"""A chunk has 64 KiB."""

DASK = "x.sum"
"""The case with which the others are compared: the sum over the frames by dask alone."""

CASES: dict[str, Callable[[da.Array], Any]] = {
    DASK: lambda x: x.sum(axis=(0, 1)),
    "sums": lambda x: ud.run_udf(x, SumUDF())["intensity"],
    "centers of mass": lambda x: ud.run_udf(x, CoMUDF()),
    "three UDFs": lambda x: ud.run_udf(x, [SumUDF(), SumSigUDF(), CoMUDF()]),
}

COMMANDS = {
    "distributed": (
        "distributed.cli.dask_scheduler --no-dashboard --host 127.0.0.1 --port {port}",
        "distributed.cli.dask_worker --no-nanny --nthreads 1 --no-dashboard tcp://127.0.0.1:{port}",
    ),
    "frisky": (
        "frisky.cli scheduler --no-dashboard --address 127.0.0.1:{port}",
        "frisky.cli worker --nthreads 1 127.0.0.1:{port}",
    ),
}
"""Modules that start a scheduler and a worker."""

ROLES = ("client", "scheduler", "workers")


def make(n_chunks: int) -> da.Array:
    """Return a lazy array of so many chunks, whose blocks fill their memory."""
    shape = (n_chunks, FRAMES, *SIG)
    return da.ones(shape, chunks=(1, *shape[1:]), dtype="uint16") + np.uint16(2)


def connected(scheduler: str, port: int) -> Any:
    """Return a client of a cluster when it has two workers."""
    if scheduler == "frisky":
        import frisky

        client = frisky.Client(f"127.0.0.1:{port}")
        while client._repr_stats()[0] < 2:
            time.sleep(0.1)
        return client
    from distributed import Client

    client = Client(f"tcp://127.0.0.1:{port}", set_as_default=False)
    client.wait_for_workers(2)
    return client


def run_as_client(scheduler: str, case: str, n_chunks: int, port: int) -> None:
    """Run a case when a line comes in; print a line before it, and its seconds after it."""
    client = connected(scheduler, port)
    ud.compute(CASES[case](make(16)), scheduler=client)  # imports and compiles
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    (result,) = ud.compute(CASES[case](make(n_chunks)), scheduler=client)
    seconds = time.perf_counter() - start
    if isinstance(result, np.ndarray):
        assert (result == 3 * FRAMES * n_chunks).all()
    print(seconds, flush=True)
    sys.stdin.readline()  # the memory is read meanwhile


@contextmanager
def started(scheduler: str) -> Iterator[tuple[int, dict[str, list[int]]]]:
    """Start a scheduler and two workers; yield the port, and the processes by their role."""
    with ExitStack() as stack:

        def start(command: str) -> int:
            words = [sys.executable, "-m", *command.format(port=port).split()]
            quiet = subprocess.DEVNULL
            process = stack.enter_context(subprocess.Popen(words, stdout=quiet, stderr=quiet))
            stack.callback(process.kill)
            return process.pid

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        first, other = COMMANDS[scheduler]
        roles = {"scheduler": [start(first)]}
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        roles["workers"] = [start(other), start(other)]
        yield port, roles


def seconds_of_processor(pids: list[int]) -> float:
    """Return the time that some processes have used."""
    every = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(fields[11]) + int(fields[12]) for fields in every) / os.sysconf("SC_CLK_TCK")


def measure(scheduler: str, case: str, n_chunks: int, limit: float) -> dict[str, Any]:
    """Return the wall time of a case, None if it was ended, and the numbers of each role."""
    words = [sys.executable, "-W", "ignore", __file__, "--client", scheduler, case, str(n_chunks)]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        started(scheduler) as (port, roles),
        subprocess.Popen([*words, str(port)], **pipe) as client,
    ):
        roles["client"] = [client.pid]
        if client.stdout.readline() != "ready\n":
            raise RuntimeError(f"the client of {case} on {scheduler} has not started")
        before = {role: seconds_of_processor(pids) for role, pids in roles.items()}
        client.stdin.write("\n")
        client.stdin.flush()
        ended, _, _ = select.select([client.stdout], [], [], limit)
        line = client.stdout.readline() if ended else ""
        found = {"scheduler": scheduler, "case": case, "chunks": n_chunks, "limit": limit}
        found["wall"] = float(line) if line else None
        for role, pids in roles.items():
            found[f"{role} cpu"] = seconds_of_processor(pids) - before[role]
            found[f"{role} memory"] = sum(map(peak_bytes, pids))
        client.kill()
        return found


def table(measured: list[dict[str, Any]]) -> str:
    """Return the table of all measured cases, with ratios to dask's own sum."""
    head = "| chunks | cluster | work | wall | / dask | CPU (s) | / dask | memory (MB) | / dask |"
    lines = [head, "|---" * 9 + "|"]
    for one in measured:
        same = [m for m in measured if all(m[k] == one[k] for k in ("scheduler", "chunks"))]
        base = next((m for m in same if m["case"] == DASK and m["wall"]), None)

        def ratio(value: Callable[[dict[str, Any]], float], one=one, base=base) -> str:
            known = one["wall"] and base and one is not base
            return f"{value(one) / value(base):.2f}" if known else ""

        def total_cpu(m: dict[str, Any]) -> float:
            return sum(m[f"{role} cpu"] for role in ROLES)

        seconds = f"{one['wall']:.1f} s" if one["wall"] else f"not finished in {one['limit']:.0f} s"
        cells = [
            f"{one['chunks']:,}",
            one["scheduler"],
            one["case"],
            seconds,
            ratio(lambda m: m["wall"]),
            ", ".join(f"{one[f'{role} cpu']:.1f}" for role in ROLES),
            ratio(total_cpu),
            ", ".join(f"{one[f'{role} memory'] / 1e6:.0f}" for role in ROLES),
            ratio(lambda m: m["client memory"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what was asked for, and print or write the table."""
    if sys.argv[1:2] == ["--client"]:
        scheduler, case, n_chunks, port = sys.argv[2:]
        run_as_client(scheduler, case, int(n_chunks), int(port))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", default="10000,100000")
    parser.add_argument("--schedulers", help="names with a comma between them; all by default")
    parser.add_argument("--cases", help="names with commas between them; all by default")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a case")
    parser.add_argument("--results", type=Path, help="file with a line for each measured case")
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args = parser.parse_args()
    measured = []
    if args.results and args.results.exists():
        measured = [json.loads(line) for line in args.results.read_text().splitlines()]
    done = {(m["chunks"], m["scheduler"], m["case"]) for m in measured}
    for n_chunks in map(int, args.chunks.split(",")):
        for scheduler in chosen(args.schedulers, COMMANDS, "scheduler"):
            for case in chosen(args.cases, CASES, "case"):
                if (n_chunks, scheduler, case) in done:
                    continue
                measured.append(measure(scheduler, case, n_chunks, args.limit))
                print(measured[-1], flush=True)
                if args.results:
                    with args.results.open("a") as file:
                        file.write(f"{json.dumps(measured[-1])}\n")
    order = {name: place for place, name in enumerate((*COMMANDS, *CASES))}
    measured.sort(key=lambda m: (m["chunks"], order[m["scheduler"]], order[m["case"]]))
    names = ("dask", "distributed", "frisky", "numpy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    text = f"Measured {time.strftime('%Y-%m-%d')} on {CPU_COUNT} cores, {versions}.\n\n"
    print(text := text + table(measured))
    if args.write:
        replace_part(args.write, "scale", text)


if __name__ == "__main__":
    main()
