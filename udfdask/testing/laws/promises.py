"""Laws about promises that change results, each with the name of a field of `Promises`.

A law is only checked if the UDF makes the promise. Most laws compare a run of the UDF with only
this promise and a run without promises.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from dask.base import compute

from udfdask.corrections import CorrectionSet
from udfdask.corrections.correct_tile import precise
from udfdask.plan.make_recipe import MANY_BLOCKS
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, Layout, declare
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.laws.construction import is_cached
from udfdask.testing.mutable_state import freeze, take_snapshot
from udfdask.testing.sample_data import ragged_sig_chunks, scan_chunkings
from udfdask.testing.udf_under_test import Subject, varied
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.promises import Promises

Runs = Callable[[UDF], dict[str, AnyArray]]
"""Runs a UDF and returns its results."""


def declares_once(subject: Subject) -> None:
    """The promise `declares_once` is true: `get_result_buffers` sets no attributes."""
    cls = type(subject.udf)
    changed: list[str] = []

    def get_result_buffers(udf: Any) -> Any:
        before = _attributes(udf)
        declared = cls.get_result_buffers(udf)
        after = _attributes(udf)
        changed.extend(f"self.{name}" for name in after if before.get(name) != after[name])
        return declared

    watched = varied(subject.udf, get_result_buffers=get_result_buffers)
    declare([watched], subject.data, subject.sig_dims, ONE_CHUNK)
    changed += subject.before.changes(take_snapshot(cls))
    if changed:
        _fail(
            subject,
            "declares_once",
            f"get_result_buffers() sets {changed[0]}, and tasks do not call this method: set it "
            "in __init__ or return it from get_task_data",
        )


def _attributes(udf: UDF) -> dict[str, Any]:
    """Return the attributes of an instance without those that the engine sets."""
    engine = {"meta", "results", "task_data", "params"}
    return {
        name: freeze(value)
        for name, value in vars(udf).items()
        if name not in engine and not is_cached(type(udf), name)
    }


def merge_only_reads_src(subject: Subject) -> None:
    """The promise `merge_only_reads_src` is true: `merge` does not change `src`."""
    cls = type(subject.udf)

    def merge(udf: UDF, dest: Any, src: Any) -> None:
        before = {name: freeze(array) for name, array in src.items()}
        cls.merge(udf, dest, src)
        for name, array in src.items():
            if freeze(array) != before[name]:
                _fail(
                    subject,
                    "merge_only_reads_src",
                    f"merge writes to src.{name}: write to dest only, or to a copy",
                )

    watched = varied(subject.udf, merge=merge)
    for nav_chunks in scan_chunkings(subject.nav):
        for fan_in in (2, 8):
            layout = Layout(nav_chunks=nav_chunks, fan_in=fan_in)
            subject.results_of(subject.run(layout, udf=watched))


def processes_stacks(subject: Subject) -> None:
    """The promise `processes_stacks` is true: `process_stack` gives the same as `process_frame`."""
    few = 3 * subject.frame_bytes
    for layout in (
        ONE_CHUNK,
        Layout(tile_bytes=few),
        Layout(
            nav_chunks=subject.two_chunks, sig_chunks=ragged_sig_chunks(subject.sig), tile_bytes=few
        ),
    ):
        _compare(subject, "processes_stacks", f"with {layout}", _with_dask(subject, layout))


def processes_sums(subject: Subject) -> None:
    """The promise `processes_sums` is true: `process_sums` gives the same as `process_tile`."""
    for data in subject.arrays:
        if subject.error_with(data) is None:
            run = _with_dask(subject, Layout(nav_chunks=subject.two_chunks), data, twice=True)
            _compare(subject, "processes_sums", f"for {data.dtype}", run, data)


def takes_any_byte_order(subject: Subject) -> None:
    """The promise `takes_any_byte_order` is true: byte-swapped data give the same results."""
    for data in subject.arrays:
        swapped = data.astype(data.dtype.newbyteorder("S"))
        if swapped.dtype != data.dtype and subject.error_with(swapped) is None:
            run = _with_dask(subject, data=swapped)
            _compare(subject, "takes_any_byte_order", f"for {swapped.dtype}", run, swapped)


def adds_signal_parts(subject: Subject) -> None:
    """The promise `adds_signal_parts` is true: the sum over signal chunks is the full result."""
    sig_chunks = _many_chunks(subject.sig)
    if sig_chunks is None:
        subject.notes.append(
            f"adds_signal_parts not checked: signal shape {subject.sig} is too small"
        )
        return
    for nav_chunks in (None, *itertools.islice(scan_chunkings(subject.nav), 1)):
        run = _with_dask(subject, Layout(nav_chunks=nav_chunks, sig_chunks=sig_chunks))
        _compare(subject, "adds_signal_parts", f"with signal chunks {sig_chunks}", run)


def only_sums_frames(subject: Subject) -> None:
    """The promise `only_sums_frames` is true: corrected sums are sums of corrected frames."""
    number = np.arange(math.prod(subject.sig)).reshape(subject.sig)
    # powers of two, so that corrected whole numbers are exact in single precision
    corrections = CorrectionSet(
        dark=(number % 3).astype("float32"), gain=(0.5 * 2.0 ** (number % 3)).astype("float32")
    )
    for data in subject.arrays:
        if precise(data.dtype) is None or subject.error_with(data) is not None:
            continue
        run = _with_dask(subject, data=data, corrections=corrections)
        _compare(subject, "only_sums_frames", f"for corrected {data.dtype}", run, data)


def _many_chunks(sig: tuple[int, ...]) -> Chunks | None:
    """Return just enough signal chunks to get a task for each; None if the signal is too small."""
    for most in range(2, max((2, *sig)) + 1):
        pieces = [min(n, most) for n in sig]
        if math.prod(pieces) > MANY_BLOCKS:
            return tuple(
                tuple(len(p) for p in np.array_split(np.arange(n), k))
                for n, k in zip(sig, pieces, strict=True)
            )
    return None


def _with_dask(
    subject: Subject,
    layout: Layout = ONE_CHUNK,
    data: AnyArray | None = None,
    twice: bool = False,
    **options: Any,
) -> Runs:
    """Return a function that runs a UDF with dask, so that the plan can use all promises.

    With `twice`, the run has the same UDF twice: UDFs that share something need another one.
    """

    def run(udf: UDF) -> dict[str, AnyArray]:
        lazy = subject.run_with_dask(layout, [udf] * (1 + twice), data, **options)[0]
        return dict(compute(lazy, scheduler="sync")[0])

    return lambda udf: subject.attempt("with dask", run, udf)


def _compare(
    subject: Subject, promise: str, when: str, run: Runs, data: AnyArray | None = None
) -> None:
    """Fail if a run with a promise gives other results than a run without promises."""
    expected = run(varied(subject.udf))
    try:
        results = run(varied(subject.udf, promises=Promises(**{promise: True})))
    except UDFCheckError as error:
        _fail(subject, promise, f"a run that relies on it fails, {when}: {error}")
    difference = subject.difference(results, expected, data)
    if difference:
        _fail(
            subject,
            promise,
            f"{difference.name!r} is {difference.one} in a run that relies on it, "
            f"{difference.other} in one that does not, {when} {difference.where}",
        )


def _fail(subject: Subject, promise: str, what: str) -> NoReturn:
    """Fail because a promise is not true."""
    subject.fail(f"it promises {promise}, but {what}. Or do not make this promise")
