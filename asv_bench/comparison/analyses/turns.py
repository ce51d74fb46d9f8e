"""The process of a contestant: for each line of input, one turn; its answer is a line of JSON.

    python turns.py MODULE WORK FOLDER

It runs in the environment of the contestant, and imports nothing else of this project.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np


def peak() -> float:
    """Return the peak memory in MB; `ru_maxrss` of a started program counts its parent as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def main(name: str, work: str, folder: Path) -> None:
    """Answer with seconds and peak memory in MB; results are in the folder."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # libraries print to the standard output, too
        turn = importlib.import_module(name).WORK[work]
        for _ in sys.stdin:
            start = time.perf_counter()
            found = turn(folder)
            seconds = time.perf_counter() - start
            np.savez(folder / f"{name}-{work}.npz", **found)
            print(json.dumps({"seconds": seconds, "peak": peak()}), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
