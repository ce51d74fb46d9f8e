"""Laws about the run: tiles, chunks, merges, regions, dtypes and dask do not change results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cloudpickle
import numpy as np
from dask.base import compute

from udfdask.backends.backend import NUMPY
from udfdask.backends.sparse_rows import converter
from udfdask.base.types import AnyArray
from udfdask.chunk.merge import merge_partials
from udfdask.chunk.partial_result import Partial
from udfdask.testing.assertions import UDFCheckError, differing, show
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, Layout
from udfdask.testing.subject import Subject, in_words, regions, scan_chunkings
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec

GIVES = "with {layout}, {name!r} is {one}, and in a plain loop over all frames {other} {where}"
COMBINE = (
    "Combine dest and src: dest.{name} += src.{name} for a sum, "
    "dest.{name}[:] = np.maximum(dest.{name}, src.{name}) for a maximum"
)
NEW_INSTANCES = (
    "A chunk can begin at any frame, with a new instance of the UDF: keep nothing in attributes, "
    "and use meta.coordinates for scan positions"
)


def tiles_do_not_show(subject: Subject) -> None:
    """The shape of tiles and signal chunks do not change the results."""
    run = subject.run()
    frame = subject.frame_bytes // subject.data.itemsize * run.declared.input_dtype.itemsize
    sizes = {3 * frame, max(1, frame // 2)}
    if run.recipe.grid.n_frames <= 64:  # tiles of a few pixels take seconds for more
        sizes.add(max(1, frame // 50))
    in_parts = Layout(sig_chunks=subject.sig_chunks)
    for layout in (in_parts, *(Layout(tile_bytes=size) for size in sorted(sizes))):
        subject.matches(
            layout,
            f"{{name!r}} depends on the shape of tiles: {GIVES}. A frame can arrive in several "
            "tiles: combine with the value in the buffer (+=, np.maximum), or set whole_frames = "
            "True. meta.sig_slice says which part of the signal a tile is",
        )


def merge_takes_every_buffer(subject: Subject) -> None:
    """A merge takes the values of every buffer of a chunk."""
    run = subject.run()
    mode = run.declared.merge.mode
    if not run.partials:
        return
    partial, fresh = run.partials[0], run.fresh_buffers()
    filled = {name: differing(held, fresh[name]) for name, held in partial.arrays.items()}
    # StdDevUDF needs `origin` only for data that are no integers
    is_ours = run.declared.cls.get_result_buffers.__module__.startswith("udfdask.")
    subject.notes += [
        f"buffer {name!r} never left its fresh value, so its merge is not tested: assign it in a "
        "method, or pass data for which it changes"
        for name, places in filled.items()
        if places.size and not places.any()
        if not (is_ours and run.declared.buffers[name].use == "private")
    ]
    if mode == "none":
        return
    merged = subject.attempt("with one chunk", merge_partials, run.recipe, 0, [partial])
    for name, held in partial.arrays.items():
        is_filled = filled[name]
        if not is_filled.any() or differing(merged.arrays[name], fresh[name]).any():
            continue
        # a merge may ignore a buffer that no result depends on
        kept = Partial({**merged.arrays, name: held}, merged.first, merged.stop, merged.aux)
        with_it, without = (
            subject.attempt("with one chunk", run.finalize, [p], p) for p in (kept, merged)
        )
        if subject.difference(with_it, without) is None:
            continue
        method, remedy = "merge", COMBINE.format(name=name)
        if mode == "all":
            method, remedy = "merge_all", f"Return {name!r} made of the values of all chunks"
        elif run.declared.allocated[name].kind == "nav":
            remedy = f"A merge must also assign every nav buffer: dest.{name}[:] = src.{name}"
        raise UDFCheckError(
            f"{method} forgets buffer {name!r}: a chunk holds {show(held[is_filled][0])} there, "
            f"and after the merge it is {show(fresh[name][is_filled][0])}, as before. {remedy}"
        )


def chunks_do_not_show(subject: Subject) -> None:
    """Chunks of the scan, and the fan-in of the merge tree, do not change the results."""
    mode = subject.run().declared.merge.mode
    text = f"results depend on where chunks begin: {GIVES}. {NEW_INSTANCES}"
    if mode == "all":
        text = (
            f"merge_all is not associative: {GIVES}. If it is called with groups of chunks and "
            "with its own results, averages and medians are wrong: keep sums and counts in "
            "buffers, and divide in get_results"
        )
    elif mode in ("tree", "chain"):
        text = (
            f"merge is not associative: {GIVES}. {COMBINE}. A merge starts from what preprocess "
            f"sets. {NEW_INSTANCES}"
        )
    one_each = tuple((1,) * n for n in subject.nav)
    layouts = [Layout(nav_chunks=chunks) for chunks in (*scan_chunkings(subject.nav), one_each)]
    if mode in ("tree", "all"):
        layouts += [Layout(nav_chunks=one_each, split_every=n) for n in (2, 3, False)]
    for layout in layouts:
        subject.matches(layout, text)


def merge_agrees_with_merge_all(subject: Subject) -> None:
    """If a UDF has both `merge` and `merge_all`, they give the same results."""
    uses = "run_udf uses merge_all, progressive runs use merge"
    udf = subject.run().declared
    if udf.progressive_merge == udf.merge:
        return
    for layout in (Layout(nav_chunks=chunks) for chunks in scan_chunkings(subject.nav)):
        run = subject.run(layout)
        failure = f"merge fails but merge_all does not ({uses}), with {layout}"
        subject.agree(
            subject.attempt(failure, run.results, run.declared.progressive_merge),
            subject.attempt(f"with {layout}", run.results),
            "merge and merge_all disagree about {name!r}: with {layout} merge gives {one}, "
            f"merge_all gives {{other}} {{where}}; {uses}",
            layout=layout,
        )


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
    for region, roi in regions(subject.nav) if nav else ():
        if not roi.any() or subject.error_with(subject.data, roi) is not None:
            continue
        (partial,) = subject.run(Layout(roi=roi)).partials
        for name in nav:
            some, full = partial.arrays[name], run.partials[0].arrays[name]
            if not (_are_row_numbers(full) and _are_row_numbers(some)):
                subject.agree(
                    {name: some},
                    {name: full[roi.ravel()]},
                    "nav buffer {name!r} of a frame depends on which other frames are in the ROI: "
                    f"it is {{one}} with a ROI of {region}, and {{other}} with the whole scan "
                    "{where}. meta.slice counts the rows of the ROI; meta.coordinates holds scan "
                    "positions",
                )


def _are_row_numbers(rows: AnyArray) -> bool:
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
            subject.results(Layout(nav_chunks=subject.two_chunks, backends=(backend,))),
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
        lazy = [subject.run_with_dask(x, udfs)[0] for x in layouts]
        done = subject.attempt(f"on the {scheduler} scheduler", compute, *lazy, scheduler=scheduler)
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
    tile_bytes = max(1, subject.frame_bytes // 3)
    return Layout(nav_chunks=nav_chunks, sig_chunks=subject.sig_chunks, tile_bytes=tile_bytes)
