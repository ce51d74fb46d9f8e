"""What reviews have found: each test failed once."""

import asyncio
import threading
from dataclasses import dataclass
from functools import partial

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import LATE
from udfdask.plan.plan import make_plan
from udfdask.udfs import SumSigUDF, SumUDF

SYNC = {"scheduler": "synchronous"}


def through_pickle(cls):
    """Return a class as it arrives in another process that does not know it."""
    twin = type(cls)(cls.__name__, cls.__bases__, {**vars(cls), "__module__": "__main__"})
    return cloudpickle.loads(cloudpickle.dumps(twin))


class OnlyAux(ud.UDF):
    """Allocates no buffer; its results are made of aux data alone."""

    def get_result_buffers(self):
        return {"double": self.buffer(kind="nav", use="result_only")}

    def process_frame(self, frame):
        pass

    def get_results(self):
        return {"double": 2 * self.params.a}


class OnlyAuxByChunk(OnlyAux):
    elementwise_results = True


@pytest.mark.parametrize("cls", [OnlyAux, OnlyAuxByChunk])
@pytest.mark.parametrize("roi", [None, np.s_[1:3, 2:5], np.zeros((4, 6), bool)])
def test_aux_reaches_get_results_without_allocated_buffers(cls, roi):
    array = da.ones((4, 6, 3, 3), chunks=(2, 3, 3, 3), dtype="float32")
    values = np.arange(24, dtype="float32").reshape(4, 6)
    result = ud.run_udf(array, cls(a=ud.UDF.aux_data(values, kind="nav")), roi=roi)
    wanted = values if roi is None else values[roi]
    np.testing.assert_array_equal(result.compute(**SYNC).raw["double"], 2 * wanted.reshape(-1))


class Loads:
    """An array of 8 chunks that counts how often each of them is loaded."""

    def __init__(self):
        self.counts = {}
        self._lock = threading.Lock()
        chunks = ((1,) * 8, (3,), (2,), (2,))
        self.array = da.map_blocks(self._load, chunks=chunks, dtype="float32")

    def _load(self, block_info=None):
        place = block_info[None]["chunk-location"]
        with self._lock:
            self.counts[place] = self.counts.get(place, 0) + 1
        return np.ones(block_info[None]["chunk-shape"], "float32")


class Minus(ud.UDF):
    def get_result_buffers(self):
        return {"rest": self.buffer(kind="nav")}

    def process_frame(self, frame):
        self.results.rest[:] = frame.sum() - self.params.a


MIDDLE = np.repeat((np.arange(8) >= 2) & (np.arange(8) < 6), 3).reshape(8, 3)


@pytest.mark.full
@pytest.mark.parametrize("roi", [None, MIDDLE])
def test_aux_of_a_run_with_a_roi_loads_each_chunk_once(roi):
    loads = Loads()
    sums = ud.run_udf(loads.array, SumSigUDF(), roi=MIDDLE)["intensity"]
    aux = ud.UDF.aux_data(sums, kind="nav")
    ud.run_udf(loads.array, Minus(a=aux), roi=roi)["rest"].compute(**SYNC)
    assert set(loads.counts.values()) == {1}


@pytest.mark.parametrize("roi", [None, MIDDLE])
def test_aux_of_a_part_of_the_data_is_a_pass_of_its_own(roi):
    array = Loads().array
    means = array.mean(axis=(2, 3))
    aux = ud.UDF.aux_data(means / means[2:6].mean(), kind="nav")
    assert make_plan(array, [Minus(a=aux)], roi=roi).second_pass


@pytest.mark.parametrize("kind", ["sig", None])
def test_a_parameter_made_from_what_the_data_are_made_of_is_a_pass_of_its_own(kind):
    raw = Loads().array
    mean = raw.mean(axis=(0, 1))
    value = mean if kind is None else ud.UDF.aux_data(mean, kind=kind)
    assert make_plan(2 * raw, [Minus(a=value)]).second_pass


@pytest.mark.parametrize(
    "part", [lambda a: a[1:], lambda a: a[:, 1:-1], lambda a: a.rechunk((4, -1, -1, -1))]
)
def test_a_second_pass_over_a_part_of_what_the_first_one_read(part):
    loads = Loads()
    total = ud.run_udf(2 * loads.array, SumUDF())["intensity"]
    rest = ud.run_udf(part(loads.array), Minus(a=total.sum() / total.size))["rest"]
    done = rest.compute(**SYNC)
    assert (done == 4 - 2 * 24).all()
    assert max(loads.counts.values()) == 2


