"""Laws about tiles, chunks and merges: none of them changes the results."""

from __future__ import annotations

from udfdask.chunk.partial_result import Partial
from udfdask.merge.merge import merge_partials
from udfdask.testing.eager_run import Layout
from udfdask.testing.equality import differing, show
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.sample_data import ragged_sig_chunks, scan_chunkings
from udfdask.testing.udf_under_test import Subject

FEW_FRAMES = 64
"""Largest scan that is also processed in tiles of a few pixels; more would take seconds."""

GIVES = "with {layout}, {name!r} is {one}, and in a plain loop over all frames {other} {where}"
COMBINE = (
    "Combine dest and src: dest.{name} += src.{name} for a sum, "
    "dest.{name}[:] = np.maximum(dest.{name}, src.{name}) for a maximum"
)
FROM_PREPROCESS = "A merge starts from what preprocess sets"

NEW_INSTANCES = (
    "A chunk can begin at any frame, with a new instance of the UDF: keep nothing in attributes, "
    "and use meta.coordinates for scan positions"
)
REMEDIES = {
    "none": f"results depend on where chunks begin: {GIVES}. {NEW_INSTANCES}",
    "rows": f"results depend on where chunks begin: {GIVES}. {NEW_INSTANCES}",
    "tree": f"merge is not associative: {GIVES}. {COMBINE}. {FROM_PREPROCESS}. {NEW_INSTANCES}",
    "chain": f"merge is not associative: {GIVES}. {COMBINE}. {FROM_PREPROCESS}. {NEW_INSTANCES}",
    "all": (
        f"merge_all is not associative: {GIVES}. If it is called with groups of chunks and with "
        "its own results, averages and medians are wrong: keep sums and counts in buffers, and "
        "divide in get_results"
    ),
}
"""Messages if chunks change the results, by the mode of the merge."""


def tiles_do_not_show(subject: Subject) -> None:
    """The shape of tiles and signal chunks do not change the results."""
    run = subject.run()
    frame = subject.frame_bytes // subject.data.itemsize * run.declared.input_dtype.itemsize
    sizes = {3 * frame, max(1, frame // 2)}
    if run.recipe.grid.n_frames <= FEW_FRAMES:
        sizes.add(max(1, frame // 50))
    in_parts = Layout(sig_chunks=ragged_sig_chunks(subject.sig))
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
    if not run.partials or mode == "none":
        return
    partial, fresh = run.partials[0], run.fresh_buffers()
    merged = subject.attempt("with one chunk", merge_partials, run.recipe, 0, [partial])
    for name, held in partial.arrays.items():
        is_filled = differing(held, fresh[name])
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
    one_each = tuple((1,) * n for n in subject.nav)
    layouts = [Layout(nav_chunks=chunks) for chunks in (*scan_chunkings(subject.nav), one_each)]
    if mode in ("tree", "all"):
        layouts += [Layout(nav_chunks=one_each, fan_in=fan_in) for fan_in in (2, 3, False)]
    for layout in layouts:
        subject.matches(layout, REMEDIES[mode])


def merge_agrees_with_merge_all(subject: Subject) -> None:
    """If a UDF has both `merge` and `merge_all`, they give the same results."""
    uses = "run_udf uses merge_all, progressive runs use merge"
    udf = subject.run().declared
    if udf.progressive_merge == udf.merge:
        return
    for nav_chunks in scan_chunkings(subject.nav):
        run = subject.run(Layout(nav_chunks=nav_chunks))
        merged = subject.attempt(
            f"merge fails but merge_all does not ({uses}), with {run.layout}",
            run.results,
            merge=run.declared.progressive_merge,
        )
        subject.agree(
            merged,
            subject.attempt(f"with {run.layout}", run.results),
            "merge and merge_all disagree about {name!r}: with {layout} merge gives {one}, "
            f"merge_all gives {{other}} {{where}}; {uses}",
            layout=run.layout,
        )
