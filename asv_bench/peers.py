"""Compare udfdask with plain dask expressions, LiberTEM, and a bare read of the same file.

    python asv_bench/peers.py [--gigabytes 2] [--cases sum,com] [--repeats 5] [--no-libertem]

prints its tables, and with ``--write PAGE`` replaces the marked part of that page of the
documentation. All contestants read the same file from the page cache, with as many threads or
processes, whichever is faster, and take turns; each turn opens the file, builds what is to be
computed, and computes it. Results are compared. It ends with status 1 if somebody fails or results
differ. LiberTEM is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import dask
import llvmlite.binding
import numba
from distributed import Client, LocalCluster

from benchmarks.layouts import LAYOUTS, make_file
from comparison import by_libertem
from comparison.by_libertem import LiberTEM
from comparison.cases import CASES, Case
from comparison.contest import Outcome, run_case
from comparison.first_call import first_call
from comparison.goals import goals_table
from comparison.pages import replace_part
from udfdask.kernels.numba_internals.vector_sums import VECTOR_BYTES

HEAD = (
    "| work | data | bare read | dask | LiberTEM | udfdask | of the read | dask / udfdask "
    "| LiberTEM / udfdask | bare / udfdask | apart / udfdask | results |"
)

FIRST_CALL = "first-call"
"""The case that needs processes of its own."""


def row(outcome: Outcome) -> str:
    """Return the line of a case: GB/s of everyone, then ratios of times."""

    def speed(name: str) -> str:
        if name not in outcome.seconds:
            return outcome.said.get(name, "")
        executor = outcome.executors.get(name, "threads")
        return f"{outcome.nbytes / 1e9 / outcome.seconds[name]:.2f}" + (
            f" ({executor})" if executor != "threads" else ""
        )

    def ratio(name: str) -> str:
        if not {name, "udfdask"} <= set(outcome.seconds):
            return ""
        return f"{outcome.seconds[name] / outcome.seconds['udfdask']:.2f}"

    data = f"{'x'.join(map(str, outcome.shape))} {outcome.dtype}"
    results = "; ".join(f"DIFFERENT: {d}" for d in outcome.differences) or "agree"
    cells = [
        outcome.case.title,
        data,
        speed("read"),
        speed("dask"),
        speed("LiberTEM"),
        speed("udfdask"),
    ]
    cells += [ratio("read"), ratio("dask"), ratio("LiberTEM")]
    cells += [ratio("bare"), ratio("apart"), results]
    return f"| {' | '.join(cells)} |"


def first_calls(
    path: Path, threads: int, repeats: int, libertem: bool
) -> tuple[str, dict[str, float]]:
    """Return the table of first calls in fresh processes, and the seconds that udfdask took."""
    ours: dict[str, float] = {}
    lines = [
        "| a fresh process | library | whole | imports | first call |",
        "|---|---|---|---|---|",
    ]
    for udf, work in [("SumUDF", "sum"), ("StdDevUDF", "stddev")]:
        for library in ["dask", "udfdask", *(["LiberTEM"] if libertem else [])]:
            try:
                times = first_call(library, udf, path, threads, repeats)
            except subprocess.CalledProcessError as error:
                raise RuntimeError(error.stderr) from error
            if library == "udfdask":
                ours[work] = times[0]
            cells = [f"{t:.2f} s" for t in times]
            lines.append(f"| {work} | {library} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines), ours


def versions(libertem: bool) -> str:
    """Return the processor, its vectors as numba uses them, and the versions of what takes part."""
    name = numba.core.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    processor = f"a processor of type {name} with vectors of {8 * VECTOR_BYTES} bits"
    packages = {"dask": "dask", "numpy": "NumPy", "numba": "numba"}
    if libertem:
        packages["libertem"] = "LiberTEM"
    found = [f"{title} {importlib.metadata.version(name)}" for name, title in packages.items()]
    return ", ".join([processor, f"Python {platform.python_version()}", *found])


def chosen_cases(names: str | None) -> tuple[list[Case], bool]:
    """Return the cases that `--cases` names, and whether first calls are among them."""
    if names is None:
        return CASES, True
    known = {case.name: case for case in CASES}
    wanted = names.split(",")
    unknown = [name for name in wanted if name not in known and name != FIRST_CALL]
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}, {FIRST_CALL}")
    return [known[name] for name in wanted if name in known], FIRST_CALL in wanted


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2, help="size of the data (2**30 bytes)")
    parser.add_argument("--cases", help="names with commas between them; all by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=dask.system.CPU_COUNT)
    parser.add_argument("--no-libertem", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the data stay; else a temporary folder")
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args = parser.parse_args(arguments)
    cases, first = chosen_cases(args.cases)
    libertem = by_libertem.INSTALLED and not args.no_libertem
    how = {"gigabytes": args.gigabytes, "threads": args.threads, "repeats": args.repeats}
    about = f"with {args.threads} threads, best of {args.repeats}, {versions(libertem)}"
    texts = [f"Measured {time.strftime('%Y-%m-%d')} {about}; GB/s of input, and ratios of times.\n"]
    failed = False
    outcomes: dict[str, Outcome] = {}
    ours: dict[str, float] = {}
    folder = nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    with (
        folder as made,
        LiberTEM(args.threads) if libertem else nullcontext() as peer,
        LocalCluster(args.threads, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as processes,
    ):
        if cases:
            lines = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
            print("\n".join(lines), flush=True)
            for case in cases:
                outcome = run_case(case, folder=Path(made), peer=peer, processes=processes, **how)
                failed |= outcome.failed
                outcomes[case.name] = outcome
                lines.append(row(outcome))
                print(lines[-1], flush=True)
            texts.append("\n".join(lines) + "\n")
        if first:
            path = make_file(LAYOUTS["scan"], min(0.1, args.gigabytes), Path(made))
            table, ours = first_calls(path, args.threads, args.repeats, libertem)
            texts.append(f"{table}\n")
    texts.append(goals_table(outcomes, ours))
    print(texts[-1])
    if args.write:
        replace_part(args.write, "peers", "\n".join(texts).rstrip())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
