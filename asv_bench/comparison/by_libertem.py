"""The work as LiberTEM does it, on three of its executors."""

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

from comparison.material import dense_masks, extremes_udf, planes, power, ring_masks

INSTALLED = importlib.util.find_spec("libertem") is not None

EXECUTORS = ("threads", "dask", "lazy")
"""What the executors are called here; LiberTEM's name of the lazy one is "delayed"."""

PARTS = {
    "sum": {"sum": "intensity"},
    "sumsig": {"sumsig": "intensity"},
    "stddev": {"var": "var"},
    "com": {"raw_com": "raw_com"},
    "masks": {"masks": "intensity"},
    "rings": {"rings": "intensity"},
    "extremes": {"peak": "peak", "highest": "highest"},
}
"""For each part of the work: the names of the results here, and of their buffers."""

FIVE = ("sum", "sumsig", "stddev", "com", "masks")

Found = dict[str, Any]


def make(part: str, sig: tuple[int, ...]) -> Any:
    """Return the UDF of a part of the work."""
    from libertem.udf import UDF
    from libertem.udf.com import CoMUDF
    from libertem.udf.masks import ApplyMasksUDF
    from libertem.udf.stddev import StdDevUDF
    from libertem.udf.sum import SumUDF
    from libertem.udf.sumsigudf import SumSigUDF

    if part == "masks":
        return ApplyMasksUDF(mask_factories=partial(dense_masks, sig))
    if part == "rings":
        return ApplyMasksUDF(mask_factories=partial(ring_masks, sig), use_sparse="scipy.sparse")
    if part == "extremes":
        return extremes_udf(UDF)()
    return {"sum": SumUDF, "sumsig": SumSigUDF, "stddev": StdDevUDF, "com": CoMUDF}[part]()


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
    "corrected": [corrected],
    "patched": [patched],
    "spectra": [spectra],
}
"""For each kind of work what is computed one after another."""


class LiberTEM:
    """LiberTEM with so many workers; executors start when they are first needed, and stay."""

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
            warnings.simplefilter("ignore")  # its own, about np.divide(where=) for one
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
        return {name: np.asarray(value) for name, value in found.items()}
