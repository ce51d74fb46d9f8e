"""How partial results are merged: shape of the trees, order, and merges that are refused."""

import math

import dask
import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud


def chunked(n, sig=(2, 2), dtype="int64"):
    """An array of n frames, each a chunk, the k-th full of k; quick to build."""
    graph = {
        ("frames", k, *(0 for _ in sig)): (np.full, (1, *sig), k, np.dtype(dtype)) for k in range(n)
    }
    return da.Array(graph, "frames", ((1,) * n, *((s,) for s in sig)), dtype=dtype)


def depth(array):
    """Longest path through the graph of a dask array, in tasks."""
    graph = dict(array.__dask_graph__())
    dependencies = {k: getattr(t, "dependencies", frozenset()) for k, t in graph.items()}
    length: dict = {}
    for start in graph:
        stack = [start]
        while stack:
            key = stack[-1]
            todo = [d for d in dependencies[key] if d in graph and d not in length]
            if key not in length and not todo:
                below = [length[d] for d in dependencies[key] if d in graph]
                length[key] = 1 + max(below, default=0)
            if todo:
                stack += todo
            else:
                stack.pop()
    return max(length.values())


class MergeAllSum(ud.UDF):
    def get_result_buffers(self):
        return {"total": self.buffer("sig", dtype="float64")}

    def process_frame(self, frame):
        self.results.total += frame

    def merge_all(self, ordered_results):
        return {"total": sum(p.total for p in ordered_results.values())}


