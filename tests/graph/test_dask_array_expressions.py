"""Runs over arrays of the package dask-array: its arrays in and out, and one pass over the data."""

import importlib
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from dask.callbacks import Callback

import udfdask as ud
from counting import CountedData, counts
from udf_zoo import ZOO
from udfdask.analyses import (
    fit_lattice,
    integrated_dpc,
    parallax,
    single_side_band,
    strain_map,
)
from udfdask.corrections import CorrectionSet
from udfdask.demo import PhaseObject
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF

dx = pytest.importorskip("dask_array", reason="it is optional")
import udfdask.dask  # noqa: E402

SHAPE = (6, 8, 4, 5)
CHUNKS = (2, 4, 4, 5)
N_BLOCKS = 6


@pytest.fixture
def data():
    return np.random.default_rng(1).integers(0, 99, SHAPE)


@pytest.fixture
def source(data, folder):
    """Records each load of a block."""
    return CountedData(data, folder)


@pytest.fixture
def x(source, data):
    return dx.from_array(source, chunks=CHUNKS, meta=np.empty((0,) * 4, data.dtype))


def loads(folder):
    return sum(counts(folder).values())


def sums(array, **options):
    return ud.run_udf(array, SumSigUDF(), **options)["intensity"]


class Scaled(ud.UDF):
    def get_result_buffers(self):
        return {"scaled": self.buffer(kind="nav", dtype="float64")}

    def process_frame(self, frame):
        self.results.scaled[:] = frame.sum() * np.sum(self.params.factor)


def test_results_are_of_the_kind_of_the_data(x, data, folder):
    total = ud.run_udf(x, SumUDF())
    assert isinstance(total["intensity"], dx.Array)
    assert isinstance(total.valid_mask["intensity"], dx.Array)
    assert isinstance(sums(x), dx.Array)
    assert isinstance(ud.run_udf(x, SumSigUDF(), roi=(0, 1)).raw["intensity"], dx.Array)
    assert isinstance(sums(da.from_array(data)), da.Array)
    assert not loads(folder)
    np.testing.assert_array_equal(total["intensity"].compute(), data.sum(axis=(0, 1)))
    assert loads(folder) == N_BLOCKS


@pytest.mark.parametrize("udf", ZOO, ids=lambda udf: udf.__name__)
def test_all_kinds_of_runs_give_what_dask_arrays_give(udf):
    values = np.random.default_rng(2).integers(0, 99, SHAPE)
    roi = np.random.default_rng(3).random(SHAPE[:2]) < 0.5
    for chunks in (CHUNKS, (2, 4, 2, 5)):
        found = ud.run_udf(dx.from_array(values, chunks=chunks), udf(), roi=roi)
        expected = ud.run_udf(da.from_array(values, chunks=chunks), udf(), roi=roi)
        for name in expected:
            np.testing.assert_array_equal(found[name].compute(), expected[name].compute())
        assert found.compute().keys() == expected.keys()


def test_results_and_their_data_are_computed_in_one_pass(x, data, folder, options):
    total, deviation = ud.run_udf(x, [SumUDF(), StdDevUDF()])
    expected = data.sum(axis=(0, 1)), data.sum(), data.sum(axis=(2, 3))
    for compute in (dask.compute, ud.compute):
        found = compute(total["intensity"], x.sum(), sums(x), deviation, **options)
        assert loads(folder) == N_BLOCKS
        for one, other in zip(found, expected, strict=False):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(found[-1]["std"], data.std(axis=(0, 1)))
    total.compute(**options)
    assert loads(folder) == N_BLOCKS


def test_an_roi_needs_only_its_chunks(x, folder):
    sums(x, roi=(0, 0)).compute()
    assert loads(folder) == 1


def test_optimized_and_kept_results(x, data, folder, options):
    total, each = ud.run_udf(x, [SumUDF(), SumSigUDF()])
    one, two = dask.optimize(total["intensity"], each)
    assert not loads(folder)
    np.testing.assert_array_equal(one.compute(**options), data.sum(axis=(0, 1)))
    two = two["intensity"].compute(**options)
    np.testing.assert_array_equal(two, data.sum(axis=(2, 3)))
    assert loads(folder) == 2 * N_BLOCKS
    optimized = each["intensity"].optimize()
    np.testing.assert_array_equal(optimized.compute(**options), two)
    loads(folder)
    kept, array = ud.persist(total, each["intensity"], **options)
    assert isinstance(kept["intensity"], dx.Array)
    np.testing.assert_array_equal((kept["intensity"] + 1).compute(**options), one.compute() + 1)
    np.testing.assert_array_equal(array.compute(**options), two)
    assert loads(folder) == 2 * N_BLOCKS