def _smoothed(means):
    return da.map_overlap(lambda m: m.copy(), means, depth=(1, 0), boundary="reflect")


def _of_halves(means):
    return da.concatenate([m - m.mean() for m in (means[:4], means[4:])])


@pytest.mark.parametrize(
    ("chunk", "of_means", "loaded_twice"),
    [
        (1, lambda m: m - m.mean(), True),
        (4, lambda m: m - m.mean(), True),
        (1, da.ones_like, False),
        (1, lambda m: m[::-1], False),
        (1, lambda m: da.cumsum(m, axis=0), False),
        (1, _of_halves, False),
        (1, _smoothed, False),
        (3, _smoothed, False),
    ],
)
def test_data_are_loaded_twice_if_most_of_them_would_wait_for_aux(chunk, of_means, loaded_twice):
    array = Loads().array.rechunk((chunk, -1, -1, -1)).map_blocks(np.negative)
    aux = ud.UDF.aux_data(of_means(array.mean(axis=(2, 3))), kind="nav")
    assert make_plan(array, [Minus(a=aux)]).second_pass is loaded_twice


def test_data_are_loaded_twice_for_aux_of_parts_that_make_them():
    parts = [da.from_delayed(dask.delayed(np.ones)((1, 3, 2, 2)), (1, 3, 2, 2), float)] * 2
    parts += [da.ones((1, 3, 2, 2)) * k for k in range(6)]
    means = da.concatenate([part.mean(axis=(2, 3)) for part in parts])
    aux = ud.UDF.aux_data(means - means.mean(), kind="nav")
    assert make_plan(da.concatenate(parts), [Minus(a=aux)]).second_pass


def test_data_are_loaded_twice_for_aux_of_them_and_of_what_they_are_made_of():
    raw = Loads().array
    array = 2 * raw
    aux = ud.UDF.aux_data(array.mean(axis=(2, 3)) - raw.mean(), kind="nav")
    assert make_plan(array, [Minus(a=aux)]).second_pass


def test_data_in_few_blocks_are_loaded_twice_for_aux_of_all():
    raw = Loads().array.rechunk((4, -1, -1, -1)).persist(**SYNC)
    means = raw.mean(axis=(2, 3))
    aux = ud.UDF.aux_data(means - means.mean(), kind="nav")
    assert make_plan(raw.rechunk((1, -1, -1, -1)), [Minus(a=aux)]).second_pass


@pytest.mark.parametrize(
    "made",
    [
        lambda a, two: da.map_blocks(lambda block, by: block * by, a, by=two, dtype=a.dtype),
        lambda a, two: da.blockwise(
            lambda block, by: block * by[0], "abcd", a, "abcd", [two], None, dtype=a.dtype
        ),
    ],
    ids=["keyword", "list"],
)
@pytest.mark.parametrize("two", [dask.delayed(int)(2), da.full(2, 2, chunks=1).max()])
def test_a_second_pass_over_data_of_functions_with_lazy_arguments(made, two):
    loads = Loads()
    rest = ud.run_udf(made(loads.array, two), Minus(a=loads.array.mean()))["rest"]
    assert (rest.compute(**SYNC) == 2 * 4 - 1).all()
    assert max(loads.counts.values()) == 2


@pytest.mark.parametrize("kind", [None, "nav"])
def test_a_plan_leaves_no_keys_in_the_graphs_of_users(kind):
    array = da.ones((500, 3, 2, 2), chunks=(1, 3, 2, 2))
    means = array.mean(axis=(2, 3))
    value = array.mean() if kind is None else ud.UDF.aux_data(means - means.mean(), kind=kind)
    before = len(cloudpickle.dumps((array, means)))
    ud.run_udf(array, Minus(a=value))
    assert len(cloudpickle.dumps((array, means))) < 1.1 * before


class Applies(ud.UDF):
    def get_result_buffers(self):
        return {"y": self.buffer(kind="nav", dtype="float64")}

    def process_frame(self, frame):
        self.results.y[:] = self.params.model(frame.sum())


def notebook(code):
    """Run a cell of a notebook and return its names."""
    names = {"__name__": "__main__", "ud": ud, "dataclass": dataclass, "partial": partial}
    exec(code, names)
    return names


MODEL = """
@dataclass(frozen=True)
class Model:
    a: int = 2
    def __call__(self, x):
        return x {} self.a
"""

