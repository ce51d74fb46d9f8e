"""The work, done by LiberTEM with three of its executors."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import dask
import dask.array as da
import numpy as np

from comparison.material import (
    MASK_COUNTS,
    dense_masks,
    detector_mask,
    extremes_udf,
    planes,
    power,
    profile_masks,
    ring_masks,
)

INSTALLED = importlib.util.find_spec("libertem") is not None

EXECUTORS = ("threads", "dask", "lazy")
"""Our names of the executors; LiberTEM calls the lazy one "delayed"."""

PARTS = {
    "sum": {"sum": "intensity"},
    "sumsig": {"sumsig": "intensity"},
    "stddev": {"var": "var"},
    "com": {"raw_com": "raw_com"},
    "masks": {"masks": "intensity"},
    "rings": {"rings": "intensity"},
    "profile": {"profile": "intensity"},
    "detector": {"detector": "intensity"},
    "logsum": {"logsum": "logsum"},
    **{f"masks-{n}": {"masks": "intensity"} for n in MASK_COUNTS},
    "extremes": {"peak": "peak", "highest": "highest"},
}
"""For each part of the work: the names of the results here, and of their buffers."""

FIVE = ("sum", "sumsig", "stddev", "com", "masks")
FOUR = FIVE[:4]

SPARSE_MASKS = {"rings": ring_masks, "profile": profile_masks}

Found = dict[str, Any]


def make(part: str, sig: tuple[int, ...]) -> Any:
    """Return the UDF of a part of the work."""
    from libertem.udf import UDF
    from libertem.udf.com import CoMUDF
    from libertem.udf.logsum import LogsumUDF
    from libertem.udf.masks import ApplyMasksUDF
    from libertem.udf.stddev import StdDevUDF
    from libertem.udf.sum import SumUDF
    from libertem.udf.sumsigudf import SumSigUDF

    if part == "masks":
        return ApplyMasksUDF(mask_factories=partial(dense_masks, sig))
    if part.startswith("masks-"):
        count = int(part.removeprefix("masks-"))
        return ApplyMasksUDF(mask_factories=partial(dense_masks, sig, count))
    if part in SPARSE_MASKS:
        make_masks = partial(SPARSE_MASKS[part], sig)
        return ApplyMasksUDF(mask_factories=make_masks, use_sparse="scipy.sparse")
    if part == "detector":
        return ApplyMasksUDF(mask_factories=partial(detector_mask, sig))
    if part == "extremes":
        return extremes_udf(UDF)()
    plain = {"sum": SumUDF, "sumsig": SumSigUDF, "stddev": StdDevUDF, "com": CoMUDF}
    return {**plain, "logsum": LogsumUDF}[part]()


def run(ctx: Any, dataset: Any, *parts: str, **options: Any) -> Found:
    """Return the results of parts of the work in one pass."""
    made = [make(part, tuple(dataset.shape.sig)) for part in parts]
    results = ctx.run_udf(dataset=dataset, udf=made, **options)
    return {
        name: result[buffer]
        for part, result in zip(parts, results, strict=True)
        for name, buffer in PARTS[part].items()
    }


def corrected(ctx: Any, dataset: Any) -> Found:
    from libertem.corrections import CorrectionSet

    dark, gain, _ = planes(tuple(dataset.shape.sig))
    return run(ctx, dataset, "sum", corrections=CorrectionSet(dark=dark, gain=gain))


def patched(ctx: Any, dataset: Any) -> Found:
    import sparse
    from libertem.corrections import CorrectionSet

    sig = tuple(dataset.shape.sig)
    dark, gain, broken = planes(sig)
    excluded = sparse.COO(broken, np.ones(broken.shape[1], dtype=bool), shape=sig)
    corrections = CorrectionSet(dark=dark, gain=gain, excluded_pixels=excluded)
    return run(ctx, dataset, "sum", corrections=corrections)


def spectra(ctx: Any, dataset: Any) -> Found:
    return {"power": ctx.map(dataset=dataset, f=power)}


WORK: dict[str, list[Callable[[Any, Any], Found]]] = {
    **{part: [lambda ctx, ds, part=part: run(ctx, ds, part)] for part in PARTS},
    "five": [lambda ctx, ds: run(ctx, ds, *FIVE)],
    "five-apart": [lambda ctx, ds, part=part: run(ctx, ds, part) for part in FIVE],
    "four": [lambda ctx, ds: run(ctx, ds, *FOUR)],
    "four-apart": [lambda ctx, ds, part=part: run(ctx, ds, part) for part in FOUR],
    "corrected": [corrected],
    "patched": [patched],
    "spectra": [spectra],
}
"""For each kind of work, the functions that are called one after another."""


class LiberTEM:
    """LiberTEM with a number of workers. An executor starts on its first use and keeps running."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._contexts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for context in self._contexts.values():
            context.close()
        self._contexts = {}

    def context(self, executor: str) -> Any:
        """Return the context of an executor."""
        from libertem.api import Context

        if executor not in self._contexts:
            how = {
                "threads": {"executor_spec": "threads", "cpus": self._threads},
                "dask": {"executor_spec": "dask", "cpus": self._threads, "gpus": 0},
                "lazy": {"executor_spec": "delayed"},
            }
            self._contexts[executor] = Context.make_with(**how[executor])
        return self._contexts[executor]

    def compute(self, work: str, data: Path | da.Array, executor: str) -> dict[str, np.ndarray]:
        """Return the results of a kind of work over an .npy file, or over a dask array."""
        ctx = self.context(executor)
        found = {}
        with (
            warnings.catch_warnings(),
            dask.config.set(scheduler="threads", num_workers=self._threads),
        ):
            warnings.simplefilter("ignore")  # such as those of LiberTEM on np.divide(where=)
            if isinstance(data, Path):
                dataset = ctx.load("npy", path=str(data))
            else:
                dataset = ctx.load("dask", data, sig_dims=2)
            for one in WORK[work]:
                buffers = one(ctx, dataset)
                if executor == "lazy":
                    lazy = {name: buffer.delayed_data for name, buffer in buffers.items()}
                    found.update(dask.compute(lazy)[0])
                else:
                    found.update({name: buffer.data for name, buffer in buffers.items()})
        found = {name: np.asarray(value) for name, value in found.items()}
        if "detector" in found:  # a single mask has an axis of masks too
            found["detector"] = found["detector"][..., 0]
        return found
