"""UDFs with a halo see the same windows on every chunk grid, and each chunk is loaded once."""

import itertools
import threading

import dask
import dask.array as da
import numpy as np
import pytest
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from neighborhood_udfs import MODES, PartitionsUDF, WindowsUDF, expected
from suites import examples
from udfdask.corrections import CorrectionSet
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.halo import Halo, divide, margin, neighbors
from udfdask.io import with_sync_offset
from udfdask.testing import check_udf, run_reference
from udfdask.testing.strategies import chunkings, shapes
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

SHAPE = (7, 9, 4, 5)
DATA = np.random.default_rng(0).integers(0, 60, SHAPE).astype(np.uint16)
VALUES = np.random.default_rng(1).integers(0, 5, SHAPE[:2]).astype(float)
ROI = np.random.default_rng(2).random(SHAPE[:2]) > 0.6
GRIDS = {
    "rows": (2, 9, 4, 5),
    "both scan axes": (3, 4, 4, 5),
    "one frame a chunk": (1, 1, 4, 5),
    "one chunk": SHAPE,
    "ragged, all axes": ((1, 4, 2), (6, 1, 2), (3, 1), (2, 3)),
}
KINDS = (WindowsUDF, PartitionsUDF)


@st.composite
def cases(draw):
    """Data, chunks, halo, boundary, region, and whether frames outside of it are neighbors."""
    shape = draw(shapes(min_nav=1, max_sig=2))
    side = st.integers(0, 6)
    sides = draw(st.lists(st.tuples(side, side), min_size=shape.nav.dims, max_size=shape.nav.dims))
    n = shape.nav.size
    chosen = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    roi = None if chosen is None else np.array(chosen).reshape(tuple(shape.nav))
    chunks = draw(chunkings(shape))
    boundary, outside = draw(st.sampled_from(sorted(MODES))), draw(st.booleans())
    kind = draw(st.sampled_from(KINDS))
    return shape, chunks, tuple(sides), boundary, roi, outside, kind


def check(got, want, roi=None):
    np.testing.assert_array_equal(got["weighted"], want["weighted"])
    np.testing.assert_array_equal(got["present"], want["present"])
    np.testing.assert_array_equal(got["total"], want["total"])
    nav = got["present"].shape
    chosen = np.ones(nav, bool) if roi is None else roi
    np.testing.assert_array_equal(got["position"][chosen], np.argwhere(chosen))


@given(cases())
@settings(max_examples=examples(300, 30))
def test_windows_do_not_show_chunks(case):
    shape, chunks, sides, boundary, roi, outside, kind = case
    data = np.arange(1, shape.size + 1, dtype=np.uint16).reshape(shape)
    array = da.from_array(data, chunks=chunks)
    udf = kind(sides, boundary, outside)
    result = ud.run_udf(array, udf, sig_dims=shape.sig.dims, roi=roi)
    want = expected(data, shape.nav.dims, sides, boundary, roi, outside)
    check(result.compute(scheduler="sync"), want, roi)
    reference = run_reference(data, udf, sig_dims=shape.sig.dims, roi=roi)
    check(reference, want, roi)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("boundary", sorted(MODES))
@pytest.mark.parametrize("kind", KINDS)
def test_each_chunk_is_loaded_once(grid, boundary, kind):
    loaded, lock = [], threading.Lock()

    def load(block, block_info=None):
        with lock:
            loaded.append(tuple(block_info[0]["chunk-location"]))
        return block

    source = da.from_array(DATA, chunks=GRIDS[grid])
    array = source.map_blocks(load, dtype=DATA.dtype, meta=np.empty((0,) * 4, DATA.dtype))
    udfs = [kind(1, boundary), SumUDF(), kind(((0, 3), 2), "mask"), SumSigUDF()]
    results = ud.compute(*ud.run_udf(array, udfs))
    assert sorted(loaded) == sorted(np.ndindex(array.numblocks))
    check(results[0], expected(DATA, 2, ((1, 1), (1, 1)), boundary))
    check(results[2], expected(DATA, 2, ((0, 3), (2, 2)), "mask"))
    np.testing.assert_array_equal(results[1]["intensity"], DATA.sum(axis=(0, 1)))
    np.testing.assert_array_equal(results[3]["intensity"], DATA.sum(axis=(2, 3)))


