"""Find the common center of the frames of a file, in a sample of them."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from udfdask.cli.center_option import Center, CenterSearch
from udfdask.cli.failures import PLANNING, RUNNING, plain_errors
from udfdask.cli.region_option import Mask
from udfdask.cli.scheduler_option import connected
from udfdask.errors import ArgumentValueError, UDFWarning
from udfdask.io.opened_file import OpenedFile
from udfdask.run.run_udf import compute, run_udf
from udfdask.udfs import SumUDF, find_center

MOST_BYTES = 2**30
"""Largest number of bytes that a search reads, if a chunk is not larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCenter:
    """A center that was found in the data."""

    center: Center
    """The center, in pixels."""
    text: str
    """What was found, for the user."""


def check_frames(opened: OpenedFile) -> None:
    """Raise UsageError unless frames are images, in which a center can be found."""
    if opened.sig_dims != 2:
        raise click.UsageError(
            "--center find needs frames with two dimensions, but a frame has "
            f"{opened.sig_dims}: write --sig-dims 2 if they are images, or --center Y,X"
        )


def sampled_positions(opened: OpenedFile, region: Mask | None) -> Mask:
    """Return the positions whose frames are summed, as a mask in the shape of the scan.

    These are all positions of whole chunks, which are spread evenly, up to `MOST_BYTES`. Only
    positions of the region that have a frame count.
    """
    array, nav_dims = opened.array, opened.array.ndim - opened.sig_dims
    nav_shape = array.shape[:nav_dims]
    wanted = np.ones(nav_shape, np.bool_) if region is None else region
    if opened.present is not None:
        wanted = wanted & opened.present
    parts = [
        [slice(stop - size, stop) for stop, size in zip(itertools.accumulate(c), c, strict=True)]
        for c in array.chunks[:nav_dims]
    ]
    chunks = [place for place in itertools.product(*parts) if wanted[place].any()]
    frame = math.prod(array.shape[nav_dims:]) * array.dtype.itemsize
    sizes = [wanted[place].size * frame for place in chunks]
    n = len(chunks)
    if sum(sizes) > MOST_BYTES:  # as many as fit if all of them are as large as the largest
        n = max(MOST_BYTES // max(sizes), 1)
    sample = np.zeros(nav_shape, np.bool_)
    for k in range(n):
        place = chunks[(2 * k + 1) * len(chunks) // (2 * n)]
        sample[place] = wanted[place]
    return sample


def search_center(
    search: CenterSearch,
    opened: OpenedFile,
    sample: Mask,
    *,
    scheduler: str | None,
    progress: bool,
    **planning: Any,
) -> FoundCenter:
    """Find the center in the sum of the frames of a sample, as `find_center` does.

    `planning` are arguments of `run_udf`.
    """
    with warnings.catch_warnings(), plain_errors(RUNNING), connected(scheduler) as options:
        warnings.simplefilter("ignore", UDFWarning)  # the plan of the run has them too
        with plain_errors(PLANNING):
            summed = run_udf(opened, SumUDF(), roi=sample if sample.ndim else None, **planning)
        (result,) = compute(summed, progress=progress, **options)
    try:
        y, x = find_center(result["intensity"], method=search.method)
    except ArgumentValueError as error:
        what, _, _ = str(error).partition(";")  # the remedies are those of Python
        what = re.sub(r"^pattern\b", "the summed pattern", what)
        other = "com" if search.word == "find" else "find"
        raise click.ClickException(
            f"--center {search.word} finds no center: {what}. Try --center {other}, or write the "
            "center: --center Y,X"
        ) from error
    frames = f"{int(sample.sum())} of {sample.size} frames"
    text = f"y {y:.2f}, x {x:.2f} px{_in_units(opened, (y, x))}, found in {frames}"
    return FoundCenter(center=Center(y=repr(float(y)), x=repr(float(x))), text=text)


def _in_units(opened: OpenedFile, center: tuple[float, float]) -> str:
    """Return a center in the units of the axes, in parentheses; nothing if they have none."""
    axes = opened.axes[-2:]
    if not all(axis.is_calibrated and axis.values is None for axis in axes):
        return ""
    values = [axis.offset + axis.scale * c for axis, c in zip(axes, center, strict=True)]
    texts = [f"{axis.name} {v:.4g} {axis.unit}" for axis, v in zip(axes, values, strict=True)]
    return f" ({', '.join(texts)})"


def corners(opened: OpenedFile) -> list[Center]:
    """Return the corners of a frame: all rings that are in reach of a pixel are of one of them."""
    ny, nx = opened.array.shape[-2:]
    return [Center(y=str(y), x=str(x)) for y in (0, ny - 1) for x in (0, nx - 1)]


_ABOUT_CENTER = r"\bthe \w+ (covers only|reaches beyond) |\b(the center|cy|cx) is the middle of "
"""Found in notes about detectors that can be wrong for another center."""


def without_centers(
    lines: Iterable[str], centered: Collection[str], *, alone: bool
) -> Iterator[str]:
    """Yield the lines of a plan; those about a center that is still to be found say so.

    `centered` are the names of the UDFs that get the center. If a UDF runs `alone`, its lines do
    not have its name.
    """
    for line in lines:
        kind, _, about = line.partition(" ")
        name, _, _ = about.strip().partition(":")
        if alone or name in centered:
            if kind == "note" and re.search(_ABOUT_CENTER, about):
                continue
            if kind == "detector":
                found = r"center not found yet; around \1, it \2"
                yield re.sub(r"center (y \S+, x \S+ px), (covers .*)", found, line)
                continue
        yield line
