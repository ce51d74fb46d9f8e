"""Progressive runs over DataArrays: labeled snapshots."""

import asyncio

import numpy as np
import pytest

import udfdask as ud
from labelled_data import Kinds
from making import make
from udfdask.udfs import NoOpUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
labeled = pytest.importorskip("udfdask.xarray")

SIG = ("ky", "kx")


def test_the_last_snapshot_is_the_run(array):
    moved, roi = array.transpose("kx", "y", "x", "ky"), array["thickness"] > 2
    options = {"rename": {"sums": "s"}, "valid_masks": True}
    *_, last = moved.udf.run_udf_iter([Kinds(), SumUDF()], SIG, roi, **options)
    wanted = moved.udf.run_udf(
        [Kinds(), SumUDF()], SIG, roi, rename={"sums": "s"}, valid_masks=True
    )
    assert len(last.buffers) == 2
    for found, lazy in zip(last.buffers, wanted, strict=True):
        xr.testing.assert_identical(found, lazy.compute())


def test_each_snapshot_is_labelled_like_the_plain_one(array):
    labeled = array.udf.run_udf_iter(Kinds(), SIG, scheduler="synchronous")
    plain = ud.run_udf_iter(array.data, Kinds(), scheduler="synchronous")
    seen = 0
    for found, wanted in zip(labeled, plain, strict=True):
        seen += 1
        assert (found.n_merged, found.n_chunks) == (seen, 4)
        assert labeled.n_merged == seen
        assert found.damage.dims == ("y", "x")
        np.testing.assert_array_equal(found.damage, wanted.damage)
        assert set(found.damage.coords) == {"y", "x", "thickness"}
        for name, values in wanted.buffers[0].items():
            np.testing.assert_array_equal(found.buffers[0][name], values)
    assert seen == labeled.n_chunks == 4


def test_generations_are_labelled_like_the_damage(array):
    iterator = array.udf.run_udf_iter(SumUDF(), SIG, scheduler="synchronous")
    for snapshot in iterator:
        if snapshot.n_merged == 1:
            iterator.update_parameters([{}])
    generations = snapshot.generations
    xr.testing.assert_identical(
        generations.coords.to_dataset(), snapshot.damage.coords.to_dataset()
    )
    assert int(generations[0, 0]) == 0
    assert int(generations.max()) == 1
    assert snapshot.parameters == (({"dtype": None},), ({"dtype": None},))


def test_datasets_are_made_once_and_can_be_sliced(array):
    first = next(array.udf.run_udf_iter([SumUDF(), SumSigUDF()], SIG))
    assert first.buffers[0] is first.buffers[0]
    assert first.buffers[-1] is first.buffers[0:][1]
    assert repr(first) == "<LabeledSnapshot of SumUDF, SumSigUDF: 1 of 4 chunks>"


def test_a_udf_without_results(array):
    first, *_, last = array.udf.run_udf_iter(NoOpUDF(), SIG, scheduler="synchronous")
    xr.testing.assert_equal(first.buffers[0]["visited"], first.damage)
    assert int(first.damage.sum()) == 6
    assert bool(last.buffers[0]["visited"].all())


def test_parameters_change(array):
    udf = make(
        {"v": {"kind": "nav"}},
        process_frame=lambda self, frame: self.results.v.__setitem__(..., self.params.factor),
    )(factor=1)
    for update in ("update_parameters", "update_parameters_experimental"):
        snapshots = array.udf.run_udf_iter(udf, SIG, scheduler="synchronous")
        for last in snapshots:  # noqa: B007, read below
            getattr(snapshots, update)([{"factor": 5}])
        assert last.buffers[0]["v"].isel(y=-1, x=-1) == 5


def test_closing(array):
    with array.udf.run_udf_iter(SumUDF(), SIG) as snapshots:
        assert next(snapshots).n_merged == 1
    assert list(snapshots) == []


def test_in_an_event_loop(array):
    async def watch():
        seen = [s.n_merged async for s in array.udf.run_udf_iter(SumSigUDF(), SIG)]
        last = await array.udf.run_udf_iter(SumSigUDF(), SIG)
        closed = array.udf.run_udf_iter(SumSigUDF(), SIG)
        await anext(closed)
        await closed.aclose()
        return seen, last.buffers[0], [s async for s in closed]

    seen, found, rest = asyncio.run(watch())
    assert (seen, rest) == ([1, 2, 3, 4], [])
    np.testing.assert_array_equal(found["intensity"], array.sum(SIG))


def test_data_in_memory(array):
    (only,) = array.compute().udf.run_udf_iter(SumUDF(), SIG)
    xr.testing.assert_identical(only.buffers[0], array.udf.run_udf(SumUDF(), SIG).compute())


def test_an_argument_that_nobody_has(array):
    with pytest.raises(ud.ArgumentTypeError, match="no argument 'shceduler'"):
        array.udf.run_udf_iter(SumUDF(), SIG, shceduler="threads")
