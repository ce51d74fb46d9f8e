"""Runs with descan: equal to runs over frames that were shifted before, frame by frame."""

import math

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples, few_of
from udfdask.corrections import CorrectionSet, Descan
from udfdask.testing import raise_if_dask_computes, run_reference
from udfdask.testing.strategies import DTYPES, arrays, chunkings, rois, shapes
from udfdask.udfs import CoMUDF, PickUDF, StdDevUDF, SumSigUDF, SumUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
fast = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))


class Seen(ud.UDF):
    """Keeps what it sees, every pixel of every frame."""

    dtype = ud.UDF.USE_NATIVE_DTYPE

    def get_preferred_input_dtype(self):
        return self.dtype

    def get_result_buffers(self):
        sig = tuple(self.meta.dataset_shape.sig)
        return {"frames": self.buffer("nav", extra_shape=sig, dtype=self.meta.input_dtype)}

    def look(self, data):
        assert data.dtype == self.meta.input_dtype
        assert data.flags.writeable == self.writable_input
        assert data.flags.c_contiguous

    def end(self, data):
        if self.writable_input:
            data[...] = 77


class Tiles(Seen):
    def process_tile(self, tile):
        self.look(tile)
        self.results.frames[(slice(None), *self.meta.sig_slice.get())] = tile
        self.end(tile)


class Frames(Seen):
    dtype = np.dtype(np.float64)

    def process_frame(self, frame):
        self.look(frame)
        self.results.frames[:] = frame
        self.end(frame)


class Partitions(Seen):
    dtype = np.dtype(np.float32)

    def process_partition(self, partition):
        self.look(partition)
        self.results.frames[:] = partition
        self.end(partition)


class WritesTiles(Tiles):
    writable_input = True


class WritesFrames(Frames):
    writable_input = True
    dtype = ud.UDF.USE_NATIVE_DTYPE


class WholeTiles(Tiles):
    whole_frames = True
    dtype = np.dtype(np.float32)


class DeepTiles(Tiles):
    dtype = np.dtype(np.complex64)

    def get_tiling_preferences(self):
        return {"depth": 2, "total_size": np.inf}


ALL = [Tiles, Frames, Partitions, WritesTiles, WritesFrames, WholeTiles, DeepTiles]


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
    classes=st.lists(st.sampled_from(ALL), min_size=1, max_size=4),
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
        preferred = data.dtype if cls.dtype is bool else cls.dtype
        frames = result["frames"][roi]
        assert frames.dtype == np.result_type(data.dtype, preferred, *least).newbyteorder("=")
        if case["subpixel"]:
            np.testing.assert_allclose(frames, expected[roi], rtol=1e-5, atol=1e-4)
        else:
            np.testing.assert_array_equal(frames, expected[roi].astype(frames.dtype))


@given(case=cases())
@fast
def test_a_run_over_shifted_frames_gives_the_same(case):
    """Whole pixels: to the bit, for UDFs that share sums and for one alone."""
    case = {**case, "subpixel": False, "fill": 0}
    dtype = case["data"].dtype
    shifted = plainly_shifted(case["data"], case["shifts"], False, 0).astype(dtype)
    array = da.from_array(shifted, chunks=case["chunks"])
    kinds = [SumUDF, SumSigUDF, PickUDF] + [CoMUDF, StdDevUDF] * (
        case["sig_dims"] == 2 and dtype.kind != "c"
    )
    options = {"sig_dims": case["sig_dims"], "roi": case["roi"]}
    for udfs in ([kind() for kind in kinds], [SumUDF()]):
        with dask.config.set({"udfdask.tile-bytes": case["tile"]}):
            expected = ud.compute(*ud.run_udf(array, udfs, **options))
        for found, wanted in zip(run(case, udfs), expected, strict=True):
            for name in wanted:
                assert found[name].dtype == wanted[name].dtype
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, atol=1e-6)


@pytest.mark.full
@given(case=cases(max_sig=2), corrected=st.booleans())
@fast
def test_the_reference_shifts_too(case, corrected):
    """Corrections come before shifts."""
    sig = case["data"].shape[case["shifts"].ndim - 1 :]
    rng = np.random.default_rng(0)
    corrections = None
    if corrected:
        corrections = CorrectionSet(
            dark=rng.integers(0, 3, sig) / 4,
            gain=rng.integers(1, 3, sig),
            excluded_pixels=rng.random(sig) < 0.1,
        )
    udfs = [SumUDF(), SumSigUDF(), PickUDF(), WritesFrames()]
    done = run(case, udfs, corrections, scheduler="sync")
    options = {"sig_dims": case["sig_dims"], "roi": case["roi"], "corrections": corrections}
    expected = run_reference(case["data"], udfs, descan=descan_of(case), **options)
    for result, wanted in zip(done, expected, strict=True):
        for name, value in wanted.items():
            assert result[name].dtype == value.dtype
            np.testing.assert_allclose(result[name], value, rtol=2e-5, atol=2e-3)


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
