"""Promises are checked, not inherited, and count where they apply; streamed tiles."""

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udfdask.corrections import CorrectionSet
from udfdask.plan.plan import make_plan
from udfdask.testing.eager_run import make_recipe
from udfdask.udf.promises import Promises
from udfdask.udfs import AutoUDF, StdDevUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

X = da.from_array(np.arange(4 * 6 * 8 * 8).reshape(4, 6, 8, 8), chunks=(2, 6, 8, 8))


class Rows(ud.UDF):
    promises = Promises(adds_signal_parts=True, starts_no_threads=True)

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.sums += tile.sum(axis=(1, 2))


def in_force(udf, **sizes):
    return make_recipe([udf], shape=(4, 6, 8, 8), dtype="int64", **sizes).udfs[0].promises


def test_a_promise_counts():
    assert in_force(Rows()) == Rows.promises
    blocks = make_recipe(
        [Rows()], shape=(4, 6, 8, 8), dtype="int64", sig_chunks=[(2, 2, 2, 2), (4, 4)]
    )
    assert blocks.by_sig_chunk
    assert not blocks.limits_threads


class Mixin:
    promises = Promises(streams_tiles=True)


def test_promises_are_not_inherited():
    class Sub(Rows):
        pass

    class Both(SumSigUDF, Rows):
        pass

    class First(Mixin, ud.UDF):
        pass

    class Last(ud.UDF, Mixin):
        pass

    for cls in (Sub, Both, First, Last, type("Made", (SumUDF,), {})):
        assert cls.promises == Promises()
    assert SumSigUDF.promises.streams_tiles


@pytest.mark.parametrize(
    "wrong",
    [
        {"promises": {"streams_tiles": True}},
        {"streams_tiles": True},
    ],
    ids=str,
)
def test_wrong_promises_are_found_in_the_plan(wrong):
    Wrong = type("Wrong", (Rows,), wrong)
    with pytest.raises(ud.UDFError, match="promise"):
        ud.run_udf(da.ones((2, 3, 4)), Wrong(), sig_dims=2)


def test_promises_about_another_method_than_the_chosen_one_do_not_count():
    class ByFrame(Rows):
        promises = Promises(adds_signal_parts=True, streams_tiles=True, starts_no_threads=True)

        def process_frame(self, frame):
            self.results.sums[:] = frame.sum()

        def get_method(self):
            return self.UDF_METHOD.FRAME

    assert in_force(ByFrame()) == Promises(starts_no_threads=True)


def test_whole_frames_are_not_added_up():
    class Whole(Rows):
        whole_frames = True
        promises = Rows.promises

    assert not in_force(Whole()).adds_signal_parts


class Stacked(udf_zoo.Rows):
    promises = Promises(processes_stacks=True)

    def process_stack(self, stack):
        if stack.max() > self.params.get("largest", np.inf):
            raise LookupError("too large")
        self.results.sums[:] = stack.sum(axis=(1, 2)) * self.params.get("aux", 1)


def test_stacks_are_processed():
    aux = ud.UDF.aux_data(np.arange(24.0), kind="nav", dtype="float64")
    roi = np.arange(24).reshape(4, 6) % 3 == 0
    found = ud.run_udf(X, Stacked(aux=aux), roi=roi)["sums"].compute()
    wanted = np.where(roi, X.compute().sum(axis=(2, 3)) * np.arange(24.0).reshape(4, 6), np.nan)
    np.testing.assert_array_equal(found, wanted)


def test_an_error_in_a_stack_says_where():
    with pytest.raises(LookupError) as caught:
        ud.run_udf(X[:2], Stacked(largest=3)).compute(scheduler="sync")
    (note,) = caught.value.__notes__
    assert "raised in Stacked.process_stack at navigation coordinates (0, 0) to (1, 5)" in note


def test_an_error_of_a_mapped_function_names_the_frame():
    def f(frame):
        if frame[0, 0] == 64 * 8:
            raise LookupError("here")
        return frame.sum()

    with pytest.raises(LookupError) as caught:
        ud.run_udf(X, AutoUDF(f=f)).compute(scheduler="sync")
    assert "at navigation coordinates (1, 2), in chunk" in caught.value.__notes__[0]


