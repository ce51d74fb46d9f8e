"""Laws about merging: no buffer is forgotten, and all ways to merge give the same results."""

from __future__ import annotations

import numpy as np

from udfdask.chunk.partial_result import Partial
from udfdask.merge.finalize import finalize
from udfdask.merge.merge import merge_partials
from udfdask.testing.differences import Tolerance, differing, show
from udfdask.testing.eager_run import EagerRun, Layout, chunks_in_words
from udfdask.testing.sample_data import parts_and_chunkings, scan_chunkings
from udfdask.testing.udf_under_test import Subject
from udfdask.types import AnyArray
from udfdask.udf.written_methods import quoted


def merge_takes_every_buffer(subject: Subject) -> None:
    """A merge takes the values of every buffer of a chunk."""
    run = subject.run()
    mode = run.declared.merge.mode
    if not run.partials or mode == "none":
        return
    method = "merge_all" if mode == "all" else "merge"
    partial = run.partials[0]
    if mode == "all":
        specs = run.declared.allocated
        fresh = {k: s.allocate(run.recipe.grid.n_frames, subject.sig) for k, s in specs.items()}
    else:
        fresh = run.fresh_buffers()
    merged = subject.attempt("with one chunk", merge_partials, run.recipe, 0, [partial])
    lost = {}
    for name, held in partial.arrays.items():
        place = _lost(held, merged.arrays[name], fresh[name])
        if place is not None and _shows_in_results(subject, run, merged, name, held):
            lost[name] = place
    if not lost:
        return
    (name, place), *more = lost.items()
    others = f" (and {quoted(other for other, _ in more)})" if more else ""
    is_nav = run.declared.allocated[name].kind == "nav"
    if mode == "all":
        remedy = f"Return {name!r} made of the values of all chunks"
    elif is_nav:
        remedy = f"A merge must also assign every nav buffer: dest.{name}[:] = src.{name}"
    else:
        remedy = (
            f"Combine dest and src: dest.{name} += src.{name} for a sum, "
            f"dest.{name}[:] = np.maximum(dest.{name}, src.{name}) for a maximum"
        )
    subject.fail(
        f"{method} forgets buffer {name!r}{others}: a chunk holds "
        f"{show(partial.arrays[name][place])} there, and after the merge it is "
        f"{show(fresh[name][place])}, as in buffers before any merge. {remedy}"
    )


def _lost(held: AnyArray, merged: AnyArray, fresh: AnyArray) -> tuple[int, ...] | None:
    """Return an index where a merge has lost a value of a chunk; None if it took any value."""
    exact = Tolerance()
    filled = differing(held, fresh, exact)
    if not filled.any() or differing(merged, fresh, exact).any():
        return None
    return tuple(int(i) for i in np.argwhere(filled)[0])


def _shows_in_results(
    subject: Subject, run: EagerRun, merged: Partial, name: str, held: AnyArray
) -> bool:
    """Return whether the results depend on a buffer; a merge may ignore temporary buffers."""
    kept = Partial({**merged.arrays, name: held}, merged.first, merged.stop, merged.aux)
    with_it = subject.attempt("with one chunk", run.finalize, kept)
    without = subject.attempt("with one chunk", run.finalize, merged)
    return subject.difference(with_it, without) is not None


def merge_agrees_with_merge_all(subject: Subject) -> None:
    """If a UDF has both `merge` and `merge_all`, they give the same results."""
    udf = subject.run().declared
    if udf.progressive_merge == udf.merge:
        return
    uses = "run_udf uses merge_all, progressive runs use merge"
    for data, nav_chunks in parts_and_chunkings(subject.data, subject.sig_dims):
        if subject.error_with(data) is not None:
            continue
        run = subject.run(Layout(nav_chunks=nav_chunks), data=data)
        other = run.with_changes(merge=run.declared.progressive_merge)
        results = subject.results_of(run)
        merged = subject.attempt(
            f"merge fails but merge_all does not ({uses}), with {run.layout}",
            run.results,
            recipe=other,
        )
        difference = subject.difference(merged, results, data)
        if difference:
            subject.fail(
                f"merge and merge_all disagree about {difference.name!r}: with {run.layout} merge "
                f"gives {difference.one}, merge_all gives {difference.other} {difference.where}; "
                f"{uses}"
            )


def results_row_by_row(subject: Subject) -> None:
    """If `elementwise_results` is true, get_results gives the same for a chunk as for the scan."""
    if not subject.run().declared.elementwise:
        return
    for nav_chunks in scan_chunkings(subject.nav):
        run = subject.run(Layout(nav_chunks=nav_chunks))
        expected = subject.results_of(run)
        for chunk in range(run.recipe.grid.n_chunks):
            results = subject.attempt(
                f"with {run.layout}, chunk by chunk", _results_of_chunk, run, chunk
            )
            rows = np.asarray(run.recipe.grid.rows(chunk), dtype=np.int64)
            expected_rows = {
                name: expected[name][rows] if spec.kind == "nav" else expected[name]
                for name, spec in run.declared.outputs.items()
            }
            difference = subject.difference(results, expected_rows)
            if difference:
                subject.fail(
                    "elementwise_results = True promises a get_results that works row by row, but "
                    f"{difference.name!r} is {difference.one} from {chunks_in_words(nav_chunks)} "
                    f"and {difference.other} from the whole scan {difference.where}"
                )


def _results_of_chunk(run: EagerRun, chunk: int) -> dict[str, AnyArray]:
    """Return the values of get_results for the rows of one chunk."""
    rows, merged = run.merged()
    udf = run.declared
    with_chunk = [p for p in rows if p.first <= chunk < p.stop] if udf.has_nav else []
    return finalize(run.recipe, 0, chunk, with_chunk, merged if udf.has_reduced else None).arrays
