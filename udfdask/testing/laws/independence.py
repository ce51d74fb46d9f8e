"""Laws about the run: dtype, other UDFs, backend, pickling and dask do not change results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cloudpickle
import numpy as np
from dask.base import compute

from udfdask.backends.backend import NUMPY
from udfdask.backends.sparse_rows import converter
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, Layout
from udfdask.testing.failures import in_words
from udfdask.testing.sample_data import ragged_sig_chunks, regions, scan_chunkings
from udfdask.testing.udf_under_test import Subject
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec, Views


class _Company(UDF):
    """Another UDF for the same run, with small tiles, another dtype and its own result."""

    def get_preferred_input_dtype(self) -> Any:
        return np.complex128

    def get_tiling_preferences(self) -> Mapping[str, Any]:
        return {"depth": 2, "total_size": 6 * self.meta.dataset_shape.sig.size}

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        return {"total": self.buffer("single", dtype="complex128")}

    def process_tile(self, tile: Any) -> None:
        self.results.total[:] += tile.sum()

    def merge(self, dest: Views, src: Views) -> None:
        dest.get("total")[:] += src.get("total")


def dtypes_are_welcome(subject: Subject) -> None:
    """For data of each dtype, chunks and the byte order do not change the results."""
    for data in subject.arrays[1:]:
        error = subject.error_with(data)
        if error is not None:
            subject.notes.append(f"dtype {data.dtype} not checked: {in_words(error, subject.udf)}")
            continue
        layout = _pieces(subject, subject.two_chunks)
        difference = subject.difference(
            subject.results(layout, data=data), subject.results(data=data), data
        )
        if difference:
            subject.fail(
                f"data of dtype {data.dtype}: {layout} give {difference.name!r} = "
                f"{difference.one}, one chunk gives {difference.other} {difference.where}"
            )
        native = data.astype(data.dtype.newbyteorder("="))
        difference = subject.difference(
            subject.results(data=data), subject.results(data=native), data
        )
        if difference:
            subject.fail(
                f"{difference.name!r} depends on the byte order of the data: {data.dtype} gives "
                f"{difference.one}, {native.dtype} gives {difference.other} {difference.where}"
            )


def company_does_not_show(subject: Subject) -> None:
    """Other UDFs in the same run do not change the results."""
    layout = Layout(nav_chunks=subject.two_chunks)
    alone = subject.results(layout)
    again = type(subject.udf)(**subject.udf._kwargs)
    others: dict[str, UDF] = {"another UDF": _Company(), "a second UDF of its class": again}
    for who, other in others.items():
        difference = subject.difference(subject.results(layout, company=[other]), alone)
        if difference:
            subject.fail(
                f"{difference.name!r} depends on other UDFs in the same run: with {who} it "
                f"is {difference.one}, alone {difference.other} {difference.where}"
            )


def backends_do_not_show(subject: Subject) -> None:
    """The results are the same on each array backend that `get_backends` names."""
    offered = [b for b in subject.run().declared.backends if b.device == "cpu"]
    if offered == [NUMPY]:
        return
    try:
        converter("checking them")
    except ImportError as error:
        subject.notes.append(f"backends other than NumPy not checked: {error}")
        return
    expected = subject.results(Layout(nav_chunks=subject.two_chunks))
    for backend in offered:
        layout = Layout(nav_chunks=subject.two_chunks, backend=backend)
        difference = subject.difference(subject.results(layout), expected)
        if difference:
            subject.fail(
                f"get_backends() offers {backend.name}, on which {difference.name!r} is "
                f"{difference.one} instead of {difference.other} {difference.where}"
            )


def pickling_does_not_show(subject: Subject) -> None:
    """A pickled copy, as in other processes, gives the same results."""
    pickled_copy: UDF = cloudpickle.loads(cloudpickle.dumps(subject.udf))
    run = subject.run(udf=pickled_copy)
    results = subject.attempt("a pickled copy", run.results)
    difference = subject.difference(results, subject.results())
    if difference:
        subject.fail(
            f"a pickled copy gives other results: {difference.name!r} is "
            f"{difference.one} instead of {difference.other} {difference.where}"
        )


def dask_does_not_show(subject: Subject) -> None:
    """With dask, on one thread and on several, the results are the same as in a plain loop."""
    layouts = [ONE_CHUNK, *(Layout(nav_chunks=c) for c in scan_chunkings(subject.nav))]
    last = layouts[-1].nav_chunks
    layouts.append(_pieces(subject, last))
    layouts += [Layout(nav_chunks=last, roi=roi) for _, roi in regions(subject.nav)]
    usable = [
        x for x in layouts if x.roi is None or subject.error_with(subject.data, x.roi) is None
    ]
    for scheduler in ("sync", "threads"):
        runs = [subject.run_with_dask(x, [subject.original])[0] for x in usable]
        done = subject.attempt(f"on the {scheduler} scheduler", compute, *runs, scheduler=scheduler)
        for layout, result in zip(usable, done, strict=True):
            difference = subject.difference(
                dict(result), subject.reference(subject.data, layout.roi)
            )
            if difference:
                subject.fail(
                    f"on the {scheduler} scheduler {difference.name!r} with {layout} is "
                    f"{difference.one}, a plain loop gives {difference.other} {difference.where}"
                )


def _pieces(subject: Subject, nav_chunks: Chunks | None) -> Layout:
    """Return a layout that also has signal chunks, and tiles of a third of a frame."""
    sig_chunks = ragged_sig_chunks(subject.sig)
    tile_bytes = max(1, subject.frame_bytes // 3)
    return Layout(nav_chunks=nav_chunks, sig_chunks=sig_chunks, tile_bytes=tile_bytes)
