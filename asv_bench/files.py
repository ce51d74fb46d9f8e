"""Compare sums over compressed and chunked files with decoding their chunks, dask and LiberTEM.

    python asv_bench/files.py [--gigabytes 0.5] [--formats zarr3-zstd,hdf5-gzip] [--no-libertem]

prints a table: times in seconds, then ratios of times and a verdict for each format. With two quiet
cores it takes about four minutes. All files are in the page cache, all contestants have the same
number of threads and take turns, and the sums are compared. The exit status is 1 if they differ.

*Decoding* calls the decoder for each stored chunk, from bytes in memory into memory that it uses
again; without a compressor it reads the file into such memory. udfdask opens each file with
`udfdask.io.open_file`, and *dask* is the sum of `dask.array.from_zarr(...)` and the like.
*udfdask on it* is udfdask's sum over that same dask array. With other programs on the machine,
``--cpu`` compares CPU times; they do not contain the time that threads wait for each other.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import dask
import numpy as np

from comparison.by_libertem import INSTALLED, LiberTEM
from comparison.file_formats import FORMATS, Format, make_counts
from comparison.options import chosen
from udfdask.udfs import SumUDF

GOAL = 1.15
"""Longest time of udfdask, relative to decoding alone."""

LONG = 2.0
"""Seconds of timed turns after which the best time of a contestant is good enough."""

NAMES = ("decoding", "udfdask", "udfdask on it", "dask", "LiberTEM")


def contestants(
    file: Format, path: Path, peer: LiberTEM | None, threads: int
) -> dict[str, Callable[[], int | None]]:
    """Return a function for each contestant; each call opens the file again and returns the sum."""
    from udfdask import run_udf

    def total(frame: np.ndarray) -> int:
        return int(frame.sum(dtype=np.int64))

    turns: dict[str, Callable[[], int | None]] = {
        "decoding": file.decoding(path, threads),
        "udfdask": lambda: total(
            run_udf(file.by_udfdask(path), SumUDF(), sig_dims=2).compute()["intensity"]
        ),
        "udfdask on it": lambda: total(
            run_udf(file.by_dask(path), SumUDF(), sig_dims=2).compute()["intensity"]
        ),
        "dask": lambda: int(file.by_dask(path).sum(dtype=np.int64).compute()),
    }
    if peer is not None:
        executor, load = file.by_libertem(path)
        turns["LiberTEM"] = lambda: total(by_libertem(peer, executor, load))
    return turns


def by_libertem(peer: LiberTEM, executor: str, load: Callable) -> np.ndarray:
    """Return LiberTEM's sum over the frames of a file that a function loads."""
    from libertem.udf.sum import SumUDF as TheirSum

    context = peer.context(executor)
    buffer = context.run_udf(dataset=load(context), udf=TheirSum())["intensity"]
    if executor == "lazy":
        return np.asarray(dask.compute(buffer.delayed_data)[0])
    return np.asarray(buffer.data)


def take_turns(
    turns: dict[str, Callable], repeats: int, clock: Callable[[], float]
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the best time of each in seconds, and its sum in a first turn without timing.

    Who has taken `LONG` has no further turn.
    """
    found = {name: turn() for name, turn in turns.items()}
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(repeats):
        for name, turn in turns.items():
            if sum(times[name]) < LONG:
                start = clock()
                turn()
                times[name].append(clock() - start)
    best = {name: min(taken) for name, taken in times.items()}
    return best, {name: value for name, value in found.items() if value is not None}


def row(title: str, nbytes: int, best: dict[str, float], *, equal: bool) -> str:
    """Return the line of a format."""
    ours = best["udfdask"]
    ratio = ours / best["decoding"]
    slower = [n for n in ("dask", "LiberTEM") if n in best and ours > best[n] * 1.02]
    verdict = "reached" if ratio <= GOAL else "**missed**"
    if slower:
        verdict += f", **slower than {' and '.join(slower)}**"
    if not equal:
        verdict = "**DIFFERENT SUMS**"
    cells = [title, *(f"{best[n]:.3f}" if n in best else "" for n in NAMES)]
    cells.append(f"{nbytes / 1e9 / ours:.2f}")
    cells += [f"{ours / best[n]:.2f}" if n in best else "" for n in NAMES if n != "udfdask"]
    return f"| {' | '.join([*cells, verdict])} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return the exit status: 1 if sums differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=0.5, help="size of the data (2**30)")
    parser.add_argument("--formats", help="names, separated by commas; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=dask.system.CPU_COUNT)
    parser.add_argument("--cpu", action="store_true", help="CPU time of all threads together")
    parser.add_argument("--no-libertem", action="store_true")
    parser.add_argument("--folder", type=Path, help="folder of the data; else a temporary one")
    args = parser.parse_args(arguments)
    known = {file.name: file for file in FORMATS if not file.missing_package()}
    names = chosen(args.formats, known, "format")
    head = ["format", *NAMES, "GB/s", *(f"/ {name}" for name in NAMES if name != "udfdask")]
    print(f"| {' | '.join([*head, 'goal'])} |", "|---" * (len(head) + 1) + "|", sep="\n")
    libertem = INSTALLED and not args.no_libertem
    clock = time.process_time if args.cpu else time.perf_counter
    failed = False
    folder = nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    with (
        folder as made,
        LiberTEM(args.threads) if libertem else nullcontext() as peer,
        dask.config.set(scheduler="threads", num_workers=args.threads),
    ):
        counts = make_counts(Path(made), args.gigabytes)
        for name in names:
            path = known[name].make(counts, Path(made))
            turns = contestants(known[name], path, peer, args.threads)
            best, sums = take_turns(turns, args.repeats, clock)
            equal = len(set(sums.values())) == 1
            failed |= not equal
            print(row(known[name].title, counts.nbytes, best, equal=equal), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
