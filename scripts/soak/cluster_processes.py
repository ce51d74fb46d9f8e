"""A scheduler and workers as processes of their own, and what a process has used.

Everything that waits here ends by itself: with a message that says which process has ended and
shows its last output, or what was not there in time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

PATIENCE = 180
"""Seconds to wait for a process to start; importing takes 2 s, or a minute on a loaded machine."""


class ClusterProcesses:
    """A scheduler and workers with one thread each, without nannies, in a `with` block."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._count = workers
        self._environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        file = self._folder / "scheduler.json"
        common = ["--no-dashboard"]
        try:
            options = ["--scheduler-file", str(file), "--port", "0", *common]
            self._start("scheduler", "-m", "distributed.cli.dask_scheduler", *options)
            self.address = self._read_address(file)
            for number in range(self._count):
                # with the address: a worker that gets a file waits for it without an end
                options = [self.address, "--nthreads", "1", "--no-nanny", *common]
                options += ["--death-timeout", str(PATIENCE)]
                self._start(f"worker {number}", "-m", "distributed.cli.dask_worker", *options)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # not `terminate`: they would wait for each other, up to 20 s
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()

    def run_client(self, arguments: list[str], timeout: float) -> str:
        """Run a program that uses the cluster; return what it has printed."""
        self._start("client", *arguments)
        client = self._processes["client"]
        end = time.monotonic() + timeout
        while client.poll() is None:
            self._check(end, f"the client took longer than {timeout:.0f} s")
            time.sleep(0.1)
        if client.returncode:
            sys.exit(f"the client ended with {client.returncode}:\n{self._output('client')}")
        return self._file("client").read_text()

    def _start(self, name: str, *arguments: str) -> None:
        """Start a Python process, whose output goes to a file."""
        with self._file(name).open("wb") as output:
            self._processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self._folder,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _read_address(self, file: Path) -> str:
        """Return the address of the scheduler when it has written it."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return str(json.loads(file.read_text())["address"])
            except (OSError, ValueError):  # missing, or half written
                self._check(end, f"the scheduler did not start in {PATIENCE} s")
                time.sleep(0.1)

    def _check(self, end: float, late: str) -> None:
        """End this program if a scheduler or worker has ended, or the time is over."""
        for name, process in self._processes.items():
            if name != "client" and process.poll() is not None:
                sys.exit(
                    f"the {name} ended with {process.returncode}; its last output was:\n"
                    f"{self._output(name)}"
                )
        if time.monotonic() > end:
            every = [f"{name}:\n{self._output(name)}" for name in self._processes]
            sys.exit("\n".join([late, *every]))

    def _file(self, name: str) -> Path:
        """Return the path of the output of a process."""
        return self._folder / f"{name.replace(' ', '-')}.log"

    def _output(self, name: str) -> str:
        """Return the last lines that a process has printed."""
        lines = self._file(name).read_text(errors="replace").splitlines()
        return "\n".join(lines[-20:])


class Usage:
    """What a process uses from now on, as Linux counts it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak starts again from here
        self._start = self._read()

    def so_far(self) -> dict[str, float]:
        """Return the CPU time in seconds, and by how many MiB the memory has grown at its peak."""
        now = self._read()
        return {
            "cpu": now["cpu"] - self._start["cpu"],
            "grown": now["VmHWM"] - self._start["VmRSS"],
            "peak": now["VmHWM"],
        }

    def _read(self) -> dict[str, float]:
        """Return CPU time, memory and peak memory of the process."""
        found: dict[str, Any] = {}
        for line in Path(f"/proc/{self._pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("VmHWM", "VmRSS"):
                found[name] = int(value.split()[0]) / 1024
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        found["cpu"] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found
