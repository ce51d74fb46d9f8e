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
    zarr: bool = False
    """Whether the data are read from a compressed zarr store."""


CASES = [
    Case(name="sum", title="sum over the frames", work="sum"),
    Case(name="sumsig", title="sum over the pixels", work="sumsig"),
    Case(name="stddev", title="variance over the frames", work="stddev"),
    Case(name="com", title="centre of mass", work="com"),
    Case(name="masks", title="16 dense float32 masks", work="masks"),
    Case(name="rings", title="500 sparse ring masks", work="rings", share=1 / 4),
    Case(name="five-in-one", title="the first five in one pass", work="five-in-one"),
    Case(name="five-apart", title="the first five one by one", work="five-apart"),
    Case(name="zarr", title="both sums, compressed zarr", work="both", share=1 / 2, zarr=True),
    Case(name="corrected", title="dark, gain, 24 broken pixels; sum", work="corrected"),
    Case(name="float32", title="both sums, float32", work="both", layout="float32"),
    Case(name="uint8", title="both sums, uint8", work="both", layout="uint8"),
    Case(name="big-endian", title="both sums, big-endian uint16", work="both", layout="big-endian"),
    Case(name="extremes", title="the same NumPy `process_tile`: maxima", work="extremes"),
    Case(name="spectra", title="an FFT for each frame", work="spectra", share=1 / 8),
]
"""In the order of the table."""
