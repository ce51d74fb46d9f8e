"""The work, done by udfdask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da

import udfdask as ud
from comparison.material import (
    MASK_COUNTS,
    dense_masks,
    extremes_udf,
    planes,
    power,
    profile_bins,
    ring_masks,
)
from udfdask import udfs
from udfdask.corrections import CorrectionSet

Lazy = dict[str, Any]

PARTS = {
    "sum": ("SumUDF", "sum", "intensity"),
    "sumsig": ("SumSigUDF", "sumsig", "intensity"),
    "stddev": ("StdDevUDF", "var", "var"),
    "com": ("CoMUDF", "raw_com", "raw_com"),
    "masks": ("ApplyMasksUDF", "masks", "intensity"),
    "rings": ("ApplyMasksUDF", "rings", "intensity"),
    "profile": ("RadialProfileUDF", "profile", "intensity"),
    "detector": ("VirtualDetectorUDF", "detector", "intensity"),
    "logsum": ("LogsumUDF", "logsum", "logsum"),
    **{f"masks-{n}": ("ApplyMasksUDF", "masks", "intensity") for n in MASK_COUNTS},
}
"""For each part of the work: the UDF, the name of its result here, and its buffer."""

FIVE = ("sum", "sumsig", "stddev", "com", "masks")
FOUR = FIVE[:4]


def make(part: str, sig: tuple[int, ...]) -> ud.UDF:
    """Return the UDF of a part of the work."""
    cls = getattr(udfs, PARTS[part][0])
    if part == "masks":
        return cls(mask_factories=partial(dense_masks, sig))
    if part.startswith("masks-"):
        return cls(mask_factories=partial(dense_masks, sig, int(part.removeprefix("masks-"))))
    if part == "profile":
        n = profile_bins(sig)
        return cls(r=n, n_bins=n)
    if part == "detector":
        return cls("ring", ri=0.2 * sig[0], ro=0.4 * sig[0])
    if part == "rings":
        return cls(mask_factories=partial(ring_masks, sig), use_sparse="scipy.sparse")
    return cls()


def run(x: da.Array, *parts: str, **options: Any) -> Lazy:
    """Return the results of parts of the work in one pass."""
    results = ud.run_udf(x, [make(part, x.shape[-2:]) for part in parts], **options)
    return {
        PARTS[part][1]: result[PARTS[part][2]] for part, result in zip(parts, results, strict=True)
    }


def corrected(x: da.Array) -> Lazy:
    dark, gain, _ = planes(x.shape[-2:])
    return run(x, "sum", corrections=CorrectionSet(dark=dark, gain=gain))


def patched(x: da.Array) -> Lazy:
    dark, gain, broken = planes(x.shape[-2:])
    corrections = CorrectionSet(dark=dark, gain=gain, excluded_pixels=broken)
    return run(x, "sum", corrections=corrections)


def extremes(x: da.Array) -> Lazy:
    result = ud.run_udf(x, extremes_udf(ud.UDF)())
    return {"peak": result["peak"], "highest": result["highest"]}


def spectra(x: da.Array) -> Lazy:
    return {"power": ud.map_frames(x, power)}


WORK: dict[str, list[Callable[[da.Array], Lazy]]] = {
    **{part: [lambda x, part=part: run(x, part)] for part in PARTS},
    "five": [lambda x: run(x, *FIVE)],
    "five-apart": [lambda x, part=part: run(x, part) for part in FIVE],
    "four": [lambda x: run(x, *FOUR)],
    "four-apart": [lambda x, part=part: run(x, part) for part in FOUR],
    "corrected": [corrected],
    "patched": [patched],
    "extremes": [extremes],
    "spectra": [spectra],
}
"""For each kind of work, the functions that are called one after another."""
