"""Short ways to write a UDF and to run it, for tests of the interface."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

import udfdask as ud

NAV, SIG = (4, 6), (3, 5)
SYNC = {"scheduler": "synchronous"}
LATE = 500
"""Seconds after which a test that hangs ends; a busy machine may need minutes."""


def make(buffers: dict[str, dict[str, Any]], **methods: Any) -> type[ud.UDF]:
    """A UDF class from declarations (arguments of buffer by name) and methods."""

    def get_result_buffers(self):
        return {name: self.buffer(**arguments) for name, arguments in buffers.items()}

    return type("Made", (ud.UDF,), {"get_result_buffers": get_result_buffers, **methods})


def compute(x: da.Array, udf: Any, **options: Any) -> Any:
    lazy = ud.run_udf(x, udf, **options)
    return lazy.compute(**SYNC) if isinstance(lazy, ud.Result) else ud.compute(*lazy, **SYNC)


def mask_of(*positions: Any) -> np.ndarray:
    mask = np.zeros(NAV, dtype=bool)
    for position in positions:
        mask[position] = True
    return mask


def wait_until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + LATE
    while not condition():
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.01)


def run_python(*command: Any, fails: bool = False, **options: Any) -> subprocess.CompletedProcess:
    """Run `-c CODE` or a script in a process of its own; `env` are more variables."""
    options["env"] = {**os.environ, **options.get("env", {})}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        **options,
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
    )
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    return done
