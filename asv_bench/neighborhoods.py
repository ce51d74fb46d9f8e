"""Averages of neighboring frames: udfdask, dask's map_overlap and kikuchipy, on the same file.

    python asv_bench/neighborhoods.py [--megabytes 300] [--rounds 3] [--kikuchipy PYTHON]

prints two Markdown tables, and with ``--write PAGE`` replaces the marked part of that page of the
documentation. With ``--busy``, for a machine on which other programs run, the tables have no times
of the clock, only those of the processor.

The data are a zarr array whose chunks are cut along both axes of the scan. The mean of 3 by 3
frames is computed with two threads, and dropped chunk by chunk. Contestants take turns, each time
in a fresh process, which first does the same to a few frames.
`PYTHON` is the interpreter of an environment with kikuchipy and zarr; without it, kikuchipy is left
out unless it is installed here.

The second table has the same arithmetic with and without a halo, in pairs in one process.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import importlib.util
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

START, STOP = "<!-- neighborhoods: start -->", "<!-- neighborhoods: stop -->"
SIG = (128, 128)
CHUNK = 24
HOW = {"scheduler": "threads", "num_workers": 2}


class Sink:
    """Takes the blocks of an array and drops them."""

    def __setitem__(self, index, block):
        pass


def status(field: str) -> int:
    """Bytes of a field of the status of this process, such as VmHWM, its largest memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(field)).split()[1]) * 1024


def by_udfdask(x: da.Array) -> da.Array:
    import udfdask as ud
    from udfdask.udfs import NeighborAverageUDF

    return ud.run_udf(x, NeighborAverageUDF("rectangular", boundary="nearest"))["intensity"]


def kernel_mean(frames: np.ndarray) -> np.ndarray:
    """The kernel of `NeighborAverageUDF` for all frames but the outermost."""
    from udfdask.kernels.cpu.neighbor_sums import Neighborhood, distances, frames_of, sum_neighbors

    nav = frames.shape[:2]
    core = (slice(1, -1), slice(1, -1))
    selected = np.ones((nav[0] - 2, nav[1] - 2), bool)
    where = Neighborhood.of(core, selected, np.ones(nav, bool))
    steps = distances(np.argwhere(np.ones((3, 3))) - 1, nav)
    out = np.empty((*selected.shape, *frames.shape[2:]), np.float32)
    sum_neighbors(frames_of(frames, 2), where, steps, np.ones(9), True, out, 2)
    return out


def by_overlap_with_kernel(x: da.Array) -> da.Array:
    return da.map_overlap(
        kernel_mean, x, depth=(1, 1, 0, 0), boundary="nearest", trim=False, chunks=x.chunks,
        dtype=np.float32, meta=np.empty((0,) * 4, np.float32),
    )  # fmt: skip


def correlate(frames: np.ndarray) -> np.ndarray:
    from scipy import ndimage

    weights = np.full((3, 3, 1, 1), 1 / 9, np.float32)
    return ndimage.correlate(frames.astype(np.float32), weights, mode="nearest")


def by_overlap_with_scipy(x: da.Array) -> da.Array:
    return da.map_overlap(
        correlate, x, depth=(1, 1, 0, 0), boundary="nearest", dtype=np.float32,
        meta=np.empty((0,) * 4, np.float32),
    )  # fmt: skip


def by_kikuchipy(x: da.Array) -> da.Array:
    import kikuchipy as kp

    signal = kp.signals.LazyEBSD(x)
    averages = signal.average_neighbour_patterns(
        window="rectangular", window_shape=(3, 3), inplace=False, lazy_output=True,
        show_progressbar=False,
    )  # fmt: skip
    return averages.data


CONTESTANTS = {
    "udfdask": by_udfdask,
    "map_overlap, the same kernel": by_overlap_with_kernel,
    "map_overlap, scipy.ndimage.correlate": by_overlap_with_scipy,
    "kikuchipy": by_kikuchipy,
}


def turn(name: str, file: str) -> dict[str, Any]:
    """What a contestant needs, in this process."""
    import zarr

    def run(x: da.Array) -> None:
        da.store([CONTESTANTS[name](x)], [Sink()], lock=False, **HOW)

    stored = zarr.open_array(file, mode="r")
    x = da.from_array(stored, chunks=stored.chunks)
    few = da.from_array(np.asarray(stored[:6, :6]), chunks=(3, 3, -1, -1))
    run(few)  # imports and compiles
    corner = np.asarray(CONTESTANTS[name](few)[2, 2].compute(), np.float64)
    before = status("VmRSS")
    start, used = time.perf_counter(), time.process_time()
    run(x)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - used,
        "peak": status("VmHWM") - before,
        "sum": float(corner.sum()),
    }


def table_of_contestants(file: str, rounds: int, pythons: dict[str, str], busy: bool) -> str:
    """Run all contestants in turn; medians of their times and memory."""
    heads = {"seconds": "time", "cpu": "CPU time", "peak": "peak memory"}
    if busy:
        del heads["seconds"]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
    for k in range(rounds):
        names = list(pythons)
        for name in names[k % len(names) :] + names[: k % len(names)]:
            command = [pythons[name], __file__, "--turn", name, "--file", file]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{name} failed:\n{done.stderr}")
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    sums = {name: turns[0]["sum"] for name, turns in found.items() if name != "kikuchipy"}
    if not np.allclose(list(sums.values()), sums["udfdask"], rtol=1e-5):
        sys.exit(f"results differ: {sums}")
    medians = {
        name: {key: statistics.median(t[key] for t in turns) for key in turns[0]}
        for name, turns in found.items()
    }
    ours = medians["udfdask"]
    columns = ["", *heads.values(), "divided by udfdask"]
    lines = [row(columns), row(["---"] * len(columns))]
    for name, own in medians.items():
        ratios = ", ".join(f"{own[key] / ours[key]:.1f}" for key in heads)
        values = [
            f"{own[key] / 1e6:.0f} MB" if key == "peak" else f"{own[key]:.2f} s" for key in heads
        ]
        lines.append(row([name, *values, ratios]))
    return "\n".join(lines)


