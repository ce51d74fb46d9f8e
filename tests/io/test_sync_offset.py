"""Scans with fewer or more positions than frames: absent frames are invalid, never zeros."""

import importlib
import importlib.util
import math

import dask
import dask.array as da
import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import udfdask as ud
from counting import CountedData, counts
from neighborhood_udfs import WindowsUDF
from suites import examples
from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UDFWarning
from udfdask.geometry.axes import default_axis_names
from udfdask.io import OpenedFile, open_file, with_sync_offset
from udfdask.testing.strategies import chunkings
from udfdask.udfs import SumSigUDF, SumUDF

sparse = pytest.importorskip("sparse", reason="sparse is an extra")
EMPTY = sparse.zeros((0, 0, 0))
SIG = (3, 2)
LIBRARIES = [da]
if importlib.util.find_spec("dask_array"):  # it is optional
    LIBRARIES.append(importlib.import_module("dask_array"))


def model(frames, nav, offset):
    """The scan by plain NumPy: zeros at positions without a frame, and the mask of the others."""
    scan = np.zeros((math.prod(nav), *frames.shape[1:]), frames.dtype)
    present = np.zeros(len(scan), bool)
    for position in range(len(scan)):
        if 0 <= position + offset < len(frames):
            scan[position], present[position] = frames[position + offset], True
    return scan.reshape(*nav, *frames.shape[1:]), present.reshape(nav)


def some_frames(n):
    return np.random.default_rng(n).integers(1, 200, (n, *SIG)).astype(np.uint16)


class SeenUDF(ud.UDF):
    """What a UDF is told about the scan."""

    def get_result_buffers(self):
        return {
            "sums": self.buffer(kind="nav", dtype=np.float32),
            "count": self.buffer(kind="nav", dtype=np.int64),
            "where": self.buffer(kind="nav", dtype=np.int64, extra_shape=(2,)),
            "frames": self.buffer(kind="single", dtype=np.int64),
            "valid": self.buffer(kind="single", dtype=np.int64, use="result_only"),
        }

    def process_frame(self, frame):
        assert frame.any()  # a frame of zeros would be an absent one
        self.results.sums[:] = frame.sum()
        self.results.count[:] = 1
        self.results.where[:] = self.meta.coordinates[0]
        self.results.frames[:] += 1

    def merge(self, dest, src):
        valid = self.meta.get_valid_nav_mask()
        assert not valid.all()
        dest.frames[:] += src.frames
        for name in ("sums", "count", "where"):
            getattr(dest, name)[:] = getattr(src, name)

    def get_results(self):
        results = {name: getattr(self.results, name) for name in ("sums", "count", "where")}
        full = self.meta.get_valid_nav_mask(full_nav=True)
        return {**results, "frames": self.results.frames, "valid": np.array([full.sum()])}


@st.composite
def scans(draw):
    """Frames, a scan for them with chunks, an offset, and a ROI or None."""
    n = draw(st.integers(1, 14))
    nav = tuple(draw(st.lists(st.integers(1, 5), min_size=2, max_size=2)))
    offset = draw(st.integers(1 - n, n - 1))
    chunks = draw(chunkings((*nav, *SIG)))
    return n, nav, offset, chunks, draw(st.none() | hnp.arrays(bool, nav))