HELPED = """
def power(n, x):
    return x**n
helper = partial(power, {})
class Helped(ud.UDF):
    def get_result_buffers(self):
        return {{"y": self.buffer(kind="nav")}}
    def process_frame(self, frame):
        self.results.y[:] = helper(frame.sum())
"""


@pytest.mark.parametrize(
    ("cell", "edits", "make"),
    [
        (MODEL, "+*", lambda names: Applies(model=names["Model"]())),
        (HELPED, "12", lambda names: names["Helped"]()),
    ],
    ids=["dataclass as parameter", "partial of the module"],
)
def test_an_edited_cell_gives_another_name(cell, edits, make):
    array = da.ones((2, 3, 2, 2), chunks=1)
    before, again, after = (
        ud.run_udf(array, make(notebook(cell.format(e))))["y"].name for e in (edits[0], *edits)
    )
    assert before == again != after


@pytest.mark.point(24)
@pytest.mark.parametrize("wrap", [lambda a: a, da.from_array], ids=["numpy", "dask"])
def test_aux_data_lose_no_mask(wrap):
    masked = np.ma.masked_less(np.arange(24.0), 5)
    with pytest.raises(ud.UDFError, match="masked"):
        ud.UDF.aux_data(wrap(masked), kind="nav", dtype="float64")


def test_a_client_that_was_closed_before_more_chunks_are_sent():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        array = da.ones((30, 1, 2, 2), chunks=(1, 1, 2, 2))
        snapshots = ud.run_udf_iter(array, SumSigUDF(), scheduler=client)
        next(snapshots)
        client.close()
        with pytest.raises(ud.UDFRunCancelled, match="of 30 chunks"):
            list(snapshots)


class StopsInMerge(SumSigUDF):
    def merge(self, dest, src):
        if self.meta.coordinates[0, 0] == 2:
            next(iter(()))
        dest.intensity[:] = src.intensity


def stops_in_loading(block, block_info=None):
    if block_info and block_info[0]["chunk-location"][0] == 2:
        next(iter(()))
    return block


@pytest.mark.point(28)
@pytest.mark.parametrize("where", ["merge", "loading"])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_stray_stop_iteration_does_not_end_the_loop(where, scheduler):
    array = da.ones((6, 1, 2, 2), chunks=(1, 1, 2, 2))
    udf = StopsInMerge()
    if where == "loading":
        array, udf = array.map_blocks(stops_in_loading, dtype=float), SumSigUDF()

    async def loop():
        async for _ in ud.run_udf_iter(array, udf, scheduler=scheduler):
            pass

    with pytest.raises(ud.UDFError, match="StopIteration"):
        list(ud.run_udf_iter(array, udf, scheduler=scheduler))
    with pytest.raises(ud.UDFError, match="StopIteration"):
        asyncio.run(asyncio.wait_for(loop(), 20))


@pytest.mark.parametrize("value", [3, None, np.arange(3)], ids=["int", "None", "array"])
def test_a_parameter_that_is_delayed(value):
    class Gets(ud.UDF):
        def get_result_buffers(self):
            return {"same": self.buffer(kind="nav", dtype=bool)}

        def process_frame(self, frame):
            self.results.same[:] = np.array_equal(self.params.given, value)

    array = da.ones((2, 3, 2, 2), chunks=1)
    udfs = [Gets(given=dask.delayed(value)), Gets(given=dask.delayed(lambda: value)())]
    results = ud.run_udf(array, udfs)
    assert all(r["same"].all() for r in ud.compute(*results, **SYNC))
    *_, last = ud.run_udf_iter(array, udfs)
    assert all(r["same"].all() for r in last.buffers)


def test_a_udf_cannot_change_the_roi_of_the_run():
    class Greedy(ud.UDF):
        def get_result_buffers(self):
            return {"seen": self.buffer(kind="nav")}

        def process_frame(self, frame):
            self.meta.roi[:] = True

    array = da.ones((2, 3, 2, 2), chunks=1)
    with pytest.raises(ValueError, match="read-only"):
        ud.run_udf(array, Greedy(), roi=(0, 1)).compute(**SYNC)


class MaxOfFrame(SumSigUDF):
    """Does not do what its base promises of itself."""

    def process_tile(self, tile):
        peak = self.results.intensity
        np.maximum(peak, tile.max(axis=(1, 2)), out=peak)


class SumFromFive(SumSigUDF):
    def preprocess(self):
        self.results.intensity[:] = 5


