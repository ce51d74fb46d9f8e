"""`Result.udf`: the UDF after a run, as `get_results` of the whole run has it."""

import copy
import gc
import pickle
import weakref

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udfdask.corrections import CorrectionSet
from udfdask.testing import raise_if_dask_computes, run_reference
from udfdask.testing.strategies import rois
from udfdask.udfs import FEMUDF, ApplyMasksUDF, AutoUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

SYNC = {"scheduler": "synchronous"}
DATA = np.random.default_rng(0).random((3, 4, 5, 6)).astype(np.float32)
X = da.from_array(DATA, chunks=(2, 3, 5, 6))
FACTOR = np.arange(12, dtype=np.float32)
FACTS = ("dataset_shape", "dataset_dtype", "input_dtype", "partition_shape", "slice", "roi")
FACTS = (*FACTS, "sig_slice", "array_backend", "device_class", "threads_per_worker", "coordinates")


class Curious(ud.UDF):
    """Returns what it sees in `get_results`, over the whole run."""

    def __init__(self, factor, gain, seen):
        super().__init__(factor=factor, gain=gain, seen=seen)

    def get_result_buffers(self):
        return {"total": self.buffer(kind="nav", dtype="float32")}

    def get_shared_task_data(self):
        return {"shared": self.params.gain.sum()}

    def get_task_data(self):
        return {"rows": self.params.factor, "twice": 2 * self.task_data.shared}

    def process_frame(self, frame):
        self.results.total[:] = frame.sum() * self.params.factor

    def get_results(self):
        facts = {name: getattr(self.meta, name) for name in FACTS}
        mask = self.meta.get_valid_nav_mask(full_nav=True)
        facts |= {"mask": mask, "factor": self.params.factor, "gain": self.params.gain}
        self.params.seen.append(facts)
        return {}


class Seen(list):
    """A list that copies of parameters share."""

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return self


def curious(seen, factor=FACTOR, gain=None):
    gain = np.ones((5, 6)) if gain is None else gain
    return Curious(
        factor=ud.UDF.aux_data(factor, kind="nav", dtype="float32"),
        gain=ud.UDF.aux_data(gain, kind="sig", dtype="float64"),
        seen=seen,
    )


@given(st.data())
def test_it_sees_what_get_results_sees(source):
    roi, seen = source.draw(rois((3, 4))), Seen()
    lazy = ud.run_udf(X, curious(seen), roi=roi)
    with raise_if_dask_computes():
        before = lazy.udf
    done = lazy.compute(**SYNC)
    (wanted,) = seen
    for udf in (before, done.udf, run_reference(DATA, curious(Seen()), roi=roi).udf):
        assert type(udf) is Curious
        for name in FACTS:
            np.testing.assert_array_equal(getattr(udf.meta, name), wanted[name], err_msg=name)
        np.testing.assert_array_equal(udf.meta.get_valid_nav_mask(full_nav=True), wanted["mask"])
        for name in ("factor", "gain"):
            np.testing.assert_array_equal(getattr(udf.params, name), wanted[name])
    for udf in (before, done.udf):
        task_data = udf.get_task_data()
        np.testing.assert_array_equal(task_data["rows"], wanted["factor"])
        assert task_data["twice"] == 60


def test_it_is_not_the_instance_of_the_user():
    mask = np.ones((5, 6))
    udf = ApplyMasksUDF([mask])
    result = ud.run_udf(X, udf)
    mask[:] = 0
    assert result.udf is result.udf is not udf
    assert "meta" not in vars(udf)
    (own,) = result.udf.params.mask_factories
    assert own.sum() == 30
    own[:] = 0  # a copy: the run does not see it
    done = result.compute(**SYNC)
    np.testing.assert_allclose(done["intensity"][..., 0], DATA.sum(axis=(2, 3)), rtol=1e-5)
    assert done.udf.params.mask_factories[0].sum() == 30


def test_several_udfs_and_names():
    results = ud.run_udf(X, {"bright": SumUDF(), "sums": SumSigUDF("f8")})
    done = dict(zip(results, ud.compute(*results.values(), **SYNC), strict=True))
    assert type(done["bright"].udf) is SumUDF
    assert done["sums"].udf.params.dtype == "f8"


def test_lengths_are_in_pixels():
    axes = [ud.Axis(name=n, unit="nm") for n in "yx"]
    axes += [ud.Axis(name=n, unit="mrad", scale=0.5) for n in ("ky", "kx")]
    result = ud.run_udf(X, VirtualDetectorUDF("disk", r="1 mrad"), axes=axes)
    assert result.udf.params.r == 2
    assert result.udf.meta.axes == tuple(axes)


