"""Laws about promises: one for each field of `Promises`, with the same name.

A law is only checked if the UDF makes the promise. Most laws compare a run of the UDF with only
this promise and a run without promises.
"""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import dask.array as da
import numpy as np
from dask.base import compute
from threadpoolctl import threadpool_limits

from udfdask.corrections import CorrectionSet
from udfdask.corrections.correct_tile import precise
from udfdask.plan.make_recipe import MANY_BLOCKS
from udfdask.run.run_udf import run_udf
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, Layout, declare
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.laws.construction import is_cached
from udfdask.testing.mutable_state import freeze, take_snapshot
from udfdask.testing.sample_data import ragged_sig_chunks, scan_chunkings
from udfdask.testing.udf_under_test import Subject, varied
from udfdask.testing.working_threads import helpers_of
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.promises import Promises

FRAME_PIXELS = 128 * 128
"""Pixels of a frame that is large enough for threads; OpenBLAS starts some from 9,216 numbers."""

DATA_PIXELS = 1 << 21
"""Pixels of data that are large compared with NumPy's own buffers of 64 KiB each."""

MEASUREMENTS = 3
"""Runs in which a call must take too much memory: what other threads allocate counts as well."""

THREADS = 2
"""Threads that libraries may start during the check, also on a machine with one core."""

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
        _compare(subject, "processes_stacks", f"with {layout}", _without_dask(subject, layout))


def processes_sums(subject: Subject) -> None:
    """The promise `processes_sums` is true: `process_sums` gives the same as `process_tile`."""
    for data in subject.arrays:
        if subject.error_with(data) is None:
            run = _with_dask(subject, data, subject.two_chunks, None, twice=True)
            _compare(subject, "processes_sums", f"for {data.dtype}", run, data)


def takes_any_byte_order(subject: Subject) -> None:
    """The promise `takes_any_byte_order` is true: byte-swapped data give the same results."""
    for data in subject.arrays:
        swapped = data.astype(data.dtype.newbyteorder("S"))
        if swapped.dtype != data.dtype and subject.error_with(swapped) is None:
            run = _without_dask(subject, ONE_CHUNK, swapped)
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
        run = _with_dask(subject, subject.data, nav_chunks, sig_chunks)
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
        run = _with_dask(subject, data, None, None, corrections)
        _compare(subject, "only_sums_frames", f"for corrected {data.dtype}", run, data)


