"""Take turns with contestants that run in processes and environments of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A package, and where it is installed."""

    title: str
    module: str
    """The file beside this one that calls it."""
    python: Path
    """The interpreter of its environment."""


@dataclass(kw_only=True)
class Turns:
    """What came out of the turns of a contestant."""

    seconds: float = np.inf
    """The best time."""
    peak: float = 0.0
    """Peak memory of the process in MB, with its libraries and the pages of files it mapped."""
    found: Mapping[str, Any] | None = None
    """Its results, or None if it failed."""


class Process:
    """A process that waits for turns of a contestant."""

    def __init__(self, contestant: Contestant, work: str, folder: Path, threads: int) -> None:
        self._saved = folder / f"{contestant.module}-{work}.npz"
        self._saved.unlink(missing_ok=True)
        self._errors = folder / f"{contestant.module}-{work}.log"
        kinds = ("OMP", "OPENBLAS", "MKL", "NUMBA")
        environment = {**os.environ, **{f"{kind}_NUM_THREADS": str(threads) for kind in kinds}}
        environment.pop("PYTHONPATH", None)
        if contestant.python == Path(sys.executable):
            environment["PYTHONPATH"] = str(ROOT)
        command = [contestant.python, HERE / "turns.py", contestant.module, work, folder]
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )

    def turn(self) -> dict[str, float] | None:
        """Return seconds and peak memory of one turn, or None if the process has ended."""
        try:
            print(file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return None
        answer = self._process.stdout.readline()
        return json.loads(answer) if answer else None

    def end(self) -> Mapping[str, Any] | None:
        """End the process; return its results, or None after its error is printed."""
        self._process.stdin.close()
        if self._process.wait() != 0:
            print(self._errors.read_text()[-2000:], file=sys.stderr)
            return None
        return dict(np.load(self._saved))


def take_turns(
    work: str, contestants: list[Contestant], folder: Path, *, threads: int, repeats: int
) -> dict[str, Turns]:
    """Return what came out for each contestant; the first turn, which compiles, has no time."""
    processes = {c.title: Process(c, work, folder, threads) for c in contestants}
    outcomes = {title: Turns() for title in processes}
    for number in range(repeats + 1):
        for title, process in processes.items():
            answer, outcome = process.turn(), outcomes[title]
            if answer is not None:
                outcome.peak = answer["peak"]
                if number:
                    outcome.seconds = min(outcome.seconds, answer["seconds"])
    for title, process in processes.items():
        outcomes[title].found = process.end()
    return outcomes
