"""Aux data: the right part in every hook, whatever the chunks, ROI, layout and scheduler."""

import pickle

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import udfdask as ud
from aux_udfs import AUX_UDFS, SeenByTiles, Subtract, aux_of
from counting import CountedChain, CountedData, CountedNav, MeanFrame, counts
from making import SYNC, make
from suites import examples
from udfdask.geometry.shapes import Shape
from udfdask.testing import raise_if_dask_computes, run_reference
from udfdask.testing.strategies import chunkings, rois, shapes

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

fast = settings(deadline=None, max_examples=examples(15), suppress_health_check=list(HealthCheck))


@st.composite
def cases(draw):
    shape = draw(shapes(min_nav=0, max_nav=3, max_side=4))
    data = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 9, shape)
    return {
        "data": data,
        "chunks": draw(chunkings(shape)),
        "shape": shape,
        "roi": draw(rois(tuple(shape.nav))),
        "tile": draw(st.sampled_from(["1 MiB", 64])),
        "lazy": draw(st.sampled_from([None, 1, 2, -1])),
        "flat": draw(st.booleans()),
    }


def check(case, classes, **how):
    shape, chunk = case["shape"], case["lazy"]
    wrap = (lambda a: a) if chunk is None else (lambda a: da.from_array(a, chunks=chunk))
    udfs = [cls(**aux_of(shape, wrap, case["flat"])) for cls in classes]
    array = da.from_array(case["data"], chunks=case["chunks"])
    options = {"sig_dims": shape.sig_dims, "roi": case["roi"]}
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}), raise_if_dask_computes():
        lazy = ud.run_udf(array, udfs, **options)
    plain = [cls(**aux_of(shape)) for cls in classes]
    expected = run_reference(case["data"], plain, **options)
    for result, wanted in zip(ud.compute(*lazy, **how), expected, strict=True):
        for name in ("total", "last", "done"):
            np.testing.assert_array_equal(result[name], wanted[name])


@pytest.mark.point(24)
@pytest.mark.parametrize("cls", AUX_UDFS, ids=lambda c: c.__name__)
@given(case=cases())
@fast
def test_right_part_in_every_hook(cls, case):
    check(case, [cls], **SYNC)


class Shown(ud.UDF):
    """Aux data as they are seen, in a result of their kind and dtype."""

    def get_result_buffers(self):
        return {"seen": self.buffer(self.params.kind, dtype=self.params.aux.dtype)}

    def process_partition(self, partition):
        self.results.seen[:] = self.params.aux

    def merge(self, dest, src):
        dest.seen[:] = src.seen


@pytest.mark.point(24)
@given(
    values=npst.arrays(npst.scalar_dtypes(), st.just(24)),
    kind=st.sampled_from(["nav", "sig", "single"]),
    lazy=st.booleans(),
)
@fast
def test_values_keep_their_dtype(values, kind, lazy):
    values = values[:1] if kind == "single" else values.reshape(4, 6)
    given = da.from_array(values, chunks=2) if lazy else values
    aux = ud.UDF.aux_data(given, kind)
    assert aux.dtype == values.dtype.newbyteorder("=")
    assert ud.UDF.aux_data(given, kind, dtype=values.dtype).dtype == aux.dtype
    x = da.zeros((4, 6, 4, 6), chunks=(2, 3, 4, 6), dtype="u1")
    seen = ud.run_udf(x, Shown(aux=aux, kind=kind)).compute(**SYNC)["seen"]
    assert seen.dtype == aux.dtype
    np.testing.assert_array_equal(seen, values)


@pytest.mark.point(24)
@pytest.mark.parametrize("dtype", [None, "f4", "i2", "c16"])
def test_lists_and_numbers_have_the_dtype_that_is_asked_for(dtype):
    for values in ([1, 2], 3, [4.0]):
        expected = np.asarray(values, dtype)
        aux = ud.UDF.aux_data(values, "single", extra_shape=expected.shape, dtype=dtype)
        assert aux.dtype == expected.dtype
        np.testing.assert_array_equal(aux.data, expected)


X = np.arange(4 * 6 * 3 * 5).reshape(4, 6, 3, 5)


@pytest.fixture
def x():
    return da.from_array(X, chunks=(2, 4, 3, 5))


@pytest.mark.point(4, 24)
def test_the_user_s_instance_is_not_changed(x):
    udf = SeenByTiles(**aux_of(Shape(X.shape, sig_dims=2)))
    before = dict(udf.__dict__), dict(udf.params.__dict__)
    ud.run_udf(x, udf).compute(**SYNC)
    assert (udf.__dict__, udf.params.__dict__) == before
    again = pickle.loads(cloudpickle.dumps(udf))
    ud.run_udf(x, again).compute(**SYNC)


@pytest.mark.point(24)
def test_each_task_gets_its_own_part():
    """10 MB of aux data over 100 chunks: 10 MB in the graph, 100 kB in a task."""
    x = da.ones((100, 2, 2), chunks=(1, 2, 2))
    level = ud.UDF.aux_data(np.ones((100, 12500)), "nav", extra_shape=12500, dtype="float64")
    result = ud.run_udf(x, Subtract("", level))
    graph = dict(result.__dask_graph__())
    sizes = [len(cloudpickle.dumps(task)) for task in graph.values()]
    assert max(sizes) < 120_000
    assert 10e6 < sum(sizes) < 12e6


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes", "distributed"])
@pytest.mark.point(24)
def test_aux_from_a_nav_result_is_one_pass(tmp_path, request, scheduler):
    """Each block is loaded once, each chunk of both UDFs run once."""
    data = np.random.default_rng(0).integers(0, 9, (6, 8, 4, 4))
    x = da.from_array(CountedData(data, tmp_path), chunks=(2, 4, 4, 4))
    how = request.getfixturevalue("client") if scheduler == "distributed" else scheduler
    sums = ud.run_udf(x, CountedNav(str(tmp_path)))["sums"]
    aux = ud.UDF.aux_data(sums / 16, "nav", dtype="float64")
    result = ud.run_udf(x, Subtract(str(tmp_path), aux))
    assert result.explain().passes == 1
    counts(tmp_path)  # dask has looked at the array while it was made
    for collections in ([result], [result, sums]):
        done = dask.compute(*collections, scheduler=how)
        assert set(counts(tmp_path).values()) == {1}
        np.testing.assert_allclose(done[0]["left"], 0, atol=1e-9)