def test_the_data_are_let_go():
    source = da.from_array(DATA, chunks=2).map_blocks(np.copy)
    graph, lazy = weakref.ref(source.dask), ud.run_udf(source, SumUDF())
    assert lazy.udf.meta.dataset_shape == (3, 4, 5, 6)
    done, kept = lazy.compute(**SYNC), lazy.persist(**SYNC)
    assert done.udf.meta.dataset_shape == kept.udf.meta.dataset_shape == (3, 4, 5, 6)
    *_, last = ud.run_udf_iter(source, SumUDF(), **SYNC)
    result = last.buffers[0]
    assert result.udf.meta.dataset_shape == (3, 4, 5, 6)
    del source, lazy
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda lazy: curious(Seen(), factor=lazy.sum(axis=(2, 3)).astype("f4")),
        lambda lazy: curious(Seen(), gain=lazy.mean(axis=(0, 1)).astype("f8")),
        lambda lazy: AutoUDF(np.full_like, kwargs={"fill_value": lazy.mean()}),
    ],
    ids=["aux data of frames", "aux data of pixels", "inside a dictionary"],
)
def test_lazy_parameters_are_let_go(make):
    source = da.from_array(DATA, chunks=2).map_blocks(np.copy)
    graph = weakref.ref(source.dask)
    lazy = ud.run_udf(X, make(source))
    assert type(lazy.udf).__name__ == lazy.udf_name
    done = lazy.compute(**SYNC)
    assert type(lazy.udf).__name__ == lazy.udf_name  # also after the computation
    with pytest.raises(ud.UDFError, match=r"is a dask array.*use \.udf of the lazy result"):
        _ = done.udf
    del source, lazy
    gc.collect()
    assert graph() is None


def test_lazy_corrections():
    lazy = ud.run_udf(X, SumUDF(), corrections=CorrectionSet(dark=X.mean(axis=(0, 1))))
    assert lazy.udf.meta.corrections is not None
    with pytest.raises(ud.UDFError, match="corrections= is a dask array"):
        _ = lazy.compute(**SYNC).udf


def test_it_is_not_pickled():
    secret = np.arange(30.0).reshape(5, 6)
    done = ud.run_udf(X, ApplyMasksUDF([secret])).compute(**SYNC)
    sent = pickle.dumps(done)
    assert secret.tobytes() not in sent
    assert type(copy.deepcopy(done).udf) is type(copy.copy(done).udf) is ApplyMasksUDF
    (inside,) = dask.compute([ud.run_udf(X, SumUDF())], **SYNC)
    assert type(inside[0].udf) is SumUDF
    # in the process where it lives, which gets results back from a cluster
    assert pickle.loads(sent).udf.params.mask_factories[0] is not secret
    del done
    gc.collect()
    for again in (pickle.loads(sent), pickle.loads(pickle.dumps(pickle.loads(sent)))):
        with pytest.raises(ud.UDFError, match="comes from a pickle or from another process"):
            _ = again.udf


@pytest.mark.parametrize("scheduler", ["threads", "processes", "distributed"])
def test_on_each_scheduler(scheduler, request):
    how = {"scheduler": scheduler}
    if scheduler == "distributed":
        how = {"scheduler": request.getfixturevalue("client")}
    results = ud.run_udf(X, [FEMUDF(center=(2, 2), rad_in=0, rad_out=2), SumUDF()])
    first, second = ud.compute(*results, **how)
    assert first.udf.params.rad_out == 2
    assert second.udf.meta.get_valid_nav_mask().all()
    assert type(first["intensity"].data) is np.ndarray


def test_snapshots_have_new_parameters():
    iterator = ud.run_udf_iter(X, FEMUDF(center=(2, 2), rad_in=0, rad_out=2), **SYNC)
    first = next(iterator)
    assert first.buffers[0].udf.params.rad_out == 2
    iterator.update_parameters([{"rad_out": 3.0}])
    *_, last = iterator
    assert last.buffers[0].udf.params.rad_out == 3
    assert first.buffers[0].udf.meta.get_valid_nav_mask().sum() == first.damage.sum()
    assert last.buffers[0].udf.meta.get_valid_nav_mask().all()


def test_results_of_a_reference_run():
    found = run_reference(DATA, [SumUDF(), SumSigUDF()])
    assert [type(one.udf) for one in found] == [SumUDF, SumSigUDF]
    np.testing.assert_array_equal(found[0].udf.results.intensity, found[0]["intensity"])