@pytest.mark.parametrize("kinds", [(dx, dx), (dx, da), (da, dx)], ids=["dx-dx", "dx-da", "da-dx"])
def test_lazy_values_of_both_kinds(kinds, data):
    of_data, of_values = kinds
    array = of_data.from_array(data, chunks=CHUNKS)
    dark = of_values.from_array(np.arange(20.0).reshape(4, 5), chunks=2)
    factor = of_values.from_array(np.arange(48.0).reshape(6, 8), chunks=3)
    shifts = of_values.from_array(np.zeros((6, 8, 2)), chunks=2)
    aux = ud.UDF.aux_data(factor, kind="nav", dtype="float64")
    result = ud.run_udf(
        array,
        [Scaled(factor=aux), Scaled(factor=[factor.sum()])],
        corrections=CorrectionSet(dark=dark),
        descan=shifts,
    )
    own, shared = (one["scaled"] for one in result)
    assert isinstance(own, of_data.Array)
    frames = (data - np.arange(20.0).reshape(4, 5)).sum(axis=(2, 3))
    own, shared = ud.compute(own, shared)
    np.testing.assert_allclose(own, frames * np.arange(48).reshape(6, 8))
    np.testing.assert_allclose(shared, frames * np.arange(48).sum())


def test_no_block_of_data_is_the_result_of_a_task(x, data):
    """Processes would send it to the main process and back."""
    seen = []
    with Callback(posttask=lambda key, value, *_: seen.append(getattr(value, "shape", ()))):
        ud.compute(ud.run_udf(x + 1, SumSigUDF()), scheduler="synchronous")
    assert seen
    assert CHUNKS not in seen


def test_a_parameter_from_the_same_data(x, data, folder):
    """Values for each frame need no second pass; a value from all frames does."""
    means = sums(x) / 20
    nav = ud.UDF.aux_data(means, kind="nav", dtype="float64")
    found = ud.run_udf(x, Scaled(factor=nav))["scaled"].compute()
    np.testing.assert_allclose(found, data.sum(axis=(2, 3)) ** 2 / 20)
    assert loads(folder) == N_BLOCKS
    found = ud.run_udf(x, Scaled(factor=means.mean()))["scaled"].compute()
    np.testing.assert_allclose(found, data.sum(axis=(2, 3)) * data.mean())
    assert loads(folder) == 2 * N_BLOCKS


@pytest.mark.parametrize("kind", ["array", "dataset"])
def test_objects_of_xarray_as_parameters(kind, data):
    """Coordinates are computed with the values."""
    value = xr.DataArray(
        dx.arange(4, chunks=2), dims="u", coords={"c": ("u", dx.ones(4, chunks=3))}
    )
    value = value.to_dataset(name="a") if kind == "dataset" else value

    class Weighed(Scaled):
        def process_frame(self, frame):
            given = self.params.factor
            values = given["a"].values if kind == "dataset" else given.values
            self.results.scaled[:] = frame.sum() * (values @ given.coords["c"].values)

    found = ud.run_udf(da.from_array(data), Weighed(factor=value))["scaled"]
    np.testing.assert_array_equal(found.compute(), data.sum(axis=(2, 3)) * 6)


def test_corrections_with_labels_keep_their_order(data):
    """A transposed dark frame of square frames would fit as it is."""
    square = dx.from_array(data[..., :4], chunks=2)
    dark = xr.DataArray(dx.ones((4, 4), chunks=2), dims=("kx", "ky"))
    axes = [ud.Axis(name=name) for name in ("y", "x", "ky", "kx")]
    with pytest.raises(ud.ArgumentValueError, match="transpose"):
        ud.run_udf(square, SumUDF(), corrections=CorrectionSet(dark=dark), axes=axes)


def test_signals_over_expressions_are_refused(x):
    """HyperSpy would take the array for one in memory."""
    hs = pytest.importorskip("hyperspy.api")
    importlib.import_module("udfdask.hyperspy")
    with pytest.raises(ud.ArgumentTypeError, match=r"signal\.data"):
        hs.signals.Signal2D(x).as_lazy().udf.run_udf(SumUDF())