@pytest.mark.filterwarnings("ignore:a task takes 9 signal chunks")
@pytest.mark.parametrize("transport", [lambda cls: cls, through_pickle], ids=["here", "sent"])
def test_a_subclass_of_a_built_in_udf_inherits_none_of_its_promises(transport):
    data = np.random.default_rng(0).integers(0, 99, (4, 3, 6, 6))
    array = da.from_array(data, chunks=(2, 3, 2, 2))
    udfs = [transport(MaxOfFrame)(), transport(SumFromFive)()]
    peak, total = ud.compute(*ud.run_udf(array, udfs), **SYNC)
    np.testing.assert_array_equal(peak["intensity"], data.max(axis=(2, 3)))
    np.testing.assert_array_equal(total["intensity"], data.sum(axis=(2, 3)) + 5)
    assert make_plan(array, [udfs[0]]).recipe.limits_threads


@pytest.mark.point(23)
@pytest.mark.parametrize("elementwise", [False, True])
def test_get_results_runs_once_on_no_frame(elementwise):
    calls = []

    class Notes(ud.UDF):
        elementwise_results = elementwise

        def get_result_buffers(self):
            return {"v": self.buffer("nav"), "w": self.buffer("nav")}

        def process_frame(self, frame):
            raise AssertionError("there is none")

        def get_results(self):
            calls.append(self.results.v.shape)
            return {"w": self.results.v}

    x = da.ones((4, 6, 2, 2), chunks=(2, 3, 2, 2))
    done = ud.run_udf(x, Notes(), roi=np.zeros((4, 6), bool)).compute(scheduler="synchronous")
    assert calls == [(0,)]
    assert np.isnan(done["v"]).all()


@pytest.mark.point(14, 16)
def test_valid_nav_mask_chunk_by_chunk():
    """As long as the rows that get_results sees."""

    class Masked(ud.UDF):
        elementwise_results = True

        def get_result_buffers(self):
            return {"v": self.buffer("nav")}

        def process_frame(self, frame):
            self.results.v[:] = frame.sum()

        def get_results(self):
            mask = self.meta.get_valid_nav_mask()
            assert self.meta.get_valid_nav_mask(full_nav=True).shape == (24,)
            return {"v": self.with_mask(self.results.v, mask)}

    x = da.ones((4, 6, 2, 2), chunks=(2, 3, 2, 2))
    roi = np.zeros((4, 6), bool)
    roi[1:3, 2:5] = True
    for chosen in (None, roi):
        done = ud.run_udf(x, Masked(), roi=chosen).compute(scheduler="synchronous")
        inside = np.ones((4, 6), bool) if chosen is None else chosen
        np.testing.assert_array_equal(done.valid_mask["v"], inside)
        *_, last = ud.run_udf_iter(x, Masked(), roi=chosen)
        np.testing.assert_array_equal(last.buffers[0].valid_mask["v"], inside)


@pytest.mark.point(28, 30)
def test_objects_are_merged_in_navigation_order():
    """Chunks may end in any order; lists are put behind each other as in run_udf."""
    late = threading.Event()

    class Collects(ud.UDF):
        def get_result_buffers(self):
            return {"o": self.buffer("single", dtype=object)}

        def process_frame(self, frame):
            place = int(self.meta.coordinates[0, 0])
            if place == 0:
                late.wait(LATE)
            if place == 3:
                late.set()
            self.results.o[0] = (*(self.results.o[0] or ()), place)

        def merge(self, dest, src):
            dest.o[0] = (dest.o[0] or ()) + src.o[0]

    x = da.ones((8, 1, 2, 2), chunks=(1, 1, 2, 2))
    *_, last = ud.run_udf_iter(x, Collects(), scheduler="threads", num_workers=2)
    assert last.buffers[0]["o"].item() == tuple(range(8))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_a_layer_of_data_and_tasks(scheduler):
    """Random numbers whose parameter is an array, which dask keeps in the layer of the blocks."""
    rates = np.arange(1, 25.0).reshape(2, 3, 2, 2)
    x = da.random.default_rng(1).poisson(rates, size=rates.shape, chunks=(1, 3, 2, 2))
    lazy = ud.run_udf(x, [SumUDF(), SumSigUDF()])
    found, each = ud.compute(*lazy, scheduler=scheduler, num_workers=1)
    values = x.compute(scheduler="synchronous")
    np.testing.assert_array_equal(found["intensity"], values.sum(axis=(0, 1)))
    np.testing.assert_array_equal(each["intensity"], values.sum(axis=(2, 3)))