def row(cells: list[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table_of_halos(file: str, rounds: int, busy: bool) -> str:
    """The same arithmetic for each position, with its neighbors and with others of its chunk."""
    import zarr

    import udfdask as ud
    from udfdask.kernels.cpu.neighbor_sums import Neighborhood, distances, frames_of, sum_neighbors
    from udfdask.udfs import NeighborAverageUDF

    class Nearby(ud.UDF):
        """Averages of nine frames; at the borders of a chunk, of its outermost nine."""

        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def get_result_buffers(self):
            sig = tuple(self.meta.dataset_shape.sig)
            return {"intensity": self.buffer("nav", extra_shape=sig)}

        def process_partition(self, frames):
            nav = (CHUNK, CHUNK)
            whole = Neighborhood.of((slice(None),) * 2, np.ones(nav, bool), np.ones(nav, bool))
            inner = np.clip(np.indices(nav), 1, CHUNK - 2)
            where = whole._replace(places=np.ravel_multi_index(inner, nav).reshape(-1))
            out = self.results.intensity
            steps = distances(np.argwhere(np.ones((3, 3))) - 1, nav)
            sum_neighbors(frames_of(frames, 1), where, steps, np.ones(9), True, out, 1)

    stored = zarr.open_array(file, mode="r")
    x = da.from_array(stored, chunks=stored.chunks)
    udfs = {"with a halo": NeighborAverageUDF("rectangular"), "without": Nearby()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in udfs}
    for k in range(2 * rounds + 2):
        # the first pair compiles and fills caches
        for name in list(udfs)[:: 1 if k % 2 else -1]:
            start, used = time.perf_counter(), time.process_time()
            da.store([ud.run_udf(x, udfs[name])["intensity"]], [Sink()], lock=False, **HOW)
            if k:
                found[name].append((time.perf_counter() - start, time.process_time() - used))
    shown = {"CPU time": 1} if busy else {"time": 0, "CPU time": 1}
    columns = ["nine frames for each position", *shown]
    lines = [row(columns), row(["---"] * len(columns))]
    for name, times in found.items():
        medians = [statistics.median(t[k] for t in times) for k in shown.values()]
        lines.append(row([name, *(f"{median:.2f} s" for median in medians)]))
    pairs = list(zip(found["with a halo"], found["without"], strict=True))
    ratios = [statistics.median(a[k] / b[k] for a, b in pairs) for k in shown.values()]
    return "\n".join([*lines, row(["median of the ratios", *(f"{x:.2f}" for x in ratios)])])


def make_file(folder: Path, megabytes: float) -> str:
    """Write the data, noise of few counts, in chunks of a part of the scan."""
    import zarr

    side = max(2, round((megabytes * 1e6 / (2 * SIG[0] * SIG[1])) ** 0.5 / CHUNK)) * CHUNK
    path = str(folder / "scan.zarr")
    stored = zarr.open_array(
        path, mode="w", shape=(side, side, *SIG), chunks=(CHUNK, CHUNK, *SIG), dtype="uint16"
    )
    rng = np.random.default_rng(0)
    for row in range(0, side, CHUNK):
        stored[row : row + CHUNK] = rng.poisson(5, (CHUNK, side, *SIG)).astype("uint16")
    return path


def about(args: argparse.Namespace) -> str:
    """Return when and with what the tables were made."""
    packages = {"dask": "dask", "NumPy": "numpy", "numba": "numba", "SciPy": "scipy"}
    versions = ", ".join(f"{k} {importlib.metadata.version(v)}" for k, v in packages.items())
    how = " while other programs were running" if args.busy else ""
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    return (
        f"Measured {today} with 2 threads{how}, {args.megabytes:.0f} MB, "
        f"medians of {args.rounds}, Python {platform.python_version()}, {versions}."
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=300, help="size of the data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kikuchipy", metavar="PYTHON", help="interpreter that has kikuchipy")
    parser.add_argument("--busy", action="store_true", help="leave out the times of the clock")
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    parser.add_argument("--turn", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.turn:
        print(json.dumps(turn(args.turn, args.file)))
        return
    pythons = dict.fromkeys(CONTESTANTS, sys.executable)
    if args.kikuchipy:
        pythons["kikuchipy"] = args.kikuchipy
    elif importlib.util.find_spec("kikuchipy") is None:
        del pythons["kikuchipy"]
        print("kikuchipy is not installed: pass --kikuchipy PYTHON to compare with it\n")
    with tempfile.TemporaryDirectory() as folder:
        file = make_file(Path(folder), args.megabytes)
        first = table_of_contestants(file, args.rounds, pythons, args.busy)
        print(first, flush=True)
        second = table_of_halos(file, args.rounds, args.busy)
        print(f"\n{second}")
    if args.write is not None:
        before, rest = args.write.read_text().split(START)
        text = f"{START}\n{about(args)}\n\n{first}\n\n{second}\n{STOP}"
        args.write.write_text(before + text + rest.split(STOP)[1])


if __name__ == "__main__":
    main()
