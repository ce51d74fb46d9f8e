"""What udfdask costs in addition to the work itself, compared with dask, in one run.

Run it on a quiet machine: ``python asv_bench/overhead.py``. It prints two tables, and with
``--write PAGE`` replaces the marked part of that page of the documentation. Each number is the
best of several rounds, in which all contestants take turns.
"""

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.chunk.run_chunk import run_chunk
from udfdask.testing.eager_run import make_recipe
from udfdask.udfs import SumSigUDF, SumUDF

START, STOP = "<!-- overhead: start -->", "<!-- overhead: stop -->"


class TrivialUDF(ud.UDF):
    """A `process_frame` that does next to nothing."""

    def get_result_buffers(self):
        return {"seen": self.buffer(kind="nav", dtype="uint16")}

    def process_frame(self, frame):
        pass


def seconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def best(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the shortest time of each contestant; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, function in contestants.items():
            times[name].append(seconds(function))
    return {name: min(values) for name, values in times.items()}


def chunks_table(rounds: int) -> str:
    """Return the table of building plus computing over 10,000 chunks of 4 frames of 16 x 16."""
    shape, sizes = (200, 200, 16, 16), (2, 2, 16, 16)
    memory = np.ones(shape, dtype="uint16")
    arrays = {
        "an array in memory (`from_array`)": da.from_array(memory, chunks=sizes),
        "generated (`da.ones`)": da.ones(shape, dtype="uint16", chunks=sizes),
    }
    lines = ["| 10,000 chunks | scheduler | sums | dask | udfdask | ratio |", "|---" * 6 + "|"]
    for title, x in arrays.items():
        for scheduler in ("threads", "synchronous"):
            pairs = {
                "over the frames (`SumUDF`)": (
                    lambda x=x: [x.sum(axis=(0, 1))],
                    lambda x=x: [ud.run_udf(x, SumUDF())],
                ),
                "over the pixels (`SumSigUDF`)": (
                    lambda x=x: [x.sum(axis=(2, 3))],
                    lambda x=x: [ud.run_udf(x, SumSigUDF())],
                ),
                "both": (
                    lambda x=x: [x.sum(axis=(0, 1)), x.sum(axis=(2, 3))],
                    lambda x=x: ud.run_udf(x, [SumUDF(), SumSigUDF()]),
                ),
            }
            for name, (by_dask, by_udf) in pairs.items():
                times = best(
                    {
                        "dask": lambda f=by_dask, s=scheduler: dask.compute(*f(), scheduler=s),
                        "udfdask": lambda f=by_udf, s=scheduler: dask.compute(*f(), scheduler=s),
                    },
                    rounds,
                )
                ratio = times["udfdask"] / times["dask"]
                lines.append(
                    f"| {title} | {scheduler} | {name} | {times['dask']:.2f} s | "
                    f"{times['udfdask']:.2f} s | {ratio:.2f} |"
                )
                print(lines[-1], flush=True)
    return "\n".join(lines)


def frames_table(rounds: int) -> str:
    """Return the table of a trivial `process_frame` against a bare loop over the frames."""
    n = 20_000
    stack = np.ones((n, 16, 16), dtype="float32")
    recipe = make_recipe([TrivialUDF()], shape=stack.shape, dtype=stack.dtype)
    udf = TrivialUDF()

    def bare() -> None:
        for frame in stack:
            udf.process_frame(frame)

    times = best({"bare": bare, "udfdask": lambda: run_chunk(recipe, 0, (stack,))}, rounds)
    per_frame = {name: value / n * 1e6 for name, value in times.items()}
    lines = [
        f"| {n} frames in one chunk | per frame |",
        "|---|---|",
        f"| a bare loop that calls the method | {per_frame['bare']:.2f} µs |",
        f"| udfdask | {per_frame['udfdask']:.2f} µs |",
        f"| difference | {per_frame['udfdask'] - per_frame['bare']:.2f} µs |",
    ]
    return "\n".join(lines)


def main() -> None:
    """Print both tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    versions = f"Python {platform.python_version()}, dask {dask.__version__}"
    versions += f", NumPy {np.__version__}"
    frames = frames_table(args.rounds)
    print(frames, flush=True)
    chunks = chunks_table(args.rounds)
    date = time.strftime("%Y-%m-%d")
    text = f"Measured {date} on {dask.system.CPU_COUNT} cores, {versions}, best of {args.rounds}.\n"
    text = f"{START}\n{text}\n{chunks}\n\n{frames}\n{STOP}"
    if args.write:
        page = args.write.read_text()
        before, rest = page.split(START)
        args.write.write_text(before + text + rest.split(STOP)[1])


if __name__ == "__main__":
    main()
