"""Compare udfdask with LiberTEM on the same raw CSR files of events, and with dense frames.

    python asv_bench/sparse_events.py [--frames 100000] [--cases sum,com] [--repeats 5]

prints its tables, and with ``--write PAGE`` replaces the marked part of that page of the
documentation. About 1 % of the pixels of 256 x 256 are stored. All libraries read files from the
page cache, with the same number of threads, and take turns. Each turn opens the files, builds the
computation, and computes it. The results are compared; the exit status is 1 if they differ.

*Made dense* are the same sparse chunks with ``backends="numpy"``. The *dense file* is read by
udfdask, by plain dask expressions and by LiberTEM. These have fewer frames: their times are scaled
to the same number of frames.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np

from comparison import by_dask, by_libertem, by_udfdask
from comparison.by_libertem import LiberTEM
from comparison.contest import agree
from comparison.events import Events, make_events
from peers import versions

START, STOP = "<!-- sparse: start -->", "<!-- sparse: stop -->"
OTHERS = ("LiberTEM", "made dense", "dense file", "dense file, dask", "dense file, LiberTEM")
"""The names of the other contestants in the tables."""
HEAD = f"| work | udfdask | events/s | {' | '.join(OTHERS)} | results |"
CASES = {
    "sum": "sum over the frames",
    "sumsig": "sum over the pixels",
    "com": "center of mass",
    "stddev": "variance over the frames",
    "masks": "16 dense float32 masks",
}
TIMES = {name: 3.0 if name == "LiberTEM" else 20.0 for name in OTHERS}
GOALS = dict.fromkeys(("sum", "sumsig", "com"), TIMES)
"""By how many times udfdask aims to be faster, at least."""
PART = 2
"""Number of chunks per thread that are made dense."""
EXECUTORS = ("threads", "dask")

Results = dict[str, np.ndarray]


def contestants(
    case: str, events: Events, threads: int, peer: LiberTEM | None
) -> dict[str, Callable[[], Results]]:
    """Return a function for each contestant; each call opens its data again."""

    def compute(lazy: dict) -> Results:
        return dask.compute(lazy, scheduler="threads", num_workers=threads)[0]

    found = {
        "udfdask": lambda: compute(by_udfdask.run(events.open(), case)),
        "dense file": lambda: compute(by_udfdask.run(events.open_dense(), case)),
        "made dense": lambda: compute(
            by_udfdask.run(events.open_part(PART * threads), case, backends="numpy")
        ),
    }
    found["dense file, dask"] = lambda: compute(by_dask.WORK[case][0](events.open_dense()))
    for executor in EXECUTORS if peer is not None else ():
        for name, options in {
            "LiberTEM": events.sparse,
            "dense file, LiberTEM": events.raw,
        }.items():
            found[f"{name} {executor}"] = partial(_by_libertem, case, options, peer, executor)
    return found


def _by_libertem(case: str, options: dict[str, Any], peer: LiberTEM, executor: str) -> Results:
    """Return LiberTEM's results for a data set that it loads with some options."""
    context = peer.context(executor)
    dataset = context.load(**options)
    (work,) = by_libertem.WORK[case]
    return {name: np.asarray(buffer.data) for name, buffer in work(context, dataset).items()}


def take_turns(
    turns: dict[str, Callable[[], Results]], repeats: int
) -> tuple[dict[str, float], dict[str, Results]]:
    """Return the best time of each in seconds, and its results in a first turn without timing."""
    found = {name: turn() for name, turn in turns.items()}
    best = dict.fromkeys(turns, np.inf)
    for _ in range(repeats):
        for name, turn in turns.items():
            start = time.perf_counter()
            turn()
            best[name] = min(best[name], time.perf_counter() - start)
    return best, found


def lines_of(name: str, sizes: dict[str, int]) -> int:
    """Return the number of scan lines of a contestant; `sizes` has beginnings of names."""
    return next((n for start, n in sizes.items() if name.startswith(start)), sizes["udfdask"])


