"""Runs with corrections: the formula, whatever the chunks, tiles, ROI, UDFs and scheduler."""

import itertools
import math

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from counting import CountedData, counts
from seen_frames import EVERY_KIND, ComplexTiles, Frames, Tiles, WholeTiles, WritesFrames
from suites import examples, few_of
from udfdask.corrections import CorrectionSet
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import chunkings, rois, shapes
from udfdask.udfs import NoOpUDF, SumUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
fast = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))


def formula(data, sig_dims, dark, gain, excluded):
    """The definition, pixel by pixel in double precision."""
    sig = data.shape[data.ndim - sig_dims :]
    wide = np.complex128 if data.dtype.kind == "c" else np.float64
    values = data.reshape((-1, *sig)).astype(wide)
    good = np.empty_like(values)
    for pixel in np.ndindex(sig):
        value = values[(slice(None), *pixel)]
        value = value if dark is None else value - dark[pixel]
        good[(slice(None), *pixel)] = value if gain is None else value * gain[pixel]
    out = good.copy()
    for pixel in np.ndindex(sig):
        if excluded is None or not excluded[pixel]:
            continue
        found = []
        for step in itertools.product((-1, 0, 1), repeat=sig_dims):
            there = tuple(p + s for p, s in zip(pixel, step, strict=True))
            inside = all(0 <= t < n for t, n in zip(there, sig, strict=True))
            if inside and not excluded[there]:
                found.append(good[(slice(None), *there)])
        if found:
            out[(slice(None), *pixel)] = sum(found) / len(found)
    return out.reshape(data.shape)


@st.composite
def cases(draw):
    """Data with chunks, corrections, a ROI and a tile size."""
    shape = draw(shapes(max_nav=2, max_side=5))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    dtype = draw(
        st.sampled_from(few_of(["uint8", "int16", ">u2", "int32", "f8", "c8", "?", "float32"]))
    )
    data = rng.integers(0, 2 if dtype == "?" else 90, shape).astype(dtype)
    if dtype == "c8":
        data += 1j * rng.integers(0, 90, shape)
    sig = tuple(shape.sig)
    dark = rng.uniform(-9, 9, sig) if draw(st.booleans()) else None
    gain = rng.uniform(0.5, 2, sig) if draw(st.booleans()) else None
    share = draw(st.sampled_from([None, 0, 0.1, 0.1, 0.3, 0.9, 1]))
    excluded = None if share is None else rng.random(sig) < share
    broken = excluded is not None and draw(st.booleans())
    for plane in (dark, gain):
        if plane is not None and broken:
            plane[excluded & (rng.random(sig) < 0.5)] = np.nan
    return {
        "data": data,
        "chunks": draw(chunkings(shape)),
        "sig_dims": shape.sig_dims,
        "roi": draw(rois(tuple(shape.nav))),
        "tile": draw(st.sampled_from(["1 MiB", 128, 64, 1])),
        "dark": dark,
        "gain": gain,
        "excluded": excluded,
        "lazy": draw(st.booleans()),
    }


def corrections_of(case):
    planes = {"dark": case["dark"], "gain": case["gain"]}
    if case["lazy"]:
        planes = {k: v if v is None else da.from_array(v, chunks=2) for k, v in planes.items()}
    return CorrectionSet(**planes, excluded_pixels=case["excluded"])


def run(case, udfs, corrections, **how):
    array = da.from_array(case["data"], chunks=case["chunks"])
    options = {"sig_dims": case["sig_dims"], "roi": case["roi"], "corrections": corrections}
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}), raise_if_dask_computes():
        lazy = ud.run_udf(array, udfs, **options)
    return ud.compute(*lazy, **how)


@pytest.mark.point(18)
@given(
    case=cases(),
    classes=st.lists(st.sampled_from(EVERY_KIND), min_size=1, max_size=4),
    scheduler=st.sampled_from(["sync", "threads"]),
)
@settings(fast, max_examples=examples(200))
def test_formula(case, classes, scheduler):
    data, sig_dims, roi = case["data"], case["sig_dims"], case["roi"]
    corrections = corrections_of(case)
    none = repr(corrections) == "CorrectionSet()"
    udfs = [cls(changed=not none) for cls in classes]
    done = run(case, udfs, corrections, scheduler=scheduler)
    expected = formula(data, sig_dims, case["dark"], case["gain"], case["excluded"])
    nav = data.shape[: data.ndim - sig_dims]
    roi = np.ones(nav, dtype=bool) if roi is None else roi
    for cls, result in zip(classes, done, strict=True):
        least = [] if none else [np.float32]
        dtype = np.result_type(data.dtype, cls.dtype, *least).newbyteorder("=")
        frames = result["frames"][roi]
        assert frames.dtype == dtype
        np.testing.assert_allclose(frames, expected[roi], rtol=2e-5, atol=2e-4)


