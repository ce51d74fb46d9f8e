"""Parameters and aux data that change during a run."""

import dask.array as da
import numpy as np
import pytest

import progressive_udfs as pu
import udfdask as ud
from aux_udfs import AUX_UDFS, SeenByMergeAll, SeenByTiles, Shared
from counting import counts
from progressive_cases import ROI, SHAPE, assert_same, local, long_array, seen
from udfdask.udfs import SumUDF

pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


@pytest.mark.point(29)
class TestParameters:
    def test_from_the_next_chunk_on(self, options):
        udf = pu.Scaled(1, step=1)
        iterator = ud.run_udf_iter(long_array(), [SumUDF(), udf], **options)
        for snapshot in iterator:
            n = snapshot.n_merged
            if n == 5:
                iterator.update_parameters([{}, {"factor": 2, "step": 1000}])
            if n == 50:
                iterator.update_parameters_experimental([{}, {"factor": 3}])
        factors = snapshot.buffers[1]["factor"].ravel()
        assert set(factors) == {1, 2, 3}
        assert 5 <= (factors == 1).sum() <= 5 + 8
        assert 45 - 8 <= (factors == 2).sum() <= 45 + 8
        assert snapshot.buffers[1]["steps"] == 5 + 195 * 1000
        assert udf.params.factor == 1

    @local
    def test_of_a_chunk_that_starts_later(self, local):
        """No chunk starts with old parameters after update_parameters has returned."""
        gates = pu.Gates("parameters")

        iterator = ud.run_udf_iter(long_array(40), pu.Sees(gates.name, 1), **local)
        for snapshot in iterator:
            if snapshot.n_merged == 4:
                iterator.update_parameters([{"value": 2}])
                before = len(gates.started)
        # the UDF reads its parameters just before it reports its start
        workers = local.get("num_workers", 1)
        assert (snapshot.buffers[0]["place"] == 1).sum() <= before + workers

    def test_lazy_ones(self, options):
        x = da.ones((6, 1, 2, 2), chunks=(2, 1, 2, 2))
        table = da.arange(4, chunks=2) + 1
        udf = pu.WithTable(table=table)
        expected = ud.run_udf(x, udf).compute(scheduler="synchronous")
        *_, last = ud.run_udf_iter(x, udf, **options)
        np.testing.assert_array_equal(last.buffers[0]["v"], expected["v"])
        # a progressive run merges chunk by chunk, run_udf in a tree
        assert last.buffers[0]["total"] == 24 + 3 * 4
        mean = pu.WithTable(table=x.mean(axis=(0, 1)).ravel())  # computed from the same data
        *_, last = ud.run_udf_iter(x, mean, **options)
        assert (last.buffers[0]["v"] == 4).all()

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ([{}], ud.ArgumentValueError),
            ([{}, {}, {}], ud.ArgumentValueError),
            ({"n": 1}, ud.ArgumentTypeError),
            ([5, {}], ud.ArgumentTypeError),
            ([{"factor": 9}, {"nn": 1}], ud.ArgumentValueError),
            ([{"factor": 9}, {"n": 7}], ud.ArgumentValueError),
            ([{"factor": 9}, {"dtype": "complex64"}], ud.ArgumentValueError),
            ([{"factor": 9}, None], ud.ArgumentTypeError),
            ([{"factor": 9}, {"n": da.ones(3)}], ud.ArgumentTypeError),
        ],
    )
    def test_mistakes_change_nothing(self, x, changes, error):
        iterator = ud.run_udf_iter(x, [pu.Scaled(1), pu.ParameterDecides(2)], scheduler="sync")
        next(iterator)
        with pytest.raises(error):
            iterator.update_parameters(changes)
        *_, last = iterator
        assert (last.buffers[0]["factor"] == 1).all()


def aux_of_ones(n, kind="nav", lib=np):
    return ud.UDF.aux_data(lib.ones(n), kind, dtype="f8")


@pytest.mark.point(29)
class TestAuxData:
    @pytest.mark.parametrize("lazy", [False, True])
    def test_right_part_in_every_hook(self, x, options, lazy):
        wrap = (lambda a: da.from_array(a, chunks=2)) if lazy else (lambda a: a)
        classes = [c for c in AUX_UDFS if c is not SeenByMergeAll]
        udfs = [seen(SHAPE, cls, wrap) for cls in classes]
        expected = ud.compute(*ud.run_udf(x, udfs, roi=ROI), scheduler="synchronous")
        *_, last = ud.run_udf_iter(x, udfs, roi=ROI, **options)
        assert_same(last.buffers, *expected)

    def test_by_merge_all(self, x):
        """A progressive run uses its inherited merge."""
        for udf in (seen(SHAPE, SeenByMergeAll), seen(SHAPE, pu.SeenByMergeAllOnly)):
            *_, last = ud.run_udf_iter(x, udf, roi=ROI)
            assert_same(last.buffers, ud.run_udf(x, udf, roi=ROI).compute())

    def test_in_every_snapshot(self, x):
        """get_results sees aux data of all frames, also of frames that are not merged yet."""
        for snapshot in ud.run_udf_iter(x, [seen(SHAPE), seen(SHAPE, SeenByTiles)], roi=ROI):
            for result in snapshot.buffers:
                assert list(result) == ["weighted", "total", "last", "done"]

    def test_updated(self, options):
        x = da.ones((60, 1, 2, 2), chunks=(1, 1, 2, 2))
        rows = np.arange(60.0)
        aux = ud.UDF.aux_data
        iterator = ud.run_udf_iter(x, pu.Dose(aux(rows, "nav", dtype="float64")), **options)
        for snapshot in iterator:
            if snapshot.n_merged == 5:
                new = aux(rows[:, None] + 1000, "nav", dtype="float64")
                iterator.update_parameters([{"dose": new}])
        dose = snapshot.buffers[0]["dose"].ravel()
        old = dose < 1000
        assert 5 <= old.sum() <= 5 + 8
        np.testing.assert_array_equal(dose, np.where(old, rows, rows + 1000))
        # get_results sees the same values as the chunks
        np.testing.assert_array_equal(snapshot.buffers[0]["again"].ravel(), dose)

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"dose": np.ones(5)}, ValueError),
            ({"dose": aux_of_ones(5, "sig")}, ValueError),
            ({"dose": aux_of_ones(7)}, ValueError),
            ({"dose": aux_of_ones(5, lib=da)}, ud.ArgumentTypeError),
            ({"other": aux_of_ones(5)}, ValueError),
        ],
    )
    def test_mistakes(self, change, error):
        x = da.ones((5, 1, 2, 2), chunks=(1, 1, 2, 2))
        udf = pu.Dose(ud.UDF.aux_data(np.zeros(5), "nav", dtype="float64"))
        iterator = ud.run_udf_iter(x, udf)
        with pytest.raises(error):
            iterator.update_parameters([change])
        *_, last = iterator
        assert not last.buffers[0]["dose"].any()


@local
def test_shared_task_data_follow_their_parameters(local, tmp_path):
    x = da.ones((60, 1, 2, 2), chunks=(1, 1, 2, 2))
    iterator = ud.run_udf_iter(x, Shared(str(tmp_path), np.ones(1)), **local)
    for snapshot in iterator:
        if snapshot.n_merged == 5:
            iterator.update_parameters([{"table": np.full(1, 3.0)}])
    v = snapshot.buffers[0]["sums"].ravel()
    assert set(v) == {2.0, 6.0}
    assert 5 <= (v == 2).sum() <= 5 + 8
    assert counts(tmp_path)["shared"] == 2
