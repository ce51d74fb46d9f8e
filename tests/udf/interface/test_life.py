"""Points 1 to 4: parameters and the life of a UDF on workers."""

import threading

import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make, mask_of
from udfdask.udfs import SumUDF


@pytest.mark.point(1)
def test_params():
    udf = ud.UDF(a=1, get=2, _hidden=3)
    assert (udf.params.a, udf.params["a"], udf.params._hidden) == (1, 1, 3)
    assert udf.params.get == 2  # its name hides the method
    assert ud.UDF(a=1).params.get("b", 5) == 5
    assert ud.UDF(a=1).params.get("a") == 1
    assert "a" in udf.params
    assert udf.xp is np
    with pytest.raises(ud.UDFError, match=r"parameters cannot be assigned"):
        udf.params.a = 2
    with pytest.raises(AttributeError, match=r"there is no parameter 'b'"):
        _ = udf.params.b


@pytest.mark.point(2, 10)
def test_task_data(x):
    def get_task_data(self):
        return {"first": self.meta.coordinates[0].copy(), "n": self.meta.partition_shape.nav[0]}

    def preprocess(self):
        if hasattr(self, "task_data"):  # not on the merging side
            self.results.v[:] = self.task_data["n"]

    def process_frame(self, frame):
        assert self.task_data.get("nothing", 7) == 7
        assert "first" in self.task_data
        self.results.v[:] += 100 * self.task_data.first.sum()

    udf = make(
        {"v": {"kind": "nav"}},
        get_task_data=get_task_data,
        preprocess=preprocess,
        process_frame=process_frame,
    )()
    expected = np.empty(NAV)
    for rows in (slice(0, 2), slice(2, 4)):
        for columns in (slice(0, 4), slice(4, 6)):
            n = 2 * (columns.stop - columns.start)
            expected[rows, columns] = n + 100 * (rows.start + columns.start)
    np.testing.assert_array_equal(compute(x, udf)["v"], expected)


@pytest.mark.point(1, 2, 4)
def test_order_of_calls_and_fresh_instances(x):
    calls, instances, inside = [], set(), threading.local()

    def note(self, name):
        calls.append(name)
        instances.add(id(self))
        inside.kept = [*getattr(inside, "kept", []), self]  # so that no id is used again

    udf = make(
        {"v": {"kind": "nav"}},
        get_task_data=lambda self: note(self, "task") or {},
        preprocess=lambda self: note(self, "pre"),
        process_partition=lambda self, partition: note(self, "process"),
        postprocess=lambda self: note(self, "post"),
        cleanup=lambda self: note(self, "cleanup"),
    )()
    before = dict(udf.__dict__)
    compute(x, udf)
    assert calls == ["task", "pre", "process", "post", "cleanup"] * 4
    assert len(instances) == 4
    assert id(udf) not in instances
    assert udf.__dict__ == before


@pytest.mark.point(1)
def test_state_does_not_leak(x):
    def process_frame(self, frame):
        self.count = getattr(self, "count", 0) + 1
        self.results.v[:] = self.count

    udf = make({"v": {"kind": "nav"}}, process_frame=process_frame)()
    done = compute(x, udf)["v"]
    assert done[:2, :4].reshape(-1).tolist() == list(range(1, 9))
    assert done[2:, 4:].reshape(-1).tolist() == list(range(1, 5))
    assert not hasattr(udf, "count")


@pytest.mark.point(4)
def test_one_instance_on_two_arrays_at_once(x):
    udf = SumUDF()
    a, b = ud.run_udf(x, udf), ud.run_udf((x + 1)[1:], udf, roi=(0, 0))
    a, b = ud.compute(a, b, scheduler="threads")
    np.testing.assert_allclose(a["intensity"], x.sum(axis=(0, 1)).compute(**SYNC))
    np.testing.assert_allclose(b["intensity"], x[1, 0].compute(**SYNC) + 1)


@pytest.mark.point(3)
def test_preprocess_on_the_merging_side(x):
    def preprocess(self):
        self.results.low[:] = np.inf

    def process_frame(self, frame):
        self.results.low[:] = min(self.results.low[0], frame.min() + 5)

    def merge(self, dest, src):
        dest.low = np.minimum(dest.low, src.low)

    buffers = {"low": {"kind": "single"}}
    udf = make(buffers, preprocess=preprocess, process_frame=process_frame, merge=merge)()
    assert compute(x, udf)["low"] == 5
    assert compute(x, udf, split_every=2)["low"] == 5
    assert compute(x, udf, roi=np.zeros(NAV, dtype=bool))["low"] == np.inf


