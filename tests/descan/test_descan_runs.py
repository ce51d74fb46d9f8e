"""Runs with descan: equal to runs over frames that were shifted before, frame by frame."""

import math

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from seen_frames import EVERY_KIND, Tiles
from suites import examples, few_of
from udfdask.corrections import Descan
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import DTYPES, arrays, chunkings, rois, shapes

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
fast = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))


def plainly_shifted(data, shifts, subpixel, fill):
    """Return shifted frames, pixel by pixel, in double precision."""
    sig = data.shape[shifts.ndim - 1 :]
    out = np.full(data.shape, fill, np.result_type(data.dtype, np.float64))
    shifts = np.clip(shifts, -99, 99)
    for nav in np.ndindex(shifts.shape[:-1]):
        if np.isnan(shifts[nav]).any():
            continue
        for pixel in np.ndindex(sig):
            near = [
                _neighbors(p + s) if subpixel else [(p + round(float(s)), 1.0)]
                for p, s in zip(pixel, shifts[nav], strict=True)
            ]
            total = 0
            for chosen in np.ndindex(*map(len, near)):
                place, weights = zip(
                    *(n[k] for n, k in zip(near, chosen, strict=True)), strict=True
                )
                inside = all(0 <= p < n for p, n in zip(place, sig, strict=True))
                total += math.prod(weights) * (data[nav][place] if inside else fill)
            out[nav][pixel] = total
    return out


def _neighbors(place):
    """Return the pixels left and right of a place on an axis that count, with their weights."""
    left = math.floor(place)
    both = [(left, left + 1 - place), (left + 1, place - left)]
    return [(at, weight) for at, weight in both if weight > 0]


@st.composite
def cases(draw, max_sig=3):
    """Data with chunks, shifts, a ROI and a tile size."""
    shape = draw(shapes(max_nav=2, max_side=5, max_sig=max_sig))
    data = draw(arrays(shape, dtype=draw(st.sampled_from(few_of(DTYPES)))))
    d, nav = shape.sig_dims, tuple(shape.nav)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    largest = draw(st.sampled_from([0, 1, 3, 9, 1e30]))
    shifts = rng.uniform(-largest, largest, (*nav, d))
    # quarters are exact, and whole numbers and halves come often
    shifts = shifts if largest > 9 else np.round(shifts * 4) / 4
    if draw(st.booleans()):
        shifts[rng.random(shifts.shape) < 0.1] = np.nan
    subpixel = draw(st.booleans())
    fills = [0, 1] if data.dtype.kind in "bu" and not subpixel else [0, 1, -3, 2.5]
    if data.dtype.kind == "i" and not subpixel:
        fills = [0, -3]
    return {
        "data": data,
        "chunks": draw(chunkings(shape)),
        "sig_dims": d,
        "roi": draw(rois(nav)),
        "tile": draw(st.sampled_from(["1 MiB", 128, 64, 1])),
        "shifts": shifts,
        "shift_chunks": draw(chunkings((*nav, d))) if draw(st.booleans()) else None,
        "subpixel": subpixel,
        "fill": draw(st.sampled_from(fills)),
    }


def descan_of(case):
    shifts, chunks = case["shifts"], case["shift_chunks"]
    given = shifts if chunks is None else da.from_array(shifts, chunks=chunks)
    return Descan(given, subpixel=case["subpixel"], fill=case["fill"])


def run(case, udfs, corrections=None, **how):
    array = da.from_array(case["data"], chunks=case["chunks"])
    options = {"sig_dims": case["sig_dims"], "roi": case["roi"], "corrections": corrections}
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}), raise_if_dask_computes():
        lazy = ud.run_udf(array, udfs, descan=descan_of(case), **options)
    return ud.compute(*lazy, **how)


@given(
    case=cases(),
    classes=st.lists(st.sampled_from(EVERY_KIND), min_size=1, max_size=4),
    how=st.sampled_from(["sync", "threads"]),
)
@settings(fast, max_examples=examples(200))
def test_frames_are_those_shifted_before(case, classes, how):
    data, roi = case["data"], case["roi"]
    done = run(case, [cls() for cls in classes], scheduler=how)
    expected = plainly_shifted(data, case["shifts"], case["subpixel"], case["fill"])
    nav = case["shifts"].shape[:-1]
    roi = np.ones(nav, dtype=bool) if roi is None else roi
    least = [np.float32] if case["subpixel"] else []
    for cls, result in zip(classes, done, strict=True):
        frames = result["frames"][roi]
        assert frames.dtype == np.result_type(data.dtype, cls.dtype, *least).newbyteorder("=")
        if case["subpixel"]:
            np.testing.assert_allclose(frames, expected[roi], rtol=1e-5, atol=1e-4)
        else:
            np.testing.assert_array_equal(frames, expected[roi].astype(frames.dtype))


@given(case=cases(), other=cases())
@fast
def test_tiles_and_chunks_do_not_show(case, other):
    """To the bit: a shifted pixel is the same number however frames are cut."""
    found = []
    for tile in (case["tile"], 1, "1 MiB"):
        for chunks in (case["chunks"], case["data"].shape):
            done = run({**case, "tile": tile, "chunks": chunks}, [Tiles()])
            found.append(done[0]["frames"])
    for frames in found[1:]:
        np.testing.assert_array_equal(frames, found[0])