def test_only_the_chunks_around_a_region_are_loaded():
    loaded = []

    def load(block, block_info=None):
        loaded.append(tuple(block_info[0]["chunk-location"][:2]))
        return block

    array = da.from_array(DATA, chunks=(1, 3, 4, 5)).map_blocks(
        load, dtype=DATA.dtype, meta=np.empty((0,) * 4, DATA.dtype)
    )
    roi = np.zeros(SHAPE[:2], bool)
    roi[3, 2] = True
    result = ud.run_udf(array, WindowsUDF((1, 1)), roi=roi)
    check(result.compute(scheduler="sync"), expected(DATA, 2, ((1, 1), (1, 1)), "mask", roi), roi)
    assert sorted(loaded) == [(2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)]
    loaded.clear()
    alone = WindowsUDF((1, 1), outside=False)
    ud.run_udf(array, alone, roi=roi).compute(scheduler="sync")
    assert loaded == [(3, 0)]


CORRECTED = CorrectionSet(
    dark=np.full((4, 5), 2.0), gain=np.full((4, 5), 0.5), excluded_pixels=[[1, 3], [2, 0]]
)
SHIFTS = np.random.default_rng(3).integers(-2, 3, (*SHAPE[:2], 2)).astype(float)
CHANGES = {
    "plain": {},
    "corrections": {"corrections": CORRECTED},
    "descan": {"descan": SHIFTS},
    "parts of pixels": {"descan": SHIFTS + 0.25},
    "both": {"corrections": CORRECTED, "descan": SHIFTS},
}
FORMATS = {
    "dense": lambda array: array,
    "COO": lambda array: array.map_blocks(sparse.COO.from_numpy),
    "GCXS": lambda array: array.map_blocks(sparse.GCXS.from_numpy),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("lazy", [False, True])
def test_frames_are_changed_before_a_udf_sees_them(kind, changes, form, lazy):
    array = FORMATS[form](da.from_array(DATA, chunks=(3, 4, 2, 5)))
    values = da.from_array(VALUES, chunks=(2, 5)) if lazy else VALUES
    weights = WindowsUDF.aux_data(values, kind="nav", dtype="float64")
    udf = kind(1, "reflect", weights=weights)
    for roi in (None, ROI):
        options = {"roi": roi, **CHANGES[changes]}
        got = ud.run_udf(array, udf, **options).compute(scheduler="sync")
        want = run_reference(DATA, udf, **options)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-6)


def test_aux_data_have_margins():
    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    weights = WindowsUDF.aux_data(VALUES, kind="nav", dtype="float64")
    for kind in KINDS:
        got = ud.run_udf(array, kind((2, 1), weights=weights)).compute(scheduler="sync")
        check(got, expected(DATA, 2, ((2, 2), (1, 1)), "mask", values=VALUES))


@pytest.mark.parametrize("name", ["threads", "processes", "distributed"])
def test_every_scheduler_gives_the_same(name, request):
    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    results = ud.run_udf(array, [WindowsUDF(2), PartitionsUDF(1, "periodic"), StdDevUDF()])
    if name == "distributed":
        client = request.getfixturevalue("client")
        first, second, std = ud.compute(*results, scheduler=client)
    elif name == "processes":
        pool = request.getfixturevalue("pool")
        first, second, std = ud.compute(*results, scheduler="processes", pool=pool)
    else:
        first, second, std = ud.compute(*results, scheduler="threads", num_workers=3)
    check(first, expected(DATA, 2, ((2, 2), (2, 2)), "mask"))
    check(second, expected(DATA, 2, ((1, 1), (1, 1)), "periodic"))
    np.testing.assert_allclose(std["mean"], DATA.mean(axis=(0, 1)))


def test_arrays_of_results_share_one_pass():
    loaded = []

    def load(block):
        loaded.append(block.shape)
        return block

    array = da.from_array(DATA, chunks=(3, 4, 4, 5)).map_blocks(
        load, dtype=DATA.dtype, meta=np.empty((0,) * 4, DATA.dtype)
    )
    result = ud.run_udf(array, WindowsUDF(1))
    arrays = dask.optimize(result["weighted"], result["total"] * 2)
    weighted, total = dask.compute(*arrays, scheduler="sync")
    want = expected(DATA, 2, ((1, 1), (1, 1)), "mask")
    np.testing.assert_array_equal(weighted, want["weighted"])
    np.testing.assert_array_equal(total, want["total"] * 2)
    assert len(loaded) == array.npartitions


def test_snapshots_of_a_progressive_run():
    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    last = None
    for last in ud.run_udf_iter(array, WindowsUDF(1, "nearest")):
        done = last.damage
        want = expected(DATA, 2, ((1, 1), (1, 1)), "nearest")["weighted"]
        got = last.buffers[0]["weighted"]
        np.testing.assert_array_equal(got[done.reshape(got.shape)], want[done.reshape(got.shape)])
    check(last.buffers[0], expected(DATA, 2, ((1, 1), (1, 1)), "nearest"))