def streams_tiles(subject: Subject) -> None:
    """The promise `streams_tiles` is true: `process_tile` reads its tile once, without copies."""
    calls = _calls_of_process_tile(subject)
    for _ in range(MEASUREMENTS - 1):
        if all(call.memory <= call.allowed for call in calls):
            break
        calls = _calls_of_process_tile(subject)  # the memory may have been that of another thread
    for call in calls:
        if call.memory > call.allowed:
            _fail(
                subject,
                "streams_tiles",
                f"process_tile takes {call.memory} bytes of memory for a tile of {call.nbytes} "
                f"bytes, shape {call.shape}: work on a few frames of it at a time",
            )
        if call.passes > 1:
            _fail(
                subject,
                "streams_tiles",
                f"process_tile reads its tile {call.passes} times: loop over its frames, and do "
                "all work on a frame before the next one",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What was seen of a call of `process_tile`."""

    shape: tuple[int, ...]
    """Shape of the tile."""
    nbytes: int
    """Size of the tile in bytes."""
    memory: int
    """Most memory in bytes that this process allocated during the call."""
    passes: int
    """How many times the call read its tile."""

    @property
    def allowed(self) -> int:
        """Memory for buffers of NumPy, a few numbers for each frame, and a few images."""
        frames, size = max(1, self.shape[0]), math.prod(self.shape)
        return (1 << 18) + 64 * frames + 32 * (size // frames) + size // 16


def _calls_of_process_tile(subject: Subject) -> list[_Call]:
    """Run the UDF over a larger array, and return what was seen of each call of `process_tile`."""
    cls = type(subject.udf)
    calls: list[_Call] = []

    def process_tile(udf: Any, tile: AnyArray) -> None:
        passes: list[int] = []
        counted = tile.view(_counting(passes, tile.size))
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        cls.process_tile(udf, counted)  # type: ignore[attr-defined]
        memory = tracemalloc.get_traced_memory()[1] - before
        calls.append(_Call(shape=tile.shape, nbytes=tile.nbytes, memory=memory, passes=len(passes)))

    data = _enlarged(subject)
    udf = varied(subject.udf, process_tile=process_tile, promises=Promises(streams_tiles=True))
    subject.run(udf=udf, data=data)  # compiles kernels
    calls.clear()
    tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        subject.run(udf=udf, data=data)
    finally:
        if not tracing:
            tracemalloc.stop()
    return calls


def _counting(passes: list[int], size: int) -> Any:
    """Return an array type that notes each NumPy call on at least half of `size` values."""

    class Counting(np.ndarray[Any, Any]):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            if any(isinstance(x, Counting) and 2 * x.size > size for x in inputs):
                passes.append(1)
            plain = [x.view(np.ndarray) if isinstance(x, Counting) else x for x in inputs]
            return getattr(ufunc, method)(*plain, **kwargs)

    return Counting


def starts_no_threads(subject: Subject) -> None:
    """The promise `starts_no_threads` is true: no other thread works while the UDF runs."""
    data = _enlarged(subject)
    udf = _relying_on(subject, "starts_no_threads")
    with threadpool_limits(THREADS):
        helpers = helpers_of(lambda: subject.results_of(subject.run(udf=udf, data=data)))
    if helpers:
        _fail(
            subject,
            "starts_no_threads",
            f"{helpers} other threads worked while it ran over data of shape {data.shape}: do not "
            "use matrix products, parallel kernels or thread pools",
        )


def _enlarged(subject: Subject) -> AnyArray:
    """Return data repeated in signal and scan, or only in the scan if the UDF needs that."""
    small, sig_dims = subject.data, subject.sig_dims
    if not small.size:
        return small
    factor = math.ceil((FRAME_PIXELS / math.prod(subject.sig)) ** (1 / sig_dims))
    for times in (max(1, factor), 1):
        size = small.size * times**sig_dims
        repeats = [-(-DATA_PIXELS // size)] + [1] * (len(subject.nav) - 1) if subject.nav else []
        data = np.tile(small, (*repeats, *(times,) * sig_dims))
        if subject.error_with(data) is None:
            return data
    return small


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


def _relying_on(subject: Subject, promise: str) -> UDF:
    """Return the UDF with only this promise."""
    return varied(subject.udf, promises=Promises(**{promise: True}))


def _without_dask(subject: Subject, layout: Layout, data: AnyArray | None = None) -> Runs:
    """Return a function that runs a UDF without dask."""
    return lambda udf: subject.results_of(subject.run(layout, data=data, udf=udf))


def _with_dask(
    subject: Subject,
    data: AnyArray,
    nav_chunks: Chunks | None,
    sig_chunks: Chunks | None,
    corrections: CorrectionSet | None = None,
    twice: bool = False,
) -> Runs:
    """Return a function that runs a UDF with dask, so that the plan can use all promises.

    With `twice`, the run has the same UDF twice: UDFs that share something need another one.
    """
    nav = nav_chunks or (-1,) * len(subject.nav)
    sig = sig_chunks or (-1,) * len(subject.sig)
    array = da.from_array(data, chunks=(*nav, *sig))

    def run(udf: UDF) -> dict[str, AnyArray]:
        udfs = [udf] * (1 + twice)
        lazy = run_udf(array, udfs, sig_dims=subject.sig_dims, corrections=corrections)[0]
        return dict(compute(lazy, scheduler="sync")[0])

    return lambda udf: subject.attempt("with dask", run, udf)


def _compare(
    subject: Subject, promise: str, when: str, run: Runs, data: AnyArray | None = None
) -> None:
    """Fail if a run with a promise gives other results than a run without promises."""
    expected = run(varied(subject.udf))
    try:
        results = run(_relying_on(subject, promise))
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
