"""How long the first call takes in a fresh process, with numba's cache warm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

PREPARE = "import sys, time; start = time.perf_counter(); path = sys.argv[1]; n = int(sys.argv[2])"

SCRIPTS = {
    "dask": """
import dask.array as da, numpy as np
imported = time.perf_counter()
def load(block_info=None):
    where = block_info[None]["array-location"]
    return np.load(path, mmap_mode="r")[tuple(slice(*ends) for ends in where)]
shape = np.load(path, mmap_mode="r").shape
chunks = da.core.normalize_chunks((shape[0] // 4 or 1, *shape[1:]), shape)
x = da.map_blocks(load, chunks=chunks, meta=np.empty((0,) * 4, "u2"))
x.{dask}(axis=(0, 1)).compute(scheduler="threads", num_workers=n)
""",
    "udfdask": """
import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import {udf}
imported = time.perf_counter()
ud.run_udf(open_file(path).array, {udf}()).compute(scheduler="threads", num_workers=n)
""",
    "LiberTEM": """
from libertem.api import Context
from libertem.udf.{module} import {udf}
imported = time.perf_counter()
with Context.make_with("threads", cpus=n) as ctx:
    ctx.run_udf(dataset=ctx.load("npy", path=path), udf={udf}())
""",
}

PRINT = "print(imported - start, time.perf_counter() - imported)"


def first_call(library: str, udf: str, path: Path, threads: int, repeats: int) -> tuple[float, ...]:
    """Return seconds of a whole fresh process, of its imports, and of its first call.

    Best of `repeats` processes by the whole time, after one more that leaves compiled code behind.
    """
    names = {"SumUDF": ("sum", "sum"), "StdDevUDF": ("var", "stddev")}[udf]
    body = SCRIPTS[library].format(dask=names[0], module=names[1], udf=udf)
    command = [sys.executable, "-c", f"{PREPARE}\n{body}\n{PRINT}", str(path), str(threads)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    found = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        whole = time.perf_counter() - start
        found.append((whole, *map(float, done.stdout.split()[-2:])))
    return min(found[1:])
