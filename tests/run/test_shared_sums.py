"""UDFs that share the sums of a tile give the same results as in runs of their own."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.chunk.run_chunk import run_chunk
from udfdask.corrections import CorrectionSet
from udfdask.testing.eager_run import make_recipe
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

DTYPES = ["u2", "?", "u1", "i2", ">u2", "u4", "f2", ">f8", "f4"]
NAV, SIG = (5, 6), (12, 10)


def four():
    return [SumUDF(), SumSigUDF(), StdDevUDF(), CoMUDF()]


def data(dtype, nav=NAV, sig=SIG):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2 if dtype == "?" else 100, (*nav, *sig)).astype(dtype)


def same(x, udfs, **options):
    together = ud.compute(*ud.run_udf(x, udfs, **options), scheduler="sync")
    for udf, result in zip(udfs, together, strict=True):
        alone = ud.run_udf(x, udf, **options).compute(scheduler="sync")
        for name in alone:
            if alone[name].dtype.kind in "iub" or (udf.__class__ is SumUDF and x.dtype.kind != "f"):
                np.testing.assert_array_equal(result[name], alone[name], err_msg=name)
            else:
                scale = np.nanmax(np.abs(alone[name]), initial=1e-300)
                rounding = 1e-6 if alone[name].dtype == np.float32 else 1e-11
                np.testing.assert_allclose(
                    result[name], alone[name], rtol=1e-11, atol=rounding * scale, err_msg=name
                )


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_grid(dtype):
    x = data(dtype)
    for chunks in [(5, 6, 12, 10), (2, 4, 12, 10), (1, 1, 12, 10), (3, 6, 5, 10), (2, 6, 3, 4)]:
        same(da.from_array(x, chunks=chunks), four())


def test_regions_of_interest():
    roi = np.random.default_rng(1).random(NAV) < 0.4
    for chunks in [(5, 6, 12, 10), (2, 4, 6, 10)]:
        same(da.from_array(data("u2"), chunks=chunks), four(), roi=roi)
    same(da.from_array(data("u2"), chunks=(2, 4, 6, 10)), four(), roi=np.zeros(NAV, bool))


def test_corrected_data():
    corrections = CorrectionSet(
        dark=np.full(SIG, 0.5, "f4"), gain=np.full(SIG, 2, "f4"), excluded_pixels=[[3], [4]]
    )
    for chunks in [(5, 6, 12, 10), (2, 4, 4, 10)]:
        same(da.from_array(data("u2"), chunks=chunks), four(), corrections=corrections)


def summed(udfs, dtype="u2", sig=SIG, **options):
    recipe = make_recipe(udfs, shape=(*NAV, *sig), dtype=dtype, sig_dims=len(sig), **options)
    return recipe.summed


def test_who_shares():
    corrections = CorrectionSet(dark=np.ones(SIG, "f4"))
    detector = VirtualDetectorUDF("disk", r=3)
    assert summed(four()) == (0, 1, 2, 3)
    assert summed([detector, *four()]) == (1, 2, 3, 4)
    assert summed([SumUDF(), CoMUDF(r=3)]) == ()
    assert summed([SumUDF(), CoMUDF(r=3), SumSigUDF()]) == (0, 2)
    assert summed([SumUDF()]) == ()
    assert summed([SumUDF(), detector]) == ()
    assert summed([SumUDF(), StdDevUDF()], sig=(120,)) == ()
    assert summed([SumUDF(), StdDevUDF()], dtype="i8") == ()
    assert summed([SumUDF(), StdDevUDF()], dtype="c8") == ()
    # the sum of frames is corrected, not each frame
    assert summed(four(), corrections=corrections) == (1, 2, 3)
    assert summed([SumUDF(), StdDevUDF()], corrections=corrections) == ()


class Watched(StdDevUDF):
    promises = StdDevUDF.promises
    seen: list

    def process_sums(self, sums):
        self.seen.append(sums)
        super().process_sums(sums)


class WatchedSums(Watched):
    promises = StdDevUDF.promises


def test_the_sums_of_a_tile_are_computed_once():
    Watched.seen = []
    x = data("u2")
    recipe = make_recipe([Watched(), WatchedSums()], shape=x.shape, dtype=x.dtype)
    run_chunk(recipe, 0, (x,))
    first, second = Watched.seen
    assert first is second
    assert first.tile.base is not None
    assert np.shares_memory(first.tile, x)


def test_a_subclass_that_processes_tiles_in_another_way_gets_the_tile():
    class Doubled(SumUDF):
        def process_tile(self, tile):
            super().process_tile(tile)
            super().process_tile(tile)

    class Promising(Doubled):
        promises = SumUDF.promises

    assert summed([Doubled(), SumUDF(), StdDevUDF()]) == (1, 2)
    assert summed([Promising(), SumUDF(), StdDevUDF()]) == (1, 2)
    x = da.from_array(data("u2"), chunks=(2, 6, 12, 10))
    for udf in (Doubled(), Promising()):
        doubled, plain, _ = ud.compute(*ud.run_udf(x, [udf, SumUDF(), StdDevUDF()]))
        np.testing.assert_array_equal(doubled["intensity"], 2 * plain["intensity"])
