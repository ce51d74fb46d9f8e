"""Hypothesis strategies for programs and cases; the simplest is a nav sum by frame."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from program_model import NAMES, Buffer, Case, Output, Program
from udfdask.testing.strategies import rois

MERGE_KINDS = ("default", "merge", "assigns", "all", "once", "both")
METHOD_KINDS = ("frame", "tile", "partition")
INTS = ("int64", "int32", "uint8", "uint64", "int16")
REALS = (*INTS, "float64", "float32", "bool")
EVERY = (*REALS, "complex128", "complex64")
DTYPES = {"min": REALS, "max": REALS, "xor": (*INTS, "bool"), "hash": ("int64", "uint64")}
CONTRIBUTIONS = ("value", "one", "square", "where", "place")
SAME_FORMS = ("pass", "double", "flat", "masked", "valid", "invalid")
OWN_FORMS = ("mean", "total", "full", "here")
FILLS = {"i": -1, "u": 7, "f": 0.5, "c": 1.5j, "b": True}
ARRAY_DTYPES = (
    "uint8", "int16", "int32", ">u2", ">i4", "int64", "float32", ">f8", "float16", "bool",
    "complex64", ">c16",
)  # fmt: skip
PREFERENCES = ("bool", "float32", "float64", "int64", "complex64")

rarely = st.sampled_from([False, False, False, True])


@st.composite
def buffers(draw, name, kinds, ops):
    kind = draw(st.sampled_from(kinds))
    op = draw(st.sampled_from(ops[kind]))
    use = draw(st.sampled_from([None, None, None, "private"]))
    if op in ("scan", "stamp"):
        return Buffer(name, kind, op, use=use)
    if op == "median":
        return Buffer(name, kind, op, dtype="float64", use=use)
    dtype = draw(st.sampled_from(DTYPES.get(op, EVERY)))
    extra = (2,) if op == "hash" else draw(st.sampled_from([(), (), (2,), (2, 3), (0,)]))
    fill = FILLS[np.dtype(dtype).kind] if draw(rarely) else None
    of = draw(st.sampled_from(CONTRIBUTIONS))
    return Buffer(name, kind, op, of, dtype, extra, use, fill)


@st.composite
def outputs(draw, program):
    found, free = [], [b for b in program.buffers if b.use != "private"]
    # what is asked for row by row may neither look at all rows nor give them
    own = ("mean", "here") if program.elementwise_results else OWN_FORMS
    for number in range(draw(st.integers(0, 3))):
        if free and draw(st.booleans()):
            name = free.pop(draw(st.integers(0, len(free) - 1))).name
            found.append(Output(name, draw(st.sampled_from(SAME_FORMS)), name))
            continue
        form = draw(st.sampled_from(own))
        sources = [b.name for b in program.buffers if form != "total" or b.kind == "nav"]
        if not sources:
            form, sources = "mean", [b.name for b in program.buffers]
        found.append(Output(f"result_{number}", form, draw(st.sampled_from(sources))))
    return tuple(found)


@st.composite
def programs(draw, ordered=True):
    """One lawful program; `ordered`: it may count on chunks in navigation order."""
    method = draw(st.sampled_from(METHOD_KINDS))
    merge = draw(st.sampled_from((*MERGE_KINDS, "merge")))  # tree, chain and rows
    whole_frames = draw(rarely)
    plain = ("sum", "min", "max", "xor")
    stamped = ("stamp",) if merge in ("merge", "assigns") else ()
    scanned = ("scan", "scan") if merge == "merge" and ordered else ()
    last = ("hash", "last") if ordered else ()
    median = ("median",) if merge == "once" else ()
    ops = {
        "nav": (*plain, *stamped, *scanned),
        "sig": ("sum", *last, *last, *plain[1:]),
        "single": (*plain, *(last if method != "tile" or whole_frames else ()), *median),
    }
    kinds = ("nav",) if merge == "default" else ("nav", "sig", "single")
    names = NAMES[: draw(st.sampled_from([1, 2, 3, 4, 3, 4]))]
    declared = [draw(buffers(name, kinds, ops)) for name in names]
    if any(b.op == "scan" for b in declared):
        declared.append(Buffer("running", "single", use="private"))
    if any(b.op == "median" for b in declared) and Program(tuple(declared)).median_of() is None:
        declared.append(Buffer("sums"))
    fields = {
        "buffers": tuple(declared),
        "method": method,
        "merge": merge,
        "prefers": draw(st.sampled_from(PREFERENCES)),
        "postprocess": draw(rarely),
        "factor": draw(st.integers(1, 3)),
        "lazy_weights": draw(rarely),
        "depth": draw(st.sampled_from([math.inf, 1, 2])),
        "split_every": draw(st.sampled_from([None, None, 2, 3, 5, 8])),
        "whole_frames": whole_frames,
        "contiguous_nav": draw(rarely),
        "writable_input": draw(rarely),
        "elementwise_results": draw(rarely),
    }
    return Program(outputs=draw(outputs(Program(**fields))), **fields)


@st.composite
def chunks_within(draw, shape, blocks):
    """A chunking of at most so many blocks, oftener cut than not."""
    cut = st.sampled_from([False, True, True])
    found = []
    for side in shape:
        cuts = draw(st.lists(cut, min_size=side - 1, max_size=side - 1))
        ends = [k for k, cut in enumerate(cuts, 1) if cut][: blocks - 1]
        blocks //= len(ends) + 1
        found.append(tuple(b - a for a, b in itertools.pairwise([0, *ends, side])))
    return tuple(found)


@st.composite
def cases(draw):
    n_nav = draw(st.sampled_from([1, 2, 3, 2, 3, 1, 0]))
    side = st.sampled_from([1, 2, 3, 4, 5, 4, 3, 2])
    nav = tuple(draw(st.lists(side, min_size=n_nav, max_size=n_nav)))
    sig = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    in_order = draw(st.booleans())  # chunks follow each other in navigation order
    cut = nav[:1] if in_order else nav
    chunks = (*draw(chunks_within(cut, 12)), *((n,) for n in nav[len(cut) :]))
    flags = st.lists(st.booleans(), min_size=math.prod(nav), max_size=math.prod(nav))
    masks = flags.map(lambda chosen: np.array(chosen, dtype=bool).reshape(nav))
    several = draw(st.sampled_from([1, 2, 3, 2, 3]))
    found = [draw(programs(ordered=in_order)) for _ in range(several)]
    return Case(
        programs=tuple(found),
        shape=(*nav, *sig),
        sig_dims=len(sig),
        chunks=(*chunks, *draw(chunks_within(sig, 4))),
        dtype=draw(st.sampled_from(ARRAY_DTYPES)),
        roi=draw(st.one_of(st.none(), masks, rois(nav))),
        tile_bytes=draw(st.sampled_from([1 << 20, 64, 1])),
        split_every=draw(st.sampled_from([None, 2, 3, 8, False])),
        seed=draw(st.integers(0, 99)),
    )