def test_placed_blocks_and_results_that_are_kept(client, data):
    """Blocks are loaded where they can be, chunk tasks run there, and results stay there."""
    workers = sorted(client.scheduler_info()["workers"])
    x = ud.on_workers(dx.from_array(data, chunks=CHUNKS), lambda block: workers[block[0] % 2])
    assert isinstance(x, dx.Array)
    np.testing.assert_array_equal(x.compute(scheduler="synchronous"), data)
    total, each = ud.run_udf(x, [SumUDF(), SumSigUDF()])
    *_, last = ud.run_udf_iter(x, SumUDF(), scheduler=client)
    np.testing.assert_array_equal(last.buffers[0]["intensity"], data.sum(axis=(0, 1)))
    kept, array = ud.persist(total, each["intensity"], scheduler=client)
    assert isinstance(kept["intensity"], dx.Array)
    futures = {key[1:]: future for key, future in array.expr.operand("layer").items()}
    found, plus_one, also = ud.compute(kept, array + 1, each, scheduler=client)
    np.testing.assert_array_equal(found["intensity"], data.sum(axis=(0, 1)))
    np.testing.assert_array_equal(plus_one, data.sum(axis=(2, 3)) + 1)
    np.testing.assert_array_equal(also["intensity"], data.sum(axis=(2, 3)))
    for (row, *_), future in futures.items():
        assert workers[row % 2] in client.who_has(future)[future.key]
    nowhere = ud.run_udf(ud.on_workers(dx.from_array(data), "tcp://10.0.0.7:1"), SumUDF())
    for start in (ud.persist, ud.compute):
        with pytest.raises(ud.ArgumentValueError, match="among"):
            start(nowhere, scheduler=client)
        with pytest.raises(ud.ArgumentValueError, match="gold"):
            start(total, scheduler=client, resources={"gold": 1})


def test_a_snapshot_a_map_and_an_explanation(x, data, folder):
    *_, last = ud.run_udf_iter(x, SumUDF())
    np.testing.assert_array_equal(last.buffers[0]["intensity"], data.sum(axis=(0, 1)))
    assert loads(folder) == N_BLOCKS
    assert ud.explain(x, SumUDF()).n_chunks == N_BLOCKS
    assert not loads(folder)
    importlib.reload(udfdask.dask)  # another test may have imported it before dask-array
    np.testing.assert_array_equal(x.udf.map_frames(np.max).compute(), data.max(axis=(2, 3)))
    np.testing.assert_array_equal(
        x.udf.run_udf(SumUDF(), merge_small="1 GB")["intensity"].compute(), data.sum(axis=(0, 1))
    )


def test_analyses_in_a_chain():
    """Disks, lattices and strain of noisy positions: each function makes its arrays of results."""
    orders = np.stack(np.mgrid[-2:3, -2:3], axis=-1).reshape(-1, 2)
    disks = (30, 32) + orders @ np.array([(12.0, 1.0), (-1.0, 12.4)])
    disks = disks + np.random.default_rng(0).normal(0, 0.05, (4, 6, 25, 2))

    def strain(module):
        positions = module.from_array(disks, chunks=(2, 6, 25, 2))
        lattice = fit_lattice(positions, weights=np.ones((4, 6, 25)))
        return lattice["a"], strain_map(lattice, reference=np.s_[:2])["exx"]

    found, expected = strain(dx), strain(da)
    assert all(isinstance(one, dx.Array) for one in found)
    for one, other in zip(dask.compute(*found), dask.compute(*expected), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "analyze",
    [
        integrated_dpc,
        partial(single_side_band, semiangle="20 mrad"),
        partial(parallax, semiangle="20 mrad", bin=4),
    ],
    ids=["integrated_dpc", "single_side_band", "parallax"],
)
def test_phases(analyze):
    thin = PhaseObject(nav_shape=(16, 16))
    frames = thin.array.compute()

    def phase(module):
        x = module.from_array(frames, chunks=(8, 16, *frames.shape[2:]))
        return analyze(x, axes=thin.axes, voltage="300 kV")["phase"]

    found = phase(dx)
    assert isinstance(found, dx.Array)
    np.testing.assert_array_equal(found.compute(), phase(da).compute())


def test_results_in_files(x, data, folder, tmp_path):
    result = ud.run_udf(x, SumSigUDF())
    with xr.open_zarr(result.to_zarr(tmp_path / "sums.zarr")) as saved:
        np.testing.assert_array_equal(saved["intensity"], data.sum(axis=(2, 3)))
    assert loads(folder) == N_BLOCKS
    with ud.cache(tmp_path / "cache"):
        for n_loads in (N_BLOCKS, 0):
            found, total = ud.compute(result, sums(x).sum())
            assert (total, loads(folder)) == (data.sum(), n_loads)
            np.testing.assert_array_equal(found["intensity"], data.sum(axis=(2, 3)))


def test_progress_counts_frames(x):
    states = []
    ud.compute(sums(x), progress=states.append)
    assert states[-1].num_frames_complete == 48


def test_data_arrays_after_registration(registered, x, data, folder):
    pytest.importorskip("udfdask.xarray")
    lazy = xr.DataArray(x, dims=("y", "x", "ky", "kx"))
    dataset = lazy.udf.run_udf(SumUDF())
    assert isinstance(dataset["intensity"].data, dx.Array)
    np.testing.assert_array_equal(dataset.compute()["intensity"], data.sum(axis=(0, 1)))
    assert loads(folder) == N_BLOCKS
    eager = xr.DataArray(data, dims=("y", "x", "ky", "kx")).udf.run_udf(SumUDF())
    np.testing.assert_array_equal(eager["intensity"], data.sum(axis=(0, 1)))