def test_a_cache_serves_chunks_with_margins(tmp_path):
    runs = []

    class Noted(WindowsUDF):
        def process_neighborhood(self, frames):
            runs.append(1)
            super().process_neighborhood(frames)

    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    want = expected(DATA, 2, ((1, 1), (1, 1)), "mask")
    for processed in (63, 0):
        runs.clear()
        result = ud.run_udf(array, Noted(1)).compute(cache=tmp_path / "cache", scheduler="sync")
        check(result, want)
        assert len(runs) == processed


@pytest.mark.parametrize("kind", KINDS)
def test_check_udf_knows_neighborhoods(kind):
    report = check_udf(kind(((0, 1), 2), "reflect"))
    assert {"chunks_do_not_show", "gives_what_a_plain_loop_gives"} <= set(report.laws)


def test_names_depend_on_halo_and_boundary():
    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    options = [(1, "mask"), (2, "mask"), (1, "nearest"), ((1, 0), "mask"), (1, "mask", False)]
    names = {ud.run_udf(array, WindowsUDF(*given), roi=ROI)["weighted"].name for given in options}
    assert len(names) == len(options)
    again = ud.run_udf(array, WindowsUDF(1, "mask"), roi=ROI)["weighted"].name
    assert again in names


def test_building_a_graph_loads_nothing():
    def load(block):
        raise AssertionError("loaded")

    array = da.from_array(DATA, chunks=(3, 4, 4, 5)).map_blocks(
        load, dtype=DATA.dtype, meta=np.empty((0,) * 4, DATA.dtype)
    )
    result = ud.run_udf(array, WindowsUDF(1))
    assert result["weighted"].shape == SHAPE[:2]
    assert "neighbors" in dict(result.explain().lines)


def test_a_scan_without_axes_has_one_window():
    frame = da.from_array(DATA[0, 0], chunks=(2, 5))

    class One(WindowsUDF):
        def process_neighborhood(self, frames):
            self.results.weighted[:] = frames.sum()
            self.results.present[:] = self.meta.neighbor_mask.sum()
            self.results.total += frames

    result = ud.run_udf(frame, One(1)).compute(scheduler="sync")
    assert (result["weighted"], result["present"]) == (DATA[0, 0].sum(), 1)
    np.testing.assert_array_equal(result["total"], DATA[0, 0])


@pytest.mark.parametrize("writable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_read_only(kind, writable):
    class Writes(kind):
        writable_input = writable

        def process_neighborhood(self, frames):
            self.write(frames)

        def process_partition(self, frames):
            self.write(frames)

        def write(self, frames):
            assert not self.meta.neighbor_mask.flags.writeable
            frames[...] = 1
            self.results.weighted[:] = frames.sum()

    if kind is WindowsUDF:
        del Writes.process_partition
    data = DATA.astype(float)
    for chunks in ((3, 4, 4, 5), SHAPE):
        result = ud.run_udf(da.from_array(data, chunks=chunks), [Writes(1), WindowsUDF(1)])
        if not writable:
            with pytest.raises(ValueError, match="read-only"):
                ud.compute(*result, scheduler="sync")
        else:
            _, other = ud.compute(*result, scheduler="sync")
            check(other, expected(DATA, 2, ((1, 1), (1, 1)), "mask"))
    np.testing.assert_array_equal(data, DATA)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("changes", [{}, {"descan": SHIFTS}], ids=["plain", "descan"])
def test_a_region_in_one_chunk_needs_no_other(kind, changes):
    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    roi = np.zeros(SHAPE[:2], bool)
    roi[2, 3] = roi[1:3, 5] = roi[6, 8] = True  # at the borders of three chunks
    weights = WindowsUDF.aux_data(VALUES, kind="nav", dtype="float64")
    udf = kind(1, "mask", False, weights=weights)
    got = ud.run_udf(array, udf, roi=roi, **changes).compute(scheduler="sync")
    want = run_reference(DATA, udf, roi=roi, **changes)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-6)


def positions(box):
    return set(itertools.product(*itertools.starmap(range, box)))


