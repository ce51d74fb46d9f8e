"""What is compared: which work, on which data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Case:
    """A piece of work on a data set."""

    name: str
    """What `--cases` takes."""
    title: str
    """What the table says."""
    work: str
    """Key of `WORK` in the modules of the libraries."""
    layout: str = "scan"
    """Name of the data set."""
    share: float = 1
    """Share of the gigabytes asked for, where the work is slow in all libraries."""
    own: bool = False
    """Whether it is a function of the user, which may hold the GIL: dask and udfdask also run it in
    processes."""
    zarr: bool = False
    """Whether the data are read from a compressed zarr store."""
    apart: str | None = None
    """Key of `WORK`: the same by udfdask in several runs, in turns with the others."""
    bare: str | None = None
    """Key of `BARE`: the same without a library."""


CASES = [
    Case(name="sum", title="sum over the frames", work="sum"),
    Case(name="sumsig", title="sum over the pixels", work="sumsig"),
    Case(name="stddev", title="variance over the frames", work="stddev"),
    Case(name="com", title="center of mass", work="com"),
    Case(name="masks", title="16 dense float32 masks", work="masks", bare="masks"),
    Case(name="rings", title="500 sparse ring masks", work="rings", share=1 / 4),
    Case(name="five", title="all five in one pass", work="five", apart="five-apart"),
    Case(
        name="five-zarr",
        title="all five in one pass, compressed zarr",
        work="five",
        apart="five-apart",
        zarr=True,
    ),
    Case(name="corrected", title="dark and gain, sum", work="corrected"),
    Case(name="patched", title="dark, gain, 24 broken pixels; sum", work="patched"),
    Case(name="sum-f4", title="sum over the frames", work="sum", layout="float32"),
    Case(name="sumsig-f4", title="sum over the pixels", work="sumsig", layout="float32"),
    Case(name="sum-u1", title="sum over the frames", work="sum", layout="uint8"),
    Case(name="sumsig-u1", title="sum over the pixels", work="sumsig", layout="uint8"),
    Case(name="sum-be", title="sum over the frames", work="sum", layout="big-endian"),
    Case(name="sumsig-be", title="sum over the pixels", work="sumsig", layout="big-endian"),
    Case(name="extremes", title="the same NumPy `process_tile`: maxima", work="extremes", own=True),
    Case(name="spectra", title="an FFT for each frame", work="spectra", share=1 / 8, own=True),
]
"""In the order of the table."""
