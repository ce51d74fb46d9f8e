"""What is counted: each frame of a computation once, on every scheduler."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from progress_reporters import Gated, Kept, OpensGate, Weighs
from suites import examples
from udf_zoo import Rows
from udfdask.udfs import LogsumUDF, RadialProfileUDF, SumSigUDF, SumUDF

NAV, SIG = (4, 6), (8, 9)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(3).integers(0, 99, (*NAV, *SIG)).astype("uint16")


@pytest.fixture
def x(values):
    return da.from_array(values, chunks=(2, 3, 8, 9))


@st.composite
def runs(draw):
    """Chunks of all axes, and one or two regions of interest."""
    chunks = tuple(draw(st.integers(1, n)) for n in (*NAV, *SIG))
    bits = st.lists(st.booleans(), min_size=24, max_size=24)
    regions = st.one_of(st.none(), bits.map(lambda b: np.reshape(b, NAV)))
    return chunks, draw(st.lists(regions, min_size=1, max_size=2))


@pytest.mark.full
@settings(max_examples=examples(40), deadline=None)
@given(runs())
@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")  # of small chunks
def test_each_selected_frame_counts_once(drawn):
    chunks, rois = drawn
    x = da.ones((*NAV, *SIG), chunks=chunks, dtype="uint16")
    results = [ud.run_udf(x, [SumUDF(), Rows()], roi=roi) for roi in rois]
    kept = Kept()
    ud.compute(results, progress=kept, scheduler="synchronous")
    wanted = np.zeros(NAV, bool)
    for roi in rois:
        wanted |= True if roi is None else roi
    # chunk by chunk: whether any of its frames is wanted, and how many it has
    blocks = da.from_array(wanted, chunks=chunks[:2]).blocks
    seen = [np.asarray(blocks[i]) for i in np.ndindex(blocks.shape)]
    read = sum(block.size for block in seen if block.any()) * 8 * 9 * 2
    kept.assert_finished(int(wanted.sum()), read, sum(bool(block.any()) for block in seen))


@pytest.mark.parametrize("chunks", [(2, 3, 8, 9), (2, 3, 4, 5)], ids=["whole", "signal"])
@pytest.mark.parametrize(
    "udf", [SumUDF(), LogsumUDF(), [SumUDF(), SumSigUDF(), Rows()]], ids=["tile", "frame", "many"]
)
def test_every_scheduler(values, options, chunks, udf):
    x = da.from_array(values, chunks=chunks)
    kept = Kept()
    found = ud.compute(ud.run_udf(x, udf), progress=kept, **options)
    expected = dask.compute(ud.run_udf(x, udf), scheduler="synchronous")
    kept.assert_finished(24, values.nbytes, 4)
    found, expected = ([r] if isinstance(r, ud.Result) else r for r in (found[0], expected[0]))
    for one, other in zip(found, expected, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("how", ["compute", "persist", "method"])
def test_it_is_told_while_the_run_goes_on(x, options, tmp_path, how):
    """Each chunk waits until the reporter has heard of those that started before it."""
    reporter = OpensGate(tmp_path)
    res = ud.run_udf(x, Gated(tmp_path))
    if options["scheduler"] == "processes":
        options["chunksize"] = 1  # several tasks travel together otherwise
    if how == "compute":
        ud.compute(res, progress=reporter, **options)
    elif how == "persist":
        ud.persist(res, progress=reporter, **options)
    else:
        res.compute(progress=reporter, **options)
    assert reporter.frames == [0, 6, 12, 18, 24]
    reporter.assert_finished(24, x.nbytes, 4)


def two_runs_and_an_array(x):
    one, other = ud.run_udf(x, SumUDF()), ud.run_udf(x, SumSigUDF(), roi=np.s_[1:3, 1:4])
    return {"a": [one, other["intensity"].max()]}, x.mean()


def aux_data_over_the_same_chunks(x):
    com = ud.run_udf(x, Rows())["sums"][..., None] * np.zeros(2) + 4
    return ud.run_udf(x, RadialProfileUDF(centers=com, r=3))


def only_what_is_needed(x):
    """dask leaves out the chunks that nobody asks for."""
    return ud.run_udf(x, Rows())["sums"][:2, 4:]


def an_empty_region(x):
    return ud.run_udf(x, Rows(), roi=np.zeros(NAV, bool))


@pytest.mark.parametrize(
    ("collections", "n_chunks"),
    [
        (two_runs_and_an_array, 4),
        (aux_data_over_the_same_chunks, 4),
        (only_what_is_needed, 1),
        (an_empty_region, 0),
    ],
)
def test_what_counts(x, options, collections, n_chunks):
    kept = Kept()
    ud.compute(collections(x), progress=kept, **options)
    kept.assert_finished(6 * n_chunks, x.nbytes // 4 * n_chunks, n_chunks)


def test_a_second_pass_counts_too(x):
    """A sum over all frames is computed first, and then all of them are read again."""
    x = x.map_blocks(np.negative)
    total = ud.run_udf(x, SumUDF())["intensity"].sum()
    kept = Kept()
    res = ud.run_udf(x, Weighs(weights=total))
    assert res.explain().passes == 2
    ud.compute(res, progress=kept, scheduler="threads")
    kept.assert_finished(48, 2 * x.nbytes, 8)


def test_what_no_udf_runs_over(options):
    kept = Kept()
    assert ud.compute(da.ones(4).sum(), 3, progress=kept, **options) == (4.0, 3)
    kept.assert_finished(0, 0, 0)


def test_a_task_that_computes_something_itself(x):
    """Its scheduler calls back too, in this very thread."""

    def plus(block):
        return block + ud.run_udf(da.zeros((1, 1, 2, 2)), Rows())["sums"].compute().astype("uint16")

    kept = Kept()
    y = x.map_blocks(plus, dtype="uint16", meta=np.empty((0,) * 4, "uint16"))
    ud.compute(ud.run_udf(y, Rows()), progress=kept, scheduler="synchronous")
    kept.assert_finished(24, x.nbytes, 4)


@pytest.mark.parametrize("udf", [Rows(), [SumUDF(), SumSigUDF()]], ids=["one", "many"])
def test_stored_results_count_from_the_start(x, options, tmp_path, udf):
    cache, kept = tmp_path / "cache", Kept()
    ud.compute(ud.run_udf(x, udf), cache=cache)
    ud.compute(ud.run_udf(x, udf), progress=kept, cache=cache, **options)
    kept.assert_finished(24, x.nbytes, 4)
    start = kept.states[0]
    assert start.num_frames_complete == 24
    assert start.num_bytes_complete == x.nbytes
    assert start.num_part_complete == 4


def test_stored_results_that_nobody_asks_for_do_not_count(x, options, tmp_path):
    kept, result = Kept(), ud.run_udf(x, Rows())
    result.compute(cache=tmp_path / "cache")
    lost = min((tmp_path / "cache").rglob("*.record"))
    lost.unlink()
    ud.compute(result["sums"][:2], progress=kept, cache=tmp_path / "cache", **options)
    kept.assert_finished(12, x.nbytes // 2, 2)