@pytest.mark.full
@given(case=cases())
@fast
def test_sums_are_those_of_corrected_frames_in_double_precision(case):
    """Whatever the dtype, which only one corrected frame is rounded to."""
    wide = np.complex128 if case["data"].dtype.kind == "c" else np.float64
    (found,) = run(case, [SumUDF(dtype=wide)], corrections_of(case))
    data, sig_dims, roi = case["data"], case["sig_dims"], case["roi"]
    corrected = formula(data, sig_dims, case["dark"], case["gain"], case["excluded"])
    nav = data.shape[: data.ndim - sig_dims]
    total = corrected[np.ones(nav, dtype=bool) if roi is None else roi].sum(axis=0)
    np.testing.assert_allclose(found["intensity"], total, rtol=1e-12, atol=1e-9)


@given(case=cases(), other=cases())
@fast
def test_tiles_do_not_show(case, other):
    """To the bit: a corrected pixel is the same number however frames are cut."""
    found = []
    for tile in (case["tile"], 1, "1 MiB"):
        for chunks in (case["chunks"], case["data"].shape):
            done = run(
                {**case, "tile": tile, "chunks": chunks}, [Tiles(False)], corrections_of(case)
            )
            found.append(done[0]["frames"])
    for frames in found[1:]:
        np.testing.assert_array_equal(frames, found[0])


SIG = (8, 9)
RNG = np.random.default_rng(0)
DATA = RNG.integers(0, 900, (4, 6, *SIG)).astype("uint16")
DARK, GAIN = RNG.random(SIG), 1 + RNG.random(SIG)
MASK = np.zeros(SIG, dtype=bool)
MASK[3, 4] = True


@pytest.mark.point(18)
@pytest.mark.parametrize(
    ("native", "preferred", "expected"),
    [
        ("uint8", ud.UDF.USE_NATIVE_DTYPE, "float32"),
        ("uint16", ud.UDF.USE_NATIVE_DTYPE, "float32"),
        (">u2", ud.UDF.USE_NATIVE_DTYPE, "float32"),
        ("float16", ud.UDF.USE_NATIVE_DTYPE, "float32"),
        ("bool", ud.UDF.USE_NATIVE_DTYPE, "float32"),
        ("int32", ud.UDF.USE_NATIVE_DTYPE, "float64"),
        ("float64", ud.UDF.USE_NATIVE_DTYPE, "float64"),
        ("complex64", ud.UDF.USE_NATIVE_DTYPE, "complex64"),
        ("uint16", "uint16", "float32"),
        ("uint16", "float64", "float64"),
        ("complex64", "float64", "complex128"),
    ],
)
def test_input_dtype(native, preferred, expected):
    class Asks(Tiles):
        dtype = np.dtype(preferred)

    x = da.from_array(DATA.astype(native), chunks=(2, 3, *SIG))
    for planes in ({"dark": DARK}, {"gain": GAIN}, {"excluded_pixels": MASK}):
        result = ud.run_udf(x, Asks(), corrections=CorrectionSet(**planes))
        assert result["frames"].dtype == expected
        assert result["frames"].compute(scheduler="sync").dtype == expected


@pytest.mark.point(19, 31)
def test_meta_corrections():
    class Asks(ud.UDF):
        def get_result_buffers(self):
            return {"dark": self.buffer("nav"), "merged": self.buffer("single")}

        def process_frame(self, frame):
            given = self.meta.corrections
            assert isinstance(given, CorrectionSet)
            np.testing.assert_array_equal(given.excluded_pixels, [[3], [4]])
            with pytest.raises(ValueError, match=r"read-only"):
                given.dark[...] = 0
            self.results.dark[:] = given.dark[1, 1]

        def merge(self, dest, src):
            dest.dark[:] = src.dark
            dest.merged[:] = self.meta.corrections.gain[1, 1]

    x = da.from_array(DATA, chunks=(2, 3, 4, 9))
    for dark in (DARK, da.from_array(DARK, chunks=3)):
        corrections = CorrectionSet(dark=dark, gain=GAIN, excluded_pixels=MASK)
        result = ud.run_udf(x, Asks(), corrections=corrections).compute(scheduler="sync")
        np.testing.assert_allclose(result["dark"], DARK[1, 1], rtol=1e-6)
        np.testing.assert_allclose(result["merged"], GAIN[1, 1], rtol=1e-6)