@given(cases())
@settings(max_examples=examples(100, 10))
def test_chunks_ask_for_the_frames_that_their_windows_need(case):
    shape, chunks, sides, boundary, roi, outside, _ = case
    nav_chunks = da.core.normalize_chunks(chunks, tuple(shape))[: shape.nav.dims]
    grid = Grid.of(nav_chunks, roi)
    halo = Halo(sides=sides, boundary=boundary, in_roi=not outside)
    for chunk in range(grid.n_chunks):
        seams = divide(halo, chunk, grid).seams
        needed = {}
        for piece in itertools.chain.from_iterable(halo.pieces(box, grid) for box in seams):
            if outside or grid.has_selected(piece.chunk):
                needed.setdefault(piece.chunk, []).append(piece.source)
        others = set(neighbors([halo], chunk, grid))
        assert set(needed) - {grid.index(chunk)} <= others
        assert all(grid.has_selected(other) for other in others - set(needed))
        for other in others | set(needed):
            boxes, asked = needed.get(other, []), margin([halo], chunk, other, grid)
            frames = [frame for box in asked for frame in positions(box)]
            assert len(frames) == len(set(frames))
            assert set().union(*map(positions, boxes)) <= set(frames)


def test_notes_on_errors_tell_the_positions():
    class Fails(PartitionsUDF):
        def process_partition(self, frames):
            if [4, 5] in self.meta.coordinates.tolist():
                raise KeyError(self.meta.coordinates.tolist())

    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    with pytest.raises(KeyError) as caught:
        ud.run_udf(array, Fails(1)).compute(scheduler="sync")
    first, *_, last = caught.value.args[0]
    (note,) = caught.value.__notes__
    assert f"at navigation coordinates {tuple(first)} to {tuple(last)}, in chunk (1, 1)" in note


@pytest.mark.parametrize(("halo", "method"), [(1, "FRAME"), (None, "NEIGHBORHOOD")])
def test_halo_and_method_belong_together(halo, method):
    class Chooses(WindowsUDF):
        def get_method(self):
            return self.UDF_METHOD[method]

        def process_frame(self, frame):
            pass

    with pytest.raises(ud.UDFError, match=r"get_method\(\) chose .*halo"):
        ud.run_udf(da.from_array(DATA), Chooses(halo))


@pytest.mark.parametrize("chunks", [(3, 4, 4, 5), (1, 1, 4, 5), (1, 9, 2, 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_absent_frames_are_no_neighbors(kind, chunks):
    frames = da.from_array(DATA.reshape(63, 4, 5), chunks=(10, 4, 5))
    scan = with_sync_offset(frames, SHAPE[:2], sync_offset=-12, chunks=chunks)
    shifted = np.zeros_like(DATA).reshape(63, 4, 5)
    shifted[12:] = DATA.reshape(63, 4, 5)[:51]
    data = shifted.reshape(SHAPE)
    for roi, outside in ((None, True), (ROI, True), (ROI, False)):
        result = ud.run_udf(scan, kind(2, outside=outside), roi=roi).compute(scheduler="sync")
        selected = scan.present if roi is None else roi & scan.present
        want = expected(data, 2, ((2, 2), (2, 2)), "mask", selected, outside=False)
        if outside:
            want = expected(data, 2, ((2, 2), (2, 2)), "mask", selected, present=scan.present)
        check(result, want, selected)


def test_cleanup_is_called_as_often_as_task_data_are_made():
    made, cleaned = [], []

    class Opens(WindowsUDF):
        def get_task_data(self):
            made.append(1)
            return {}

        def cleanup(self):
            cleaned.append(1)

    array = da.from_array(DATA, chunks=(3, 4, 4, 5))
    ud.run_udf(array, Opens(1)).compute(scheduler="sync")
    assert len(made) == len(cleaned)


@settings(max_examples=examples(20))
@given(case=cases())
def test_the_core_of_a_window_is_the_frame_itself(case):
    shape, chunks, sides, boundary, roi, _, _ = case

    class Own(ud.UDF):
        def __init__(self, halo, boundary):
            super().__init__(halo=halo, boundary=boundary)
            self.halo, self.boundary = halo, boundary

        def get_result_buffers(self):
            return {"own": self.buffer("nav", (*self.meta.dataset_shape.sig,), dtype="float64")}

        def process_neighborhood(self, frames):
            center = tuple(axis.start for axis in self.meta.core)
            assert self.meta.neighbor_mask[center]
            assert [axis.stop - axis.start for axis in self.meta.core] == [1] * len(center)
            self.results.own[:] = frames[center]

    data = np.arange(shape.size, dtype="float64").reshape(tuple(shape))
    array = da.from_array(data, chunks=chunks)
    result = ud.run_udf(array, Own(sides, boundary), roi=roi, sig_dims=shape.sig.dims)
    own = result["own"].compute(scheduler="sync")
    selected = ... if roi is None else roi
    np.testing.assert_array_equal(own[selected], data[selected])