class OwnOutput(ud.UDF):
    """Its __init__ makes of its argument what it passes on, and must take that again."""

    def __init__(self, width):
        super().__init__(width=tuple(np.atleast_1d(width)))

    def get_result_buffers(self):
        return {"v": self.buffer(kind="nav", extra_shape=self.params.width)}

    def process_frame(self, frame):
        self.results.v[:] = len(self.params.width)


@pytest.mark.point(1)
def test_init_runs_again_in_every_task(x):
    made = []

    class Counts(OwnOutput):
        def __init__(self, width):
            super().__init__(width)
            made.append(self.params.width)

    udf = Counts(3)
    done = ud.run_udf(x, udf)
    before = len(made)
    assert done.compute(**SYNC)["v"].shape == (*NAV, 3)
    assert len(made) - before == 4  # chunks
    assert set(made) == {(3,)}


@pytest.mark.point(1)
def test_parameters_of_any_name_reach_the_tasks(x):
    names = ["_one", "__two", "get", "keys", "items", "class"]
    seen = []

    class Hidden(ud.UDF):
        def get_result_buffers(self):
            return {"v": self.buffer(kind="nav")}

        def process_frame(self, frame):
            assert self.params._one == 0
            assert self.params.__two == 1  # which Python calls _Hidden__two
            seen.append([getattr(self.params, name) for name in names])
            seen.append([self.params[name] for name in names])

    compute(x, Hidden(**{name: number for number, name in enumerate(names)}))
    assert seen == [list(range(len(names)))] * 48


@pytest.mark.point(1)
def test_params_and_xp_right_after_super_init():
    class Early(ud.UDF):
        def __init__(self, a):
            super().__init__(a=a, b=2)
            self.sum = self.params.a + self.params.get("b") + self.params.get("c", 10)
            self.module = self.xp

    assert Early(1).sum == 13
    assert Early(1).module is np


@pytest.mark.point(2)
def test_what_exists_when_on_a_worker(x):
    """The order of the life of a UDF, and what each of its methods can ask."""
    log = []
    rows = mask_of(np.s_[1:, 1:5])

    class Life(ud.UDF):
        def __init__(self):
            super().__init__()
            log.append("__init__")
            assert not hasattr(self, "meta")

        def get_result_buffers(self):
            log.append("get_result_buffers")
            assert self.meta.dataset_shape == NAV + SIG
            assert not hasattr(self, "results")
            return {
                "v": self.buffer(kind="nav", extra_shape=(2,)),
                "w": self.buffer(kind="nav", use="private"),
            }

        def get_tiling_preferences(self):
            assert self.meta.device_class == "cpu"
            assert self.meta.threads_per_worker == 1
            self.asked = True
            return {"depth": 1}

        def get_task_data(self):
            log.append("get_task_data")
            assert self.asked
            assert not self.results.v.any()
            self.n = int(rows[self.chunk()].sum())
            assert self.meta.partition_shape == (self.n, *SIG)
            assert self.meta.partition_shape.nav == (self.n,)
            assert self.meta.slice.shape == (self.n, *SIG)
            return {"first": self.meta.coordinates[0]}

        def chunk(self):
            y, x = self.meta.coordinates[0] // (2, 4) * (2, 4)
            return np.s_[y : y + 2, x : x + 4]

        def whole(self):
            assert len(self.results.v) == len(self.results.w) == self.n
            assert self.meta.coordinates.shape == (self.n, 2)
            assert rows[tuple(self.meta.coordinates.T)].all()

        def preprocess(self):
            log.append("preprocess")
            assert (self.task_data.first == self.meta.coordinates[0]).all()
            self.whole()
            self.results.v[:] = 7

        def process_tile(self, tile):
            log.append("process_tile")
            assert (self.results.v == 7).all()
            assert self.results.v.shape == (1, 2)
            self.results.v += 1

        def postprocess(self):
            log.append("postprocess")
            self.whole()
            assert (self.results.v == 8).all()

        def cleanup(self):
            log.append("cleanup")

    lazy = ud.run_udf(x, Life(), roi=rows)
    log.clear()
    lazy.compute(**SYNC)
    lives = " ".join(log).split("__init__ ")[1:]
    assert len(lives) == 4
    begin, end = ["get_result_buffers", "get_task_data", "preprocess"], ["postprocess", "cleanup"]
    numbers = [len(life.split()) - 5 for life in lives]
    assert sorted(numbers) == [1, 2, 3, 6]
    for n, life in zip(numbers, lives, strict=True):
        assert life.split() == [*begin, *["process_tile"] * n, *end]