def test_a_streamed_tile_is_no_larger_than_preferred():
    depths = []

    class Small(Rows):
        promises = Promises(streams_tiles=True)

        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def get_tiling_preferences(self):
            return {"depth": 100, "total_size": 5 * 64 * 8}

        def process_tile(self, tile):
            depths.append(len(tile))
            super().process_tile(tile)

    ud.run_udf(X, Small()).compute(scheduler="sync")
    assert max(depths) == 5


class Total(ud.UDF):
    promises = Promises(only_sums_frames=True)

    def __init__(self, how="method"):
        super().__init__(how=how)

    def get_result_buffers(self):
        return {"total": self.buffer("sig", dtype="float64")}

    def process_tile(self, tile):
        if self.params.how == "method":
            self.results.total += tile.sum(axis=0)
        elif self.params.how == "function":
            self.results.total += np.sum(tile, axis=0, dtype="float64")
        else:
            eval(self.params.how, {"tile": tile, "np": np})

    def merge(self, dest, src):
        dest.total += src.total


CORRECTIONS = ud.corrections.CorrectionSet(
    dark=np.arange(64.0).reshape(8, 8), excluded_pixels=np.array([[3], [4]])
)


@pytest.mark.parametrize("how", ["method", "function"])
def test_only_the_sum_is_corrected(how):
    x = X.astype("uint16")
    found = ud.run_udf(x, Total(how), corrections=CORRECTIONS)["total"].compute()
    wanted = ud.run_udf(x, SumUDF(dtype="float64"), corrections=CORRECTIONS)["intensity"].compute()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "how", ["np.asarray(tile)", "np.mean(tile, axis=0)", "tile.max()", "tile.sum(axis=1)"]
)
def test_only_a_sum_can_be_had_of_an_uncorrected_tile(how):
    with pytest.raises(ud.UDFError, match="promises only_sums_frames may use"):
        ud.run_udf(X.astype("uint16"), Total(how), corrections=CORRECTIONS).compute()


DARK = CorrectionSet(dark=np.ones((64, 64)))


class OtherInput(SumUDF):
    """Wants its tiles in another dtype than the data."""

    def get_preferred_input_dtype(self):
        return np.dtype("float64")


class NoPromise(SumUDF):
    """Does not promise to read its tiles once."""

    promises = ud.Promises()


class SharesOnly(SumUDF):
    """Shares sums, but does not promise to read its tiles once."""

    promises = ud.Promises(processes_sums=True)


def test_one_tile_for_all_frames():
    cases = [
        ([SumUDF()], "<u2", None, True),
        ([SumUDF()], ">u2", None, True),  # the kernel swaps bytes as it loads them
        ([SumUDF()], "<c8", None, True),
        ([SumUDF()], ">c8", None, False),  # swapped in a copy
        ([SumUDF()], "<f2", None, False),  # converted for the kernel
        ([SumUDF(), StdDevUDF()], "<u2", None, True),  # they share the sums of the tile
        ([SumUDF(), StdDevUDF()], "<u8", None, False),  # each of them reads it
        ([SumUDF(), VirtualDetectorUDF("disk", r=3)], "<u2", None, False),
        ([SumUDF(), StdDevUDF(), NoPromise()], "<u2", None, False),
        ([StdDevUDF(), SharesOnly()], "<u2", None, False),
        ([OtherInput()], "<u2", None, False),
        ([NoPromise()], "<u2", None, False),
        ([SumUDF()], "<u2", DARK, True),  # the sum is corrected, not each frame
        ([SumUDF()], "<f4", DARK, True),
        ([SumUDF()], "<f8", DARK, False),  # frames are corrected first
        ([StdDevUDF()], "<f4", DARK, False),
    ]
    for udfs, dtype, corrections, streamed in cases:
        x = da.zeros((2000, 64, 64), chunks=(2000, 64, 64), dtype=dtype)
        tiling = make_plan(x, udfs, corrections=corrections).recipe.tiling
        assert (tiling.depth == 2000) == streamed, (udfs, dtype, corrections)
