"""Points 1 to 7: parameters, the life of a UDF on workers, hooks and methods."""

import threading

import numpy as np
import pytest

import udfdask as ud
from making import NAV, SYNC, compute, make
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


class SetsAttributes(ud.UDF):
    def __init__(self, a):
        self.before = a + 1
        super().__init__(a=a)
        self.after = self.params.a + 2

    def get_result_buffers(self):
        return {"v": self.buffer(kind="nav", extra_shape=(self.after,))}

    def process_frame(self, frame):
        self.results.v[:] = self.before * 10 + self.after


@pytest.mark.point(5)
@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_attributes_of_init(x, scheduler):
    done = ud.run_udf(x, SetsAttributes(1)).compute(scheduler=scheduler)
    assert done["v"].shape == (*NAV, 3)
    assert (done["v"] == 23).all()


@pytest.mark.point(5)
def test_mixins_and_lambdas_made_in_a_function(x):
    """Cooperative declarations, hooks found by name; all of it travels to other processes."""

    class Sums:
        def get_result_buffers(self):
            return {**super().get_result_buffers(), "s": self.buffer(kind="nav")}

    class Tops:
        def get_result_buffers(self):
            return {"t": self.buffer(kind="nav")}

        def postprocess(self):
            self.results.t += 1

    class Both(Sums, Tops, ud.UDF):
        def process_frame(self, frame):
            self.results.s = self.params.f(frame.sum())
            self.results.t = frame.max()

    done = ud.run_udf(x, Both(f=lambda v: -v)).compute(scheduler="processes", num_workers=2)
    data = x.compute(**SYNC)
    np.testing.assert_allclose(done["s"], -data.sum(axis=(2, 3)))
    np.testing.assert_array_equal(done["t"], data.max(axis=(2, 3)) + 1)


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
