"""Compare the analyses of udfdask with those of other packages, on the same simulated data.

    python asv_bench/analyses.py --environment FOLDER [--works dpc,disks] [--repeats 3]

The packages need versions of NumPy and zarr that exclude each other: each group gets a virtual
environment in the folder, made by pip the first time, which also keeps the data. Each contestant
works in a process of its own with as many threads, takes the file to its result in each turn, and
waits while others have theirs. ``--write PAGE`` replaces the marked part of a page.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
import venv
from pathlib import Path

import dask

from comparison.analyses import data, judge
from comparison.analyses.contest import Contestant, Turns, take_turns
from comparison.options import chosen

START, STOP = "<!-- analyses: start -->", "<!-- analyses: stop -->"

ENVIRONMENTS = {
    "one": (
        "libertem==0.16.0",
        "libertem-blobfinder==0.6.1",
        "libertem-parallax==0.1.2",
        "ptychography40==0.1.0",
        "py4DSTEM==0.14.18",
    ),
    "two": ("quantem==0.1.10",),
    "three": ("pyxem==0.21.0",),
}

OTHERS = {
    "py4DSTEM": ("by_py4dstem", "one"),
    "quantem": ("by_quantem", "two"),
    "pyxem": ("by_pyxem", "three"),
    "ptychography40": ("by_ptychography40", "one"),
    "LiberTEM-parallax": ("by_libertem", "one"),
    "LiberTEM-blobfinder": ("by_libertem", "one"),
}
"""For each package: the file that calls it, and its environment."""

WORKS = {
    "dpc": ("integrated DPC", ("py4DSTEM", "pyxem"), 1.0),
    "side band": ("single side band", ("ptychography40", "quantem"), 1.5),
    "parallax": ("parallax, defocus measured", ("py4DSTEM", "quantem"), 1.0),
    "tilt-corrected": ("parallax, defocus known", ("LiberTEM-parallax", "quantem"), 1.0),
    "disks": ("all disks", ("py4DSTEM", "quantem", "pyxem"), 2.0),
    "expected disks": ("disks near positions", ("LiberTEM-blobfinder",), 2.0),
    "strain": ("from disks to strain", ("py4DSTEM", "quantem", "pyxem"), 1.0),
}
"""For each work: its title, the packages that do it, and how much faster udfdask should be."""

HEAD = (
    "| analysis | package | seconds | time / udfdask | peak, MB | error | compared with udfdask |"
)


def interpreter(folder: Path, name: str) -> Path:
    """Return the interpreter of an environment; make it if it is not there."""
    home = folder.resolve() / name
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *ENVIRONMENTS[name]], check=True)
        (home / "complete").touch()
    return python


def rows(work: str, turns: dict[str, Turns]) -> list[str]:
    """Return a line for each contestant."""
    lines, ours = [], turns["udfdask"]
    for title, outcome in turns.items():
        cells = [WORKS[work][0], title]
        if outcome.found is None:
            cells += ["failed"] + [""] * 4
        else:
            ratio = "" if outcome is ours else f"{outcome.seconds / ours.seconds:.1f}"
            same = "" if outcome is ours else judge.agreement(work, outcome.found, ours.found)
            error = judge.ERRORS[work](outcome.found)
            cells += [f"{outcome.seconds:.3f}", ratio, f"{outcome.peak:.0f}", error, same]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def goal(work: str, turns: dict[str, Turns]) -> str:
    """Return the line of the goal: the best of the others, compared with udfdask."""
    title, others, least = WORKS[work]
    ratio = min(turns[other].seconds for other in others) / turns["udfdask"].seconds
    reached = "reached" if ratio >= least else "**missed**"
    return f"| {title} | {least:.1f} | {ratio:.1f} | {reached} |"


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; return 1 if somebody failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", type=Path, required=True, help="folder that is kept")
    parser.add_argument("--works", help="names with commas between them; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=dask.system.CPU_COUNT)
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args = parser.parse_args(arguments)
    works = chosen(args.works, WORKS, "work")
    folder = args.environment.resolve() / "data"
    data.make(folder)
    about = f"with {args.threads} threads, best of {args.repeats}"
    date = f"Measured {time.strftime('%Y-%m-%d')} {about}, Python {platform.python_version()}."
    table, goals = [HEAD, "|---" * 7 + "|"], ["| analysis | at least | found | |", "|---" * 4 + "|"]
    failed = False
    for work in works:
        own = Contestant(title="udfdask", module="by_udfdask", python=Path(sys.executable))
        everyone = [own]
        for other in WORKS[work][1]:
            module, environment = OTHERS[other]
            python = interpreter(args.environment, environment)
            everyone.append(Contestant(title=other, module=module, python=python))
        how = {"threads": args.threads, "repeats": args.repeats}
        turns = take_turns(work, everyone, folder, **how)
        failed |= any(one.found is None for one in turns.values())
        table += rows(work, turns)
        goals.append(goal(work, turns))
        print("\n".join([*table[-len(turns) :], goals[-1]]), flush=True)
    if args.write:
        text = "\n".join([date, "", *table, "", *goals])
        before, rest = args.write.read_text().split(START)
        args.write.write_text(f"{before}{START}\n{text}\n{STOP}{rest.split(STOP)[1]}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
