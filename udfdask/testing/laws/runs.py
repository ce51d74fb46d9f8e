"""Laws about the run: regions, dtypes, backends and dask do not change results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cloudpickle
import numpy as np
from dask.base import compute

from udfdask.backends.backend import NUMPY
from udfdask.backends.sparse_rows import converter
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, Layout
from udfdask.testing.sample_data import ragged_sig_chunks, regions, scan_chunkings
from udfdask.testing.udf_under_test import Subject, in_words
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec


def regions_do_not_break_it(subject: Subject) -> None:
    """With a region of interest, the results are the same as in a plain loop over its frames."""
    several = [c for c in scan_chunkings(subject.nav) if all(len(n) <= 2 for n in c)]
    for name, roi in regions(subject.nav):
        error = subject.error_with(subject.data, roi)
        if error is not None:
            subject.notes.append(f"ROI of {name} not checked: {in_words(error)}")
            continue
        for nav_chunks in (None, *several[:1], *several[-1:]):
            subject.matches(
                Layout(nav_chunks=nav_chunks, roi=roi),
                f"{{name!r}} is wrong with a ROI of {name}: {{layout}} gives {{one}}, a plain loop "
                "over the selected frames gives {other} {where}",
            )


def frames_do_not_notice_the_region(subject: Subject) -> None:
    """The values of a frame in nav buffers do not depend on which other frames are selected.

    The law is about nav buffers before merges and `get_results`, because these may relate a frame
    to all others. A buffer that contains the row numbers is allowed.
    """
    run = subject.run()
    nav = [name for name, spec in run.declared.allocated.items() if spec.kind == "nav"]
    if not nav:
        return
    full = run.partials[0].arrays
    for region, roi in regions(subject.nav):
        if not roi.any() or subject.error_with(subject.data, roi) is not None:
            continue
        (partial,) = subject.run(Layout(roi=roi)).partials
        for name in nav:
            if not (_are_row_numbers(full[name]) and _are_row_numbers(partial.arrays[name])):
                subject.agree(
                    {name: partial.arrays[name]},
                    {name: full[name][roi.ravel()]},
                    "nav buffer {name!r} of a frame depends on which other frames are in the ROI: "
                    f"it is {{one}} with a ROI of {region}, and {{other}} with the whole scan "
                    "{where}. meta.slice counts the rows of the ROI; meta.coordinates holds scan "
                    "positions",
                )


def _are_row_numbers(rows: AnyArray) -> bool:
    """Return whether a nav buffer contains the row numbers."""
    return rows.ndim == 1 and rows.dtype.kind in "iu" and np.array_equal(rows, np.arange(len(rows)))


def dtypes_are_welcome(subject: Subject) -> None:
    """For data of each dtype, chunks and the byte order do not change the results."""
    for data in subject.arrays[1:]:
        error = subject.error_with(data)
        if error is not None:
            subject.notes.append(f"dtype {data.dtype} not checked: {in_words(error)}")
            continue
        subject.matches(
            _pieces(subject, subject.two_chunks),
            f"data of dtype {data.dtype}: {{layout}} gives {{name!r}} = {{one}}, a plain loop "
            "{other} {where}",
            data,
        )
        native = data.astype(data.dtype.newbyteorder("="))
        subject.agree(
            subject.results(data=data),
            subject.results(data=native),
            f"{{name!r}} depends on the byte order of the data: {data.dtype} gives {{one}}, "
            f"{native.dtype} gives {{other}} {{where}}",
            data,
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
        subject.agree(
            subject.results(Layout(nav_chunks=subject.two_chunks, backend=backend)),
            expected,
            f"get_backends() offers {backend.name}, on which {{name!r}} is {{one}} instead of "
            "{other} {where}",
        )


def dask_does_not_show(subject: Subject) -> None:
    """With dask, on one thread and on several, the results are the same as in a plain loop.

    On several threads, the UDF is a pickled copy, as in other processes, and runs with another one.
    """
    layouts = [ONE_CHUNK, *(Layout(nav_chunks=c) for c in scan_chunkings(subject.nav))]
    last = layouts[-1].nav_chunks
    layouts.append(_pieces(subject, last))
    layouts += [
        Layout(nav_chunks=last, roi=roi)
        for _, roi in regions(subject.nav)
        if subject.error_with(subject.data, roi) is None
    ]
    by_rows = ". elementwise_results = True promises a get_results that works row by row"
    remedy = by_rows if subject.udf.elementwise_results else ""
    copy: UDF = cloudpickle.loads(cloudpickle.dumps(subject.original))
    for scheduler, udfs in (("sync", [subject.original]), ("threads", [copy, _Company()])):
        runs = [subject.run_with_dask(x, udfs)[0] for x in layouts]
        done = subject.attempt(f"on the {scheduler} scheduler", compute, *runs, scheduler=scheduler)
        for layout, result in zip(layouts, done, strict=True):
            subject.agree(
                dict(result),
                subject.reference(roi=layout.roi),
                f"on the {scheduler} scheduler {{name!r}} with {layout} is {{one}}, a plain loop "
                f"gives {{other}} {{where}}{remedy}",
            )


class _Company(UDF):
    """Another UDF for the same run, with another dtype and its own tiles."""

    def get_preferred_input_dtype(self) -> Any:
        return np.complex128

    def get_tiling_preferences(self) -> Mapping[str, Any]:
        return {"depth": 2, "total_size": 6 * self.meta.dataset_shape.sig.size}

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        return {"total": self.buffer("single", dtype="complex128")}

    def process_tile(self, tile: Any) -> None:
        self.results.total[:] += tile.sum()

    def merge(self, dest: Any, src: Any) -> None:
        dest.total[:] += src.total


def _pieces(subject: Subject, nav_chunks: Chunks | None) -> Layout:
    """Return a layout that also has signal chunks, and tiles of a third of a frame."""
    sig_chunks = ragged_sig_chunks(subject.sig)
    tile_bytes = max(1, subject.frame_bytes // 3)
    return Layout(nav_chunks=nav_chunks, sig_chunks=sig_chunks, tile_bytes=tile_bytes)