@pytest.mark.point(24)
@pytest.mark.parametrize("gathered", [False, True])
def test_aux_from_a_whole_run_is_two_passes(tmp_path, gathered):
    data = np.random.default_rng(0).integers(0, 9, (6, 8, 4, 4))
    x = da.from_array(CountedData(data, tmp_path), chunks=(2, 4, 4, 4))
    if gathered:  # get_results runs once on all of it, so that each block of rows needs all chunks
        level = ud.run_udf(x, CountedChain(str(tmp_path)))["sums"] / 16.0
        expected = np.zeros((6, 8))
    else:
        mean = ud.run_udf(x, MeanFrame())["mean"].mean()
        level = da.broadcast_to(mean, (6, 8), chunks=(2, 4))
        expected = (data - data.mean()).sum(axis=(2, 3))
    aux = ud.UDF.aux_data(level, "nav", dtype="float64")
    result = ud.run_udf(x, Subtract(str(tmp_path), aux))
    assert result.explain().passes == 2
    counts(tmp_path)  # dask has looked at the array while it was made
    done = result.compute(**SYNC)
    seen = counts(tmp_path)
    assert {n for name, n in seen.items() if name.startswith("load")} == {2}
    assert {n for name, n in seen.items() if name.startswith("run")} == {1}
    np.testing.assert_allclose(done["left"], expected, atol=1e-9)


@pytest.mark.point(24)
def test_names_follow_the_values(x):
    def name(values, **options):
        aux = ud.UDF.aux_data(values, "nav", dtype="float64", **options)
        return ud.run_udf(x, Subtract("", aux))["left"].name

    ones = np.ones((4, 6))
    changed = ones.copy()
    changed[3, 5] = 2
    assert name(ones) == name(ones.copy())
    assert name(ones) != name(changed)
    assert name(da.from_array(ones)) != name(da.from_array(changed))


@pytest.mark.point(24)
def test_values_while_declaring(x):
    """The plan knows NumPy values; a worker, which has its rows only, takes the plan's word."""

    class Declares(ud.UDF):
        def __init__(self, n):
            super().__init__(n=n)

        def get_result_buffers(self):
            return {"v": self.buffer("nav", extra_shape=int(self.params.n.max()))}

        def process_frame(self, frame):
            self.results.v[:] = self.params.n

    n = np.arange(24).reshape(4, 6)
    done = ud.run_udf(x, Declares(ud.UDF.aux_data(n, "nav", dtype=n.dtype))).compute(**SYNC)
    np.testing.assert_array_equal(done["v"], np.broadcast_to(n[..., None], (4, 6, 23)))


UNKNOWN = da.ones(24, dtype="f4")[da.ones(24) > 0]


@pytest.mark.point(24)
@pytest.mark.parametrize(
    ("data", "arguments", "error", "message"),
    [
        (np.ones(24), {"kind": "frame"}, ud.ArgumentValueError, r"aux_data kind must be one of"),
        (np.ones(24), {"kind": "nav", "dtype": "f4"}, ud.ArgumentTypeError, "float32 was declared"),
        (dask.delayed(1), {"kind": "nav"}, ud.ArgumentTypeError, r"takes a NumPy or dask array"),
        (UNKNOWN, {"kind": "nav"}, ud.ArgumentValueError, "unknown shape.*compute_chunk_sizes"),
    ],
)
def test_bad_aux_data(data, arguments, error, message):
    with pytest.raises(error, match=message):
        ud.UDF.aux_data(data, **arguments)


@pytest.mark.point(24)
@pytest.mark.parametrize(("kind", "size"), [("nav", 23), ("sig", 16), ("single", 2)])
def test_wrong_size(x, kind, size):
    aux = ud.UDF.aux_data(np.ones(size), kind, dtype="float64")
    with pytest.raises(ud.ArgumentValueError, match=rf"params.level of kind '{kind}'.*\({size},\)"):
        ud.run_udf(x, Subtract("", aux))


@pytest.mark.parametrize("given", [(0, 4, 2), (0, 2)])
@pytest.mark.parametrize("lazy", [False, True])
def test_no_frames_at_all(given, lazy):
    """A scan axis may be empty; dask reshapes no array of several axes without elements."""
    values = da.zeros(given, chunks=2) if lazy else np.zeros(given)
    aux = ud.UDF.aux_data(values, kind="nav", extra_shape=(2,), dtype="float64")
    x = da.zeros((0, 4, 3), chunks=(1, 2, 3))

    def process_frame(self, frame):
        self.results.total[:] = self.params.aux.sum()

    udf = make({"total": {"kind": "nav"}}, process_frame=process_frame)(aux=aux)
    found = ud.run_udf(x, udf, sig_dims=1).compute(**SYNC)["total"]
    assert found.shape == (0, 4)