def differences(found: dict[str, Results], sizes: dict[str, int]) -> list[str]:
    """Return the contestants whose results differ from those of udfdask, which has all lines.

    `sizes` is the number of lines of each, as in `lines_of`.
    """
    ours, lines = found["udfdask"], sizes["udfdask"]
    wrong = []
    for name, results in found.items():
        size = lines_of(name, sizes)
        for key, values in results.items():
            expected = ours[key]
            if len(expected) == lines:  # a value for each frame
                expected = expected[:size]
            elif size != lines:
                continue  # over fewer frames
            if not agree(values, expected):
                wrong.append(f"{name}: {key}")
    return wrong


def row(case: str, seconds: dict[str, float], entries: int, wrong: list[str]) -> str:
    """Return the line of a case."""
    ours = seconds["udfdask"]
    results = "; ".join(f"DIFFERENT: {w}" for w in wrong) or "agree"
    times = [
        f"{seconds[n]:.3f} s ({seconds[n] / ours:.1f})" if n in seconds else "" for n in OTHERS
    ]
    speed = f"{entries / ours / 1e6:.0f} million"
    return f"| {' | '.join([CASES[case], f'{ours:.3f} s', speed, *times, results])} |"


def goals_table(outcomes: dict[str, dict[str, float]]) -> str:
    """Return the table of all goals for the contestants that took part."""
    lines = ["| compared with | at least | found | |", "|---|---|---|---|"]
    for case, least in GOALS.items():
        for name, times in least.items():
            seconds = outcomes.get(case, {})
            if name not in seconds:
                continue
            found = seconds[name] / seconds["udfdask"]
            word = "reached" if found >= times else "**missed**"
            lines.append(f"| {CASES[case]}: {name} | {times:.0f} | {found:.1f} | {word} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--dense-frames", type=int, default=10_000)
    parser.add_argument("--cases", help="names, separated by commas; all by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=dask.system.CPU_COUNT)
    parser.add_argument("--no-libertem", action="store_true")
    parser.add_argument(
        "--folder", type=Path, help="folder of the data; a temporary folder by default"
    )
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args = parser.parse_args(arguments)
    cases = list(CASES) if args.cases is None else args.cases.split(",")
    unknown = [case for case in cases if case not in CASES]
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    libertem = by_libertem.INSTALLED and not args.no_libertem
    folder = nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    lines, outcomes, failed = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"], {}, False
    with folder as made, LiberTEM(args.threads) if libertem else nullcontext() as peer:
        events = make_events(args.frames, args.dense_frames, Path(made))
        sizes = {
            "udfdask": events.lines,
            "made dense": len(events.open_part(PART * args.threads)),
            "dense file": events.dense_lines,
        }
        about = (
            f"Measured {time.strftime('%Y-%m-%d')} with {args.threads} threads, best of "
            f"{args.repeats}, {versions(libertem)}; {events.frames} frames of 256 x 256 uint16, "
            f"{events.entries / 1e6:.0f} million entries. Made dense: times "
            f"{events.lines / sizes['made dense']:.1f}; dense file: times "
            f"{events.lines / sizes['dense file']:.1f}."
        )
        print(about, *lines, sep="\n", flush=True)
        for case in cases:
            turns = contestants(case, events, args.threads, peer)
            seconds, found = take_turns(turns, args.repeats)
            for name in seconds:
                seconds[name] *= events.lines / lines_of(name, sizes)
            for name in ("LiberTEM", "dense file, LiberTEM"):
                theirs = [seconds.pop(f"{name} {e}") for e in EXECUTORS if libertem]
                seconds |= {name: min(theirs)} if theirs else {}
            wrong = differences(found, sizes)
            failed |= bool(wrong)
            outcomes[case] = seconds
            lines.append(row(case, seconds, events.entries, wrong))
            print(lines[-1], flush=True)
    table = goals_table(outcomes)
    print(table)
    if args.write:
        before, rest = args.write.read_text().split(START)
        text = "\n".join([about, "", *lines, "", table])
        after = rest.split(STOP)[1]
        args.write.write_text(f"{before}{START}\n{text}\n{STOP}{after}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