@pytest.mark.parametrize("udf", [udf_zoo.TileTree(), udf_zoo.AssigningTree(), MergeAllSum()])
@pytest.mark.parametrize("n", [2, 9, 64, 65, 300])
def test_depth_grows_with_the_logarithm(udf, n):
    fan_in = type(udf).split_every or 8
    total = ud.run_udf(chunked(n), udf)["total"]
    levels = math.ceil(math.log(n, fan_in) - 1e-9)
    # loading, chunk, merges, output
    assert depth(total) == 3 + levels
    wanted = np.full((2, 2), n * (n - 1) // 2)
    np.testing.assert_array_equal(total.compute(scheduler="sync"), wanted)


def test_split_every_false_is_one_merge():
    total = ud.run_udf(chunked(100), udf_zoo.TileTree(), split_every=False)["total"]
    assert depth(total) == 4
    assert total.compute(scheduler="sync")[0, 0] == 4950


def test_nav_only_has_no_reduction():
    sums = ud.run_udf(chunked(50), udf_zoo.NavSums())["sums"]
    assert depth(sums) == 3
    assert not [name for name in sums.dask.layers if "merge" in name]


def merges(result):
    """Number of merge tasks of a lazy result."""
    return sum(len(layer) for name, layer in result.dask.layers.items() if "-merge-" in name)


@pytest.mark.point(32)
class TestFanIn:
    def test_eight_by_default(self):
        assert merges(ud.run_udf(chunked(64), udf_zoo.TileTree())["total"]) == 9

    def test_argument(self):
        total = ud.run_udf(chunked(64), udf_zoo.TileTree(), split_every=4)["total"]
        assert merges(total) == 16 + 4 + 1

    def test_config(self):
        with dask.config.set({"udfdask.split-every": 2}):
            total = ud.run_udf(chunked(64), udf_zoo.TileTree())["total"]
        assert merges(total) == 63
        with dask.config.set({"udfdask.split-every": False}):
            total = ud.run_udf(chunked(64), udf_zoo.TileTree())["total"]
        assert merges(total) == 1

    def test_the_argument_wins_over_config(self):
        with dask.config.set({"udfdask.split-every": 2}):
            total = ud.run_udf(chunked(64), udf_zoo.TileTree(), split_every=8)["total"]
        assert merges(total) == 9

    def test_the_class_attribute_wins_over_both(self):
        with dask.config.set({"udfdask.split-every": 8}):
            total = ud.run_udf(chunked(64), udf_zoo.NarrowTree(), split_every=4)["total"]
        assert merges(total) == 63
        total = ud.run_udf(chunked(64), udf_zoo.PartitionTree(), split_every=4)["total"]
        assert merges(total) == 1

    @pytest.mark.parametrize("wrong", [1, 0, -3])
    def test_too_small(self, wrong):
        with pytest.raises(ud.ArgumentValueError, match="at least 2, or False"):
            ud.run_udf(chunked(4), udf_zoo.TileTree(), split_every=wrong)

    @pytest.mark.parametrize("wrong", [True, 2.5, "8"])
    def test_no_number(self, wrong):
        with pytest.raises(ud.ArgumentTypeError, match="an int of at least 2, or False"):
            ud.run_udf(chunked(4), udf_zoo.TileTree(), split_every=wrong)

    def test_wrong_on_the_class(self):
        class Wrong(udf_zoo.TileTree):
            split_every = 1

        with pytest.raises(ud.ArgumentValueError, match=r"Wrong\.split_every must be at least 2"):
            ud.run_udf(chunked(4), Wrong())


class OrderedChain(ud.UDF):
    """Numbers its frames with the number of rows merged before."""

    def get_preferred_input_dtype(self):
        return np.int64

    def get_result_buffers(self):
        return {
            "value": self.buffer("nav", dtype="int64"),
            "number": self.buffer("nav", dtype="int64"),
            "count": self.buffer("single", dtype="int64"),
        }

    def process_frame(self, frame):
        self.results.value[:] = frame.flat[0]
        self.results.count += 1

    def merge(self, dest, src):
        dest.value[:] = src.value
        dest.number[:] = dest.count + np.arange(len(src.number))
        dest.count += src.count


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_chain_runs_in_navigation_order(scheduler):
    result = ud.run_udf(chunked(300), OrderedChain()).compute(scheduler=scheduler)
    np.testing.assert_array_equal(result["number"], np.arange(300))
    np.testing.assert_array_equal(result["value"], np.arange(300))
    assert result["count"] == 300


@pytest.mark.full
def test_a_chain_of_ten_thousand_links():
    n = 10_000
    result = ud.run_udf(chunked(n, sig=(1,)), OrderedChain(), sig_dims=1)
    assert depth(result["count"]) == n + 3
    done = result.compute(scheduler="sync")
    np.testing.assert_array_equal(done["number"], np.arange(n))
    assert done["count"] == n


class Order(ud.UDF):
    """Merges strings: neither order nor grouping may change."""

    def get_result_buffers(self):
        return {"word": self.buffer("single", dtype=object)}

    def preprocess(self):
        self.results.word[:] = ""

    def process_frame(self, frame):
        self.results.word[0] += f"{int(frame.flat[0])},"

    def merge(self, dest, src):
        dest.word[0] += src.word[0]


@pytest.mark.parametrize("split_every", [2, 3, 8, False])
def test_a_tree_keeps_navigation_order(split_every):
    result = ud.run_udf(chunked(40), Order(), split_every=split_every)
    word = result.compute(scheduler="threads")["word"].item()
    assert word == "".join(f"{k}," for k in range(40))


class Average(ud.UDF):
    """An average of averages: right in one step over chunks of equal size, wrong in a tree."""

    def get_result_buffers(self):
        return {"mean": self.buffer("sig", dtype="float64")}

    def process_partition(self, partition):
        self.results.mean[:] = partition.mean(axis=0)

    def merge_all(self, ordered_results):
        return {"mean": np.mean([p.mean for p in ordered_results.values()], axis=0)}


class Median(Average):
    def process_partition(self, partition):
        self.results.mean[:] = np.median(partition, axis=0)

    def merge_all(self, ordered_results):
        return {"mean": np.median([p.mean for p in ordered_results.values()], axis=0)}


class Forgetful(ud.UDF):
    """merge_all leaves out the count."""

    def get_result_buffers(self):
        return {
            "total": self.buffer("sig", dtype="float64"),
            "count": self.buffer("single", dtype="int64"),
        }

    def process_partition(self, partition):
        self.results.total[:] = partition.sum(axis=0)
        self.results.count[:] = len(partition)

    def merge_all(self, ordered_results):
        return {"total": sum(p.total for p in ordered_results.values())}


@pytest.mark.parametrize("udf", [Average(), Median()])
@pytest.mark.parametrize("n", [3, 8, 20, 65])
def test_what_is_not_associative_is_refused_in_a_tree(udf, n):
    squares = chunked(n) ** 2  # the median of medians of 0, 1, 2, ... might be right by luck
    result = ud.run_udf(squares, udf)
    with pytest.raises(ud.UDFError, match="split_every=False") as caught:
        result.compute(scheduler="threads")
    assert type(udf).__name__ in str(caught.value)
    done = ud.run_udf(squares, udf, split_every=False).compute(scheduler="threads")
    wanted = {"Average": np.mean, "Median": np.median}[type(udf).__name__](np.arange(n) ** 2)
    np.testing.assert_allclose(done["mean"], wanted)


def test_a_buffer_left_out_is_refused_in_a_tree():
    with pytest.raises(ud.UDFError, match=r"'count'.*split_every=False"):
        ud.run_udf(chunked(3), Forgetful()).compute()
    done = ud.run_udf(chunked(3), Forgetful(), split_every=False).compute()
    assert done["count"] == 0
    assert done["total"][0, 0] == 3


def test_a_class_may_say_so_itself():
    class Once(Median):
        split_every = False

    assert ud.run_udf(chunked(7), Once(), split_every=8).compute()["mean"][0, 0] == 3


def test_rounding_is_no_disagreement():
    data = np.random.default_rng(0).normal(0, 1e6, (40, 3, 3))
    result = ud.run_udf(da.from_array(data, chunks=(1, 3, 3)), MergeAllSum()).compute()
    np.testing.assert_allclose(result["total"], data.astype("f4").sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_nor_is_that_of_numbers_with_an_infinite_part(seed):
    class Complex(MergeAllSum):
        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def get_result_buffers(self):
            return {"total": self.buffer("sig", dtype="complex128")}

    real, imag = np.random.default_rng(seed).normal(size=(2, 12, 3, 3))
    data = real + 1j * imag
    data[0] = complex(np.inf, 0.3)
    result = ud.run_udf(da.from_array(data, chunks=(1, 3, 3)), Complex()).compute()
    np.testing.assert_array_equal(result["total"].real, np.inf)
    np.testing.assert_allclose(result["total"].imag, data.imag.sum(axis=0))


def test_merge_gets_what_it_may_write_to():
    class Rude(udf_zoo.TileTree):
        split_every = 2

        def merge(self, dest, src):
            super().merge(dest, src)
            src.total[:] = -1
            src.count[:] = -1

    lazy = ud.run_udf(chunked(9), Rude())
    (kept,) = ud.persist(lazy)
    for _ in range(2):
        np.testing.assert_array_equal(kept.compute()["total"], np.full((2, 2), 36))
        assert lazy.compute(scheduler="threads")["count"] == 9


@pytest.mark.point(16)
def test_valid_nav_mask_in_a_merge():
    class Masks(ud.UDF):
        def get_result_buffers(self):
            return {
                "before": self.buffer("nav", dtype="int64"),
                "count": self.buffer("single", dtype="int64"),
                "seen": self.buffer("single", dtype="int64", use="result_only"),
            }

        def process_frame(self, frame):
            assert self.meta.get_valid_nav_mask() is None

        def merge(self, dest, src):
            mask = self.meta.get_valid_nav_mask()
            dest.before[:] = mask.sum()
            dest.count += 1
            assert len(self.meta.coordinates) == len(src.before) == len(dest.before)

        def get_results(self):
            return {"seen": self.meta.get_valid_nav_mask(full_nav=True).sum()}

    result = ud.run_udf(chunked(12), Masks()).compute()
    np.testing.assert_array_equal(result["before"], np.arange(12))
    assert result["seen"] == 12


def test_a_wrong_merge_all_is_found_where_the_scan_begins_with_vacuum():
    """The first group of chunks is constant, where an average of averages cannot be told."""
    data = np.zeros((12, 2, 2))
    data[8:] = np.arange(4.0)[:, None, None]
    array = da.from_array(data, chunks=(1, 2, 2))

    class MeanOfMeans(ud.UDF):
        def get_result_buffers(self):
            return {"mean": self.buffer(kind="sig", dtype="float64")}

        def process_partition(self, partition):
            self.results.mean[:] = partition.mean(axis=0)

        def merge_all(self, ordered_results):
            return {"mean": np.mean([p.mean for p in ordered_results.values()], axis=0)}

    with pytest.raises(ud.UDFError, match="split_every=False"):
        ud.run_udf(array, MeanOfMeans()).compute(scheduler="synchronous")
    done = ud.run_udf(array, MeanOfMeans(), split_every=False).compute(scheduler="synchronous")
    np.testing.assert_allclose(done["mean"], data.mean(axis=0))