@pytest.mark.point(2)
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_buffers_start_as_zeros(x, method):
    def process(self, data):
        for name in ("n", "s", "o"):
            assert not getattr(self.results, name).any()

    buffers = {"n": {"kind": "nav"}, "s": {"kind": "sig"}, "o": {"kind": "single"}}
    udf = make(buffers, **{method: process}, merge=lambda self, dest, src: None)()
    assert not any(array.any() for array in compute(x, udf).values())


@pytest.mark.point(3)
@pytest.mark.parametrize("split_every", [2, False])
def test_preprocess_of_a_tree_sees_all_rows_that_will_be_merged(x, split_every):
    sizes = []

    def preprocess(self):
        sizes.append(len(self.results.n))
        assert self.meta.coordinates.shape == (sizes[-1], 2)
        self.results.n[:] = self.meta.coordinates[:, 0]
        self.results.o[:] = -1

    def merge(self, dest, src):
        assert (dest.n == self.meta.coordinates[:, 0]).all()
        dest.n[:] = src.n
        dest.o[:] = np.maximum(dest.o, src.o)

    udf = make(
        {"n": {"kind": "nav"}, "o": {"kind": "single"}},
        preprocess=preprocess,
        process_frame=lambda self, frame: None,
        merge=merge,
        merge_assigns_nav=True,
        split_every=split_every,
    )()
    done = compute(x, udf)
    assert done["o"] == -1
    np.testing.assert_array_equal(done["n"], np.indices(NAV)[0])
    # the chunks have 8, 4, 8, 4 rows
    nodes = [24] if split_every is False else [12, 12, 24]
    assert sorted(sizes) == sorted([8, 4, 8, 4, *nodes])


@pytest.mark.point(3)
def test_preprocess_of_a_chain(x):
    """Each link its own rows; sig and single buffers are those of the head."""

    def preprocess(self):
        self.results.n[:] = self.meta.coordinates[:, 1]
        self.results.o[:] += 1

    def merge(self, dest, src):
        assert (dest.n == self.meta.coordinates[:, 1]).all()
        dest.n += 10 * src.n
        dest.o += src.o

    udf = make(
        {"n": {"kind": "nav"}, "o": {"kind": "single"}},
        preprocess=preprocess,
        process_frame=lambda self, frame: None,
        merge=merge,
    )()
    done = compute(x, udf)
    np.testing.assert_array_equal(done["n"], 11 * np.indices(NAV)[1])
    assert done["o"] == 1 + 4  # once before the first of four chunks


@pytest.mark.point(4)
def test_the_instance_can_be_run_again(x, values):
    udf = make({"v": {"kind": "nav"}}, process_frame=lambda self, f: setattr(self, "gone", 1))()

    def process_frame(self, frame):
        self.note = frame.sum()
        self.results.v = self.note

    type(udf).process_frame = process_frame
    before = dict(udf.__dict__)
    half = compute(x, udf, roi=np.s_[:2])
    whole = compute(x, udf)
    line = compute(x[0], udf)
    assert udf.__dict__ == before
    sums = values.sum(axis=(2, 3))
    np.testing.assert_allclose(whole["v"], sums)
    np.testing.assert_allclose(half["v"][:2], sums[:2])
    assert np.isnan(half["v"][2:]).all()
    np.testing.assert_allclose(line["v"], sums[0])


@pytest.mark.point(2)
def test_cleanup_is_of_chunks(x):
    """Merges and get_results have no task data, and nothing to clean up."""
    closed = []

    udf = make(
        {"v": {"kind": "single", "dtype": "int64"}},
        get_task_data=lambda self: {"file": 1},
        process_frame=lambda self, frame: None,
        cleanup=lambda self: closed.append(self.task_data.file),
        merge=lambda self, dest, src: None,
        get_results=lambda self: {},
    )()
    compute(x, udf, split_every=2)
    assert closed == [1] * 4