def explain(udf, excluded, chunks=(2, 3, 2, 9), tile="1 MiB"):
    with dask.config.set({"udfdask.tile-bytes": tile}):
        corrections = CorrectionSet(dark=DARK, excluded_pixels=excluded)
        return ud.explain(da.from_array(DATA, chunks=chunks), udf, corrections=corrections)


@pytest.mark.parametrize("place", [None, (0, 4), (3, 4), (4, 4)])
@pytest.mark.parametrize("chunks", [SIG, (4, 9), (4, 5)])
def test_patches_make_no_tile_larger(place, chunks):
    small = {"chunks": (1, 3, *chunks), "tile": 216}
    lines = 2 if chunks[1] == 9 else 3
    assert explain(Tiles(), place, **small).tile_shape[1:] == (lines, chunks[1])


@pytest.mark.usefixtures("warns_of_few_data")
def test_one_signal_chunk_a_task_where_patches_allow():
    chunks = (2, 3, (1, 1, 1, 1, 4), 9)
    assert "one for each signal chunk" in str(explain(SumUDF(), None, chunks))
    assert "one for each signal chunk" in str(explain(SumUDF(), (6, 4), chunks))
    text = r"excluded pixels are patched from pixels in another signal chunk"
    with pytest.warns(ud.UDFWarning, match=text):
        ud.run_udf(
            da.from_array(DATA, chunks=chunks),
            SumUDF(),
            corrections=CorrectionSet(excluded_pixels=(4, 4)),
        )
    assert "one for each signal chunk" not in str(explain(SumUDF(), (4, 4), chunks))
    for place in (None, (6, 4), (4, 4)):
        corrections = CorrectionSet(dark=DARK, excluded_pixels=place)
        x = da.from_array(DATA, chunks=chunks)
        total = ud.run_udf(x, SumUDF(), corrections=corrections)["intensity"]
        excluded = np.zeros_like(MASK)
        if place:
            excluded[place] = True
        expected = formula(DATA, 2, DARK, None, excluded).sum(axis=(0, 1))
        np.testing.assert_allclose(total.compute(scheduler="sync"), expected, rtol=1e-5)


def test_explain():
    text = str(explain(NoOpUDF(), (3, 4)))
    assert "corrects  dark, 1 excluded pixels" in text
    lazy = CorrectionSet(dark=da.from_array(DARK), gain=GAIN)
    text = str(ud.explain(da.from_array(DATA), NoOpUDF(), corrections=lazy))
    assert "corrects  dark, gain" in text
    assert "corrections.dark computed first" in text


def test_one_correction_for_udfs_of_one_dtype(monkeypatch):
    import udfdask.chunk.dense_tiles

    dtypes = []

    def correct(tile, planes, beyond):
        dtypes.append(planes.dtype)
        return right(tile, planes, beyond)

    right = udfdask.chunk.dense_tiles.correct_tile
    monkeypatch.setattr(udfdask.chunk.dense_tiles, "correct_tile", correct)
    x = da.from_array(DATA, chunks=(2, 6, *SIG))
    udfs = [SumUDF(), WholeTiles(), WritesFrames(), ComplexTiles(), Frames()]
    ud.compute(*ud.run_udf(x, udfs, corrections=CorrectionSet(dark=DARK)), scheduler="sync")
    assert len(dtypes) == 2 * 3
    assert {d.name for d in dtypes} == {"float32", "float64", "complex64"}