def check_run(opened, frames, nav, offset, roi):
    """A run sees the present frames in the ROI, at their positions, and no others."""
    scan, present = model(frames, nav, offset)
    np.testing.assert_array_equal(opened.array.compute(scheduler="synchronous"), scan)
    found = np.ones(nav, bool) if opened.present is None else opened.present
    np.testing.assert_array_equal(found, present)
    seen = present if roi is None else present & roi
    result, sums = ud.run_udf(opened, [SeenUDF(), SumUDF()], roi=roi, sig_dims=2)
    assert result["sums"].shape == nav
    result, sums = ud.compute(result, sums, scheduler="synchronous")
    expected = np.where(seen, scan.sum(axis=(-1, -2)), np.nan)
    np.testing.assert_array_equal(result["sums"], expected)
    np.testing.assert_array_equal(result["count"], seen)
    np.testing.assert_array_equal(result["where"][seen], np.argwhere(seen))
    for name in ("sums", "count"):
        np.testing.assert_array_equal(result.valid_mask[name], seen)
        assert result.raw[name].shape == (seen.sum(),)
    assert result["frames"] == result["valid"] == seen.sum()
    np.testing.assert_array_equal(sums["intensity"], scan[seen].sum(axis=0))


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
@settings(max_examples=examples(200))
@given(given=scans())
def test_raw_files_are_like_the_model(tmp_path_factory, given):
    n, nav, offset, chunks, roi = given
    frames = some_frames(n)
    path = tmp_path_factory.mktemp("raw") / "scan.raw"
    frames.tofile(path)
    opened = open_file(
        path, nav_shape=nav, sig_shape=SIG, dtype="u2", sync_offset=offset, chunks=chunks
    )
    check_run(opened, frames, nav, offset, roi)


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
@settings(max_examples=examples(200))
@given(given=scans(), data=st.data())
def test_arrays_are_like_the_model(given, data):
    n, nav, offset, chunks, roi = given
    frames = some_frames(n)
    shapes = [(n,), *((k, n // k) for k in range(1, n + 1) if n % k == 0)]
    source = frames.reshape(*data.draw(st.sampled_from(shapes)), *SIG)
    library = data.draw(st.sampled_from(LIBRARIES))
    x = library.from_array(source, chunks=data.draw(chunkings(source.shape)))
    asked = data.draw(st.sampled_from([None, chunks]))
    opened = with_sync_offset(x, nav, sync_offset=offset, chunks=asked, sig_dims=2)
    assert isinstance(opened.array, library.Array)
    assert asked is None or opened.array.chunks == chunks
    check_run(opened, frames, nav, offset, roi)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
@pytest.mark.parametrize("offset", [-9, np.int8(7)])
def test_each_frame_is_loaded_once_and_absent_chunks_never(tmp_path, offset, library):
    frames = np.random.default_rng(1).integers(1, 9, (24, 4, 4)).astype(np.uint8)
    x = library.from_array(CountedData(frames, tmp_path), chunks=(5, 4, 4), meta=frames[:0])
    counts(tmp_path)
    opened = with_sync_offset(x, (8, 4), sync_offset=offset, chunks=(2, 4, 4, 4))
    run = ud.run_udf(opened, [SumSigUDF(), SumUDF()])
    assert run[0].explain().n_chunks == 3
    ud.compute(*run, scheduler="synchronous")
    assert set(counts(tmp_path).values()) == {1}


def test_blocks_of_whole_rows_of_a_raw_file_are_views(tmp_path):
    frames = some_frames(40)
    frames.tofile(tmp_path / "f")
    options = {"nav_shape": (6, 8), "sig_shape": SIG, "dtype": "u2"}
    opened = open_file(tmp_path / "f", **options, sync_offset=-3, chunks=(2, -1, -1, -1))
    blocks = dask.compute(opened.array.to_delayed().ravel().tolist(), scheduler="synchronous")[0]
    views = [block.base is not None and not block.flags.writeable for block in blocks]
    assert views == [False, True, False]


def test_a_part_of_the_scan_knows_which_of_its_positions_are_absent():
    frames = some_frames(10)
    opened = with_sync_offset(da.from_array(frames, chunks=(3, *SIG)), (4, 4), sync_offset=-3)
    scan, present = model(frames, (4, 4), -3)
    part = opened[::2, 1:]
    np.testing.assert_array_equal(part.present, present[::2, 1:])
    row = opened[1]
    assert row.present is None
    assert opened[0, :, 1:].present.shape == (4,)
    result = ud.run_udf(part, SumSigUDF()).compute(scheduler="synchronous")
    expected = np.where(present, scan.sum(axis=(2, 3)), 0)[::2, 1:]
    np.testing.assert_array_equal(result["intensity"], expected)
    assert "without a frame: 6 of 16 positions" in repr(opened)


def test_axes_and_unit_are_kept():
    axes = [ud.Axis(name=n, unit="nm", scale=2.0) for n in ("b", "a", "ky", "kx")]
    x = da.from_array(some_frames(6).reshape(2, 3, *SIG))
    source = OpenedFile(array=x, sig_dims=2, reader="r", title="t", axes=tuple(axes), unit="counts")
    moved = with_sync_offset(source, sync_offset=1)
    assert (moved.axes, moved.unit, moved.title) == (source.axes, "counts", "t")
    other = with_sync_offset(source, (3, 2), sync_offset=1)
    assert other.axes[2:] == source.axes[2:]
    assert not other.axes[0].is_calibrated


@pytest.mark.parametrize("sig_dims", [1, 2, 3])
def test_names_of_axes_depend_on_the_signal(sig_dims):
    opened = with_sync_offset(da.ones((6, 2, 2, 2)), sync_offset=1, sig_dims=sig_dims)
    assert tuple(axis.name for axis in opened.axes) == default_axis_names(4, sig_dims)


def test_files_with_missing_frames(tmp_path):
    frames = some_frames(5)
    frames.tofile(tmp_path / "f")
    options = {"nav_shape": (2, 3), "sig_shape": SIG, "dtype": "u2"}
    with pytest.raises(FileFormatError, match="pass sync_offset=0"):
        open_file(tmp_path / "f", **options)
    opened = open_file(tmp_path / "f", **options, sync_offset=0)
    np.testing.assert_array_equal(opened.present, [[True] * 3, [True, True, False]])
    with pytest.raises(ArgumentValueError, match=r"has 5 frames: pass a number from -4 to 4"):
        open_file(tmp_path / "f", **options, sync_offset=5)
    with h5py.File(tmp_path / "scan.h5", "w") as file:
        file.create_dataset("data", data=frames[:4].reshape(2, 2, *SIG), chunks=(1, 2, *SIG))
    for nav in (None, (3, 2)):
        opened = open_file(tmp_path / "scan.h5", nav_shape=nav, sync_offset=-2)
        check_run(opened, frames[:4], nav or (2, 2), -2, None)


FIVE = da.ones((5, 2, 2))
REFUSED = [
    (da.ones((0, 2, 2)), {"nav_shape": 3}, ArgumentValueError, "has 0 frames"),
    (FIVE, {"sync_offset": 5}, ArgumentValueError, "has 5 frames"),
    (FIVE[FIVE[:, 0, 0] > 0], {"nav_shape": 4}, ArgumentValueError, "nan frames"),
    (with_sync_offset(FIVE, sync_offset=-1), {}, ArgumentValueError, "the sum of both"),
    *(
        (
            with_sync_offset(m.ones((5, 2, 2)), sync_offset=-1).array,
            {},
            ArgumentValueError,
            "offset",
        )
        for m in LIBRARIES
    ),
    (np.ones((5, 2, 2)), {}, ArgumentTypeError, r"da.*from_array"),
    *((FIVE, {"sync_offset": no}, ArgumentTypeError, "an integer") for no in (1.5, "2", None)),
    (FIVE.map_blocks(sparse.COO.from_numpy, meta=EMPTY), {}, ArgumentTypeError, "sparse frames"),
]


@pytest.mark.parametrize(("data", "options", "error", "match"), REFUSED)
def test_what_is_refused(data, options, error, match):
    with pytest.raises(error, match=match):
        with_sync_offset(data, **options)


def test_no_position_with_a_frame(tmp_path):
    opened = with_sync_offset(da.ones((5, 2, 2)), (1, 2), sync_offset=-4)
    assert not opened.present.any()
    with pytest.warns(UDFWarning, match="none of the selected positions has a frame"):
        run = ud.run_udf(opened, SumSigUDF())
    assert np.isnan(run["intensity"].compute(scheduler="synchronous")).all()


def test_a_raw_file_without_navigation_axes(tmp_path):
    frames = some_frames(3)
    frames.tofile(tmp_path / "f")
    layout = {"nav_shape": (), "sig_shape": SIG, "dtype": "u2"}
    for offset in (0, 2):
        opened = open_file(tmp_path / "f", **layout, sync_offset=offset)
        np.testing.assert_array_equal(opened.array.compute(), frames[offset])


def test_zeros_as_neighbors_are_a_warning():
    x = da.from_array(some_frames(5), chunks=(2, *SIG))
    opened = with_sync_offset(x, (2, 4), sync_offset=-1)
    with pytest.warns(UDFWarning, match="take these zeros for neighbors.*axes=opened"):
        ud.run_udf(opened.array, WindowsUDF(1), roi=opened.present)
    with pytest.warns(UDFWarning, match="process these zeros.*axes=opened"):
        ud.run_udf(opened.array, WindowsUDF(1))
    ud.run_udf(opened.array, WindowsUDF(1, outside=False), roi=opened.present)
    found = ud.run_udf(opened.array, WindowsUDF(1), axes=opened)["present"]
    expected = ud.run_udf(opened, WindowsUDF(1))["present"]
    found, expected = dask.compute(found, expected, scheduler="synchronous")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("how", ["roi", "axes", "opened"])
def test_the_mask_can_be_given_beside_the_array(how):
    x = da.from_array(some_frames(5), chunks=(2, *SIG))
    opened = with_sync_offset(x, (2, 4), sync_offset=-1)
    changed = opened.array + 1
    options = {"roi": {"roi": opened.present}, "axes": {"axes": opened}, "opened": {}}[how]
    result = ud.run_udf(opened if how == "opened" else changed, SumSigUDF(), **options)
    found = result.compute(scheduler="synchronous")
    np.testing.assert_array_equal(found.valid_mask["intensity"], opened.present)


def test_zeros_of_absent_frames_do_not_become_frames():
    frames = da.ones((20, 4, 4), chunks=(5, 4, 4))
    scan = with_sync_offset(frames, (4, 6), sync_offset=-2)
    for again in (scan.array, scan.array[1:3]):
        with pytest.raises(ArgumentValueError, match="count as frames"):
            with_sync_offset(again, (2, 6))
    complete = with_sync_offset(scan[1:3], (3, 4))
    assert complete.present is None
