"""Compare `map_frames` with how HyperSpy and xarray map a function over frames.

    python asv_bench/doors.py [--megabytes 256] [--repeats 3]

prints a table, and with ``--write PAGE`` replaces the marked part of that page of the
documentation. All map the same functions over the same data with as many threads, take turns, and
what they find is compared. It ends with status 1 if results differ.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import hyperspy.api as hs
import numpy as np
import xarray as xr

import udfdask.hyperspy
import udfdask.xarray  # noqa: F401  # a door opens when it is imported

START, STOP = "<!-- doors: start -->", "<!-- doors: stop -->"
HEAD = "| data | function | compared with | theirs | udfdask | theirs / udfdask | results |"


def maximum(frame: Any) -> Any:
    """Cheap: what counts is the way to each frame."""
    return frame.max()


def deviation(frame: Any) -> Any:
    """Some NumPy calls a frame."""
    return frame.std()


def spectrum(frame: Any) -> Any:
    """What counts is the function itself."""
    return np.abs(np.fft.rfftn(frame)).sum(dtype=frame.dtype)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A data set."""

    title: str
    sig: tuple[int, ...]
    """Shape of a frame."""


LAYOUTS = [
    Layout(title="images of 128x128", sig=(128, 128)),
    Layout(title="spectra of 1024", sig=(1024,)),
]
FUNCTIONS = {"maximum": maximum, "standard deviation": deviation, "Fourier transform": spectrum}


def make_data(layout: Layout, megabytes: float) -> np.ndarray:
    """Return float32 data, shape (side, side, *sig): no contestant has to convert them."""
    side = max(2, math.isqrt(int(megabytes * 2**20 / 4 / math.prod(layout.sig))))
    return np.random.default_rng(1).random((side, side, *layout.sig), dtype=np.float32)


def contestants(data: np.ndarray, sig_dims: int, func: Any) -> dict[str, dict[str, Callable]]:
    """Return who maps the function, for each door: `theirs` and `udfdask`, as NumPy arrays."""
    # as many bytes to a chunk as fit eight times, in rows: one piece of memory each
    array = da.from_array(data, chunks=(max(1, len(data) // 8), *data.shape[1:]))
    told = {"output_shape": (), "output_dtype": data.dtype}
    quiet = {"show_progressbar": False}
    memory = hs.signals.BaseSignal(data).transpose(signal_axes=sig_dims)
    lazy = hs.signals.BaseSignal(array).transpose(signal_axes=sig_dims).as_lazy()
    dims = [f"nav{k}" for k in range(2)] + [f"sig{k}" for k in range(sig_dims)]
    labeled = xr.DataArray(array, dims=dims)

    def by_hyperspy(signal: Any) -> Any:
        given = {"output_signal_size": (), "output_dtype": data.dtype}
        return signal.map(func, inplace=False, lazy_output=False, **quiet, **given).data

    def by_door(signal: Any) -> Any:
        return signal.udf.map_frames(func, lazy_output=False, **quiet, **told).data

    def by_xarray() -> Any:
        mapped = xr.apply_ufunc(
            func,
            labeled,
            input_core_dims=[dims[2:]],
            vectorize=True,
            dask="parallelized",
            output_dtypes=[data.dtype],
        )
        return mapped.to_numpy()

    def by_udfdask() -> Any:
        return labeled.udf.map_frames(func, dims[2:], **told).to_numpy()

    return {
        "`s.map`, lazy": {"theirs": lambda: by_hyperspy(lazy), "udfdask": lambda: by_door(lazy)},
        "`s.map`, in memory": {
            "theirs": lambda: by_hyperspy(memory),
            "udfdask": lambda: by_door(memory),
        },
        "`xr.apply_ufunc`": {"theirs": by_xarray, "udfdask": by_udfdask},
    }


def measure(pair: dict[str, Callable], repeats: int) -> tuple[dict[str, float], bool]:
    """Return the best time of each, in seconds, and whether they find the same; they take turns."""
    found = {name: function() for name, function in pair.items()}  # and compiles what there is
    times: dict[str, list[float]] = {name: [] for name in pair}
    for _ in range(repeats):
        for name, function in pair.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    agree = np.allclose(found["theirs"], found["udfdask"], rtol=1e-5)
    return {name: min(values) for name, values in times.items()}, bool(agree)


def table(megabytes: float, repeats: int) -> tuple[str, bool]:
    """Return the table, and whether all results agree."""
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
    print("\n".join(lines), flush=True)
    all_agree = True
    for layout in LAYOUTS:
        data = make_data(layout, megabytes)
        frames = f"{data.shape[0] * data.shape[1]} {layout.title}"
        for title, func in FUNCTIONS.items():
            for door, pair in contestants(data, len(layout.sig), func).items():
                times, agree = measure(pair, repeats)
                all_agree &= agree
                ratio = times["theirs"] / times["udfdask"]
                cells = [frames, title, door, f"{times['theirs']:.3f} s"]
                cells += [f"{times['udfdask']:.3f} s", f"{ratio:.2f}"]
                cells.append("agree" if agree else "DIFFERENT")
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    return "\n".join(lines), all_agree


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--megabytes", type=float, default=256, help="size of the data (2**20 bytes)"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=dask.system.CPU_COUNT)
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args = parser.parse_args(arguments)
    packages = {"dask": "dask", "numpy": "NumPy", "hyperspy": "HyperSpy", "xarray": "xarray"}
    versions = [f"{title} {importlib.metadata.version(name)}" for name, title in packages.items()]
    about = ", ".join([f"Python {platform.python_version()}", *versions])
    with dask.config.set(scheduler="threads", num_workers=args.threads):
        text, agree = table(args.megabytes, args.repeats)
    date = time.strftime("%Y-%m-%d")
    head = f"Measured {date} with {args.threads} threads, best of {args.repeats}, {about}."
    if args.write:
        before, rest = args.write.read_text().split(START)
        after = rest.split(STOP)[1]
        args.write.write_text(f"{before}{START}\n{head}\n\n{text}\n{STOP}{after}")
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