def test_lazy_planes_are_loaded_once_and_the_data_once(tmp_path):
    (folder := tmp_path / "data").mkdir()
    (planes := tmp_path / "planes").mkdir()
    x = da.from_array(CountedData(DATA, folder), chunks=(2, 3, *SIG))
    dark = da.from_array(CountedData(DARK, planes), chunks=(4, 9))
    with raise_if_dask_computes():
        counts(folder), counts(planes)  # dask looks at no elements to learn the type
        corrections = CorrectionSet(dark=dark, gain=dark, excluded_pixels=MASK)
        results = ud.run_udf(x, [SumUDF(), Frames()], corrections=corrections)
    assert not counts(folder)
    assert not counts(planes)
    ud.compute(*results, scheduler="threads")
    assert set(counts(planes).values()) == {1}
    loads = counts(folder)
    assert len(loads) == 4
    assert set(loads.values()) == {1}


def test_dark_from_the_data_themselves():
    x = da.from_array(DATA, chunks=(2, 3, *SIG))
    corrections = CorrectionSet(dark=x.mean(axis=(0, 1)))
    result = ud.run_udf(x, SumUDF(), corrections=corrections)
    assert result.explain().passes == 2
    total = result["intensity"].compute(scheduler="sync")
    np.testing.assert_allclose(total, np.zeros(SIG), atol=1e-2)


def test_they_travel_once():
    sig = (100, 100)
    x = da.zeros((32, 2, *sig), chunks=(1, 1, *sig), dtype="uint16")
    corrections = CorrectionSet(dark=np.ones(sig), gain=np.ones(sig), excluded_pixels=(3, 4))
    results = ud.run_udf(x, [SumUDF(), Frames()], corrections=corrections)
    graph = dict(results[0]["intensity"].dask)
    assert len(graph) > 64
    assert len(cloudpickle.dumps(graph)) < 1.5 * 2 * 8 * math.prod(sig)


@pytest.mark.parametrize("lazy", [False, True])
def test_schedulers(options, lazy):
    sig = (400, 500)  # more than what travels with tasks
    data = RNG.integers(0, 900, (4, 2, *sig)).astype("uint16")
    x = da.from_array(data, chunks=(1, 2, *sig))
    dark = RNG.random(sig)
    corrections = CorrectionSet(dark=da.from_array(dark) if lazy else dark, excluded_pixels=(3, 4))
    result = ud.run_udf(x, SumUDF(), corrections=corrections)
    (done,) = ud.compute(result, **options)
    expected = (data - dark).sum(axis=(0, 1))
    expected[3, 4] = (expected[2:5, 3:6].sum() - expected[3, 4]) / 8
    np.testing.assert_allclose(done["intensity"], expected, rtol=1e-4)


def test_broken_pixels_hide_what_they_hold():
    data = DATA.astype("float32")
    data[..., 3, 4] = np.nan
    x = da.from_array(data, chunks=(2, 3, 4, 9))
    gain = GAIN.copy()
    gain[3, 4] = np.inf
    corrections = CorrectionSet(gain=gain, excluded_pixels=(3, 4))
    frames = ud.run_udf(x, Tiles(), corrections=corrections)["frames"].compute(scheduler="sync")
    np.testing.assert_allclose(frames, formula(DATA, 2, None, GAIN, MASK), rtol=1e-5)


def test_no_copies_of_planes_per_chunk():
    from udfdask.corrections.planes import tile_planes

    corrections = CorrectionSet(dark=DARK.astype("f4"), gain=GAIN.astype("f4"))
    frame = ud.Slice((0, 0), ud.Shape(SIG, sig_dims=2))
    planes = tile_planes(corrections, frame, np.dtype("f4"), SIG)
    assert tile_planes(corrections, frame, np.dtype("f4"), SIG) is planes
    assert np.shares_memory(planes.part_planes.dark, corrections.dark)
    assert math.prod(planes.neighbors.shape) == 0


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("cluster", [False, True])
def test_progressive_runs(request, cluster, lazy):
    x = da.from_array(DATA, chunks=(2, 3, 4, 9))
    dark = da.from_array(DARK, chunks=4) if lazy else DARK
    corrections = CorrectionSet(dark=dark, gain=GAIN, excluded_pixels=MASK)
    scheduler = request.getfixturevalue("client") if cluster else "threads"
    udfs = [SumUDF(), Tiles()]
    *_, last = ud.run_udf_iter(x, udfs, corrections=corrections, scheduler=scheduler)
    total, seen = last.buffers
    expected = formula(DATA, 2, DARK, GAIN, MASK)
    np.testing.assert_allclose(total["intensity"], expected.sum(axis=(0, 1)), rtol=1e-5)
    np.testing.assert_allclose(seen["frames"], expected, rtol=1e-5)
