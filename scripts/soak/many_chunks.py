"""Sum very many tiny chunks on a cluster of two processes, by dask and by udfdask.

    python scripts/soak/many_chunks.py [--chunks 1000,10000,100000]

prints, for each number of chunks: the time to build the graph and to compute it, the bytes that the
client sends, and the peak memory of client, scheduler and workers, each in a process of its own.
Every run starts a new cluster. 100,000 chunks take some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKERS = 2

CONTESTANTS = ("dask", "SumUDF", "SumUDF, merge_small")


def peak_mib(pid: int | str = "self") -> float:
    """Return the largest memory that a process has had, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this script needs Linux")


def client(address: str, contestant: str, n: int) -> None:
    """Compute the sum of `n` chunks; print what it took as JSON."""
    import dask.array as da
    import numpy as np
    from distributed import Client
    from distributed.protocol import dumps

    import udfdask as ud
    from udfdask.udfs import SumUDF

    def lazy(n: int) -> object:
        x = da.ones((n, 16, 16), chunks=(1, 16, 16), dtype="uint16")
        if contestant == "dask":
            return x.sum(axis=0)
        joined = {"merge_small": "64 KiB"} if "merge_small" in contestant else {}
        return ud.run_udf(x, SumUDF(), **joined)["intensity"]

    with Client(address) as connected:
        connected.wait_for_workers(WORKERS)
        lazy(8).compute()  # imports and compiles
        before = peak_mib()
        start = time.perf_counter()
        built = lazy(n)
        build = time.perf_counter() - start
        start = time.perf_counter()
        total = built.compute()
        compute = time.perf_counter() - start
        assert (np.asarray(total) == n).all()
        from dask.base import collections_to_expr

        frames = dumps(collections_to_expr([built]).optimize())
        graph = sum(len(frame) for frame in frames)
        print(
            json.dumps(
                {"build": build, "compute": compute, "graph": graph, "client": peak_mib() - before}
            )
        )


def run(contestant: str, n: int) -> dict[str, float]:
    """Start a scheduler, workers and a client, each in its own process; return what they took."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "scheduler.json")
        common = ["--no-dashboard"]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        start = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        scheduler = subprocess.Popen(
            [*start, "--scheduler-file", file, "--port", "0", *common],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        worker = [sys.executable, "-m", "distributed.cli.dask_worker"]
        workers = [
            subprocess.Popen(
                [*worker, "--scheduler-file", file, "--nthreads", "1", "--no-nanny", *common],
                cwd=folder,
                env=environment,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(WORKERS)
        ]
        try:
            while not Path(file).exists():
                time.sleep(0.1)
            address = json.loads(Path(file).read_text())["address"]
            done = subprocess.run(
                [sys.executable, __file__, "--client", address, contestant, str(n)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            found = json.loads(done.stdout.splitlines()[-1])
            found["scheduler"] = peak_mib(scheduler.pid)
            found["worker"] = max(peak_mib(process.pid) for process in workers)
        finally:
            for process in (*workers, scheduler):
                process.terminate()
            for process in (*workers, scheduler):
                process.wait()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", default="1000,10000,100000")
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        address, contestant, n = args.client
        client(address, contestant, int(n))
        return
    print("| chunks | sum by | build | compute | per chunk | graph | client | scheduler | worker |")
    print("|---" * 9 + "|")
    for n in map(int, args.chunks.split(",")):
        for contestant in CONTESTANTS:
            found = run(contestant, n)
            print(
                f"| {n:,} | {contestant} | {found['build']:.2f} s | {found['compute']:.1f} s "
                f"| {(found['build'] + found['compute']) / n * 1e3:.2f} ms "
                f"| {found['graph'] / 1e3:.0f} kB | {found['client']:.0f} MiB "
                f"| {found['scheduler']:.0f} MiB | {found['worker']:.0f} MiB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
