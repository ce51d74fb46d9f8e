"""Peak memory of each analysis over a recording that is larger than the memory.

Run ``python asv_bench/analyses_memory.py [--gigabytes 32] [--only find_disks,strain_map]``. Each
analysis runs in a process of its own with two threads. The script prints a table, and with
``--write PAGE`` replaces the marked part of that page of the documentation.

Frames have 256 x 256 pixels, uint16. They are generated while they are read: 64 simulated frames,
copied to each line of the scan in another order. A chunk is a line of 512 positions, 64 MiB.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import udfdask as ud
from memory import peak_bytes
from peers import versions
from udfdask import analyses
from udfdask.demo import PhaseObject, make_recording
from udfdask.masks import DiskTemplate
from udfdask.udfs import SumUDF

START, STOP = "<!-- analyses: start -->", "<!-- analyses: stop -->"

SIDE, LINE, FRAMES, THREADS = 256, 512, 64, 2
LIMIT = "2 GB"

THIN = PhaseObject(
    nav_shape=(1, FRAMES), sig_shape=(SIDE, SIDE), pixel=0.5, step=0.05, defocus=20, dose=1e5
)
"""A bright field with a radius of 40 pixels."""

TEMPLATE = DiskTemplate(radius=16, radius_outer=22)
"""The disks of the crystal."""


@functools.cache
def simulated(kind: str) -> np.ndarray:
    """Return the frames that are repeated, shape (FRAMES, SIDE, SIDE)."""
    if kind == "thin":
        return THIN.array[0].compute(scheduler="synchronous")
    crystal = make_recording((1, FRAMES), (SIDE, SIDE), chunks=(1, 8, -1, -1))
    return crystal[0].compute(scheduler="synchronous")


def line(kind: str, block_info: Any = None) -> np.ndarray:
    """Return the frames of a line of the scan; the object is shifted from line to line."""
    shift = block_info[None]["array-location"][0][0]
    return simulated(kind)[(np.arange(LINE) + shift) % FRAMES][None]


def recording(kind: str, gigabytes: float) -> da.Array:
    """Return a lazy recording of about so many gigabytes (10**9 bytes)."""
    lines = max(16, round(gigabytes * 1e9 / (LINE * SIDE * SIDE * 2)))
    chunks = ((1,) * lines, (LINE,), (SIDE,), (SIDE,))
    return da.map_blocks(line, kind, chunks=chunks, meta=np.empty((0,) * 4, np.uint16))


ABOUT: dict[str, Any] = {"axes": THIN.axes, "voltage": THIN.voltage, "max_memory": LIMIT}


def run(frames: da.Array, udf: ud.UDF) -> tuple[Any, list[tuple[Any, ud.UDF]]]:
    """Return the lazy result of a UDF, and what it ran over."""
    return ud.run_udf(frames, udf, **ABOUT), [(frames, udf)]


def disks_of(frames: da.Array) -> tuple[Any, list[tuple[Any, ud.UDF]]]:
    """Return all disks of the crystal."""
    disks = analyses.find_disks(frames, TEMPLATE, max_memory=LIMIT)
    return disks, [(frames, analyses.FindDisksUDF(TEMPLATE))]


def lattices_of(frames: da.Array) -> tuple[Any, list[tuple[Any, ud.UDF]]]:
    """Return the lattice of each frame."""
    disks, stages = disks_of(frames)
    fit = analyses.fit_lattice(disks, max_memory=LIMIT)
    return fit, [*stages, (disks["positions"], analyses.FitLatticeUDF(np.eye(3, 2, -1)))]


def strain_of(frames: da.Array) -> tuple[Any, list[tuple[Any, ud.UDF]]]:
    """Return the strain of the crystal."""
    lattices, stages = lattices_of(frames)
    return analyses.strain_map(lattices, max_memory=LIMIT), stages


def ellipse_of(frames: da.Array) -> tuple[Any, list[tuple[Any, ud.UDF]]]:
    """Return the edge of the bright field in the sum of all frames."""
    result, stages = run(frames, SumUDF())
    fit = dask.delayed(analyses.fit_ellipse)(result["intensity"], r_range=(30, 50))
    return fit, stages


ANALYSES: dict[str, tuple[str, Callable[[da.Array], Any]]] = {
    "integrated_dpc": ("thin", lambda x: run(x, analyses.IntegratedDPCUDF())),
    "ScanRotationUDF": ("thin", lambda x: run(x, analyses.ScanRotationUDF())),
    "parallax": ("thin", lambda x: run(x, analyses.ParallaxUDF("20 mrad", bin=4))),
    "TiltCorrectedUDF": (
        "thin",
        lambda x: run(x, analyses.TiltCorrectedUDF("20 mrad", defocus=20)),
    ),
    "single_side_band": ("thin", lambda x: run(x, analyses.SideBandUDF("20 mrad", bin=4))),
    "find_disks": ("crystal", disks_of),
    "fit_lattice": ("crystal", lattices_of),
    "strain_map": ("crystal", strain_of),
    "PolarMeanUDF": ("thin", lambda x: run(x, analyses.PolarMeanUDF())),
    "fit_ellipse": ("thin", ellipse_of),
    "RadialVarianceUDF": ("thin", lambda x: run(x, analyses.RadialVarianceUDF())),
}
"""Kinds of data, and functions that return a lazy result and what it runs over."""


def measure(name: str, gigabytes: float) -> dict[str, float]:
    """Run one analysis in this process."""
    kind, build = ANALYSES[name]
    simulated(kind)
    frames = recording(kind, gigabytes)
    with dask.config.set(scheduler="threads", num_workers=THREADS):
        lazy, stages = build(frames)
        calibration = {name: ABOUT[name] for name in ("axes", "voltage")}
        predicted = 0
        for data, udf in stages:
            about = calibration if data is frames else {}
            plan = ud.explain(data, udf, sig_dims=2, **about)
            predicted += plan.memory.total(THREADS)
        before, start = peak_bytes(), time.perf_counter()
        dask.compute(lazy)
        seconds = time.perf_counter() - start
    return {
        "gigabytes": frames.nbytes / 1e9,
        "seconds": seconds,
        "before": before / 1e6,
        "peak": peak_bytes() / 1e6,
        "predicted": predicted / 1e6,
    }


def row_of(name: str, gigabytes: float) -> str:
    """Run one analysis in a fresh process, and return its row of the table."""
    command = [sys.executable, __file__, "--here", name, "--gigabytes", str(gigabytes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    m = json.loads(done.stdout.splitlines()[-1])
    return (
        f"| `{name}` | {m['gigabytes']:.1f} | {m['seconds']:.0f} s | {m['before']:.0f} MB "
        f"| {m['peak']:.0f} MB | {m['predicted']:.0f} MB |"
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=32)
    parser.add_argument("--only", help="names of analyses, with commas between them")
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    parser.add_argument("--here", choices=ANALYSES, help="run one analysis in this process")
    args = parser.parse_args(arguments)
    if args.here:
        print(json.dumps(measure(args.here, args.gigabytes)))
        return
    lines = [
        "| analysis | GB of data | time | peak before the run | peak | predicted |",
        "|---" * 6 + "|",
    ]
    print("\n".join(lines), flush=True)
    for name in args.only.split(",") if args.only else ANALYSES:
        lines.append(row_of(name, args.gigabytes))
        print(lines[-1], flush=True)
    if args.write:
        about = f"Measured {time.strftime('%Y-%m-%d')} with {THREADS} threads"
        text = "\n".join([f"{about}, {versions(libertem=False)}.", "", *lines])
        before, rest = args.write.read_text().split(START)
        args.write.write_text(f"{before}{START}\n{text}\n{STOP}{rest.split(STOP)[1]}")


if __name__ == "__main__":
    main()
