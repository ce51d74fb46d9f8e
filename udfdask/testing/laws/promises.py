"""Laws about promises that change results, each with the name of a field of `Promises`.

A law is only checked if the UDF makes the promise. Most laws compare a run of the UDF with only
this promise and a run without promises.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from dask.base import compute

from udfdask.base.names.naming import identity_of
from udfdask.base.types import AnyArray
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correct_tile import precise
from udfdask.plan.make_recipe import MANY_BLOCKS
from udfdask.testing.assertions import UDFCheckError
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, Layout
from udfdask.testing.subject import Subject, scan_chunkings, varied
from udfdask.udf import UDF
from udfdask.udf.promises import Promises

OR = "Or do not make this promise"


def declares_once(subject: Subject) -> None:
    """The promise `declares_once` is true: `get_result_buffers` sets no attributes."""
    _compare(subject, "declares_once", "with one chunk")


def merge_only_reads_src(subject: Subject) -> None:
    """The promise `merge_only_reads_src` is true: `merge` does not change `src`."""
    cls = type(subject.udf)

    def merge(udf: UDF, dest: Any, src: Any) -> None:
        before = {name: identity_of(array) for name, array in src.items()}
        cls.merge(udf, dest, src)
        for name, array in src.items():
            if identity_of(array) != before[name]:
                raise UDFCheckError(
                    f"it promises merge_only_reads_src, but merge writes to src.{name}: write to "
                    f"dest only, or to a copy. {OR}"
                )

    watched = varied(subject.udf, merge=merge)
    for nav_chunks in scan_chunkings(subject.nav):
        for fan_in in (2, 8):
            layout = Layout(nav_chunks=nav_chunks, split_every=fan_in)
            subject.results(layout, udf=watched)


def processes_stacks(subject: Subject) -> None:
    """The promise `processes_stacks` is true: `process_stack` gives the same as `process_frame`."""
    few = Layout(tile_bytes=3 * subject.frame_bytes)
    pieces = replace(few, nav_chunks=subject.two_chunks, sig_chunks=subject.sig_chunks)
    for layout in (ONE_CHUNK, few, pieces):
        _compare(subject, "processes_stacks", f"with {layout}", layout)


def processes_sums(subject: Subject) -> None:
    """The promise `processes_sums` is true: `process_sums` gives the same as `process_tile`."""
    layout = Layout(nav_chunks=subject.two_chunks)
    for data in subject.usable_arrays():
        # twice: UDFs that share something need another one
        _compare(subject, "processes_sums", f"for {data.dtype}", layout, data, times=2)


def takes_any_byte_order(subject: Subject) -> None:
    """The promise `takes_any_byte_order` is true: byte-swapped data give the same results."""
    for data in subject.arrays:
        swapped = data.astype(data.dtype.newbyteorder("S"))
        if swapped.dtype != data.dtype and subject.error_with(swapped) is None:
            _compare(subject, "takes_any_byte_order", f"for {swapped.dtype}", data=swapped)


def adds_signal_parts(subject: Subject) -> None:
    """The promise `adds_signal_parts` is true: the sum over signal chunks is the full result."""
    sig_chunks = _many_chunks(subject.sig)
    if sig_chunks is None:
        subject.notes.append(f"adds_signal_parts not checked: signal {subject.sig} is too small")
        return
    for nav_chunks in (None, subject.two_chunks):
        layout = Layout(nav_chunks=nav_chunks, sig_chunks=sig_chunks)
        _compare(subject, "adds_signal_parts", f"with {layout}", layout)


def only_sums_frames(subject: Subject) -> None:
    """The promise `only_sums_frames` is true: corrected sums are sums of corrected frames."""
    number = np.arange(math.prod(subject.sig)).reshape(subject.sig)
    # powers of two, so that corrected whole numbers are exact in single precision
    corrections = CorrectionSet(
        dark=(number % 3).astype("float32"), gain=(0.5 * 2.0 ** (number % 3)).astype("float32")
    )
    for data in subject.usable_arrays():
        if precise(data.dtype) is not None:
            when = f"for corrected {data.dtype}"
            _compare(subject, "only_sums_frames", when, data=data, corrections=corrections)


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


def _compare(
    subject: Subject,
    promise: str,
    when: str,
    layout: Layout = ONE_CHUNK,
    data: AnyArray | None = None,
    times: int = 1,
    **options: Any,
) -> None:
    """Fail if a run with a promise gives other results than a run without promises.

    Both runs are with dask, so that the plan can use all promises.
    """

    def run(udf: UDF) -> dict[str, AnyArray]:
        lazy = subject.run_with_dask(layout, [udf] * times, data, **options)[0]
        return dict(subject.attempt("with dask", compute, lazy, scheduler="sync")[0])

    expected = run(varied(subject.udf))
    promised = varied(subject.udf, promises=Promises(**{promise: True}))
    try:
        results = run(promised)
    except UDFCheckError as error:
        raise UDFCheckError(
            f"it promises {promise}, but a run that relies on it fails, {when}: {error}. {OR}"
        ) from error
    subject.agree(
        results,
        expected,
        f"it promises {promise}, but {{name!r}} is {{one}} in a run that relies on it, {{other}} "
        f"in one that does not, {when} {{where}}. {OR}",
        data,
    )
