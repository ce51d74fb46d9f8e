"""UDFs that read each tile once get all frames of a chunk as one tile, if they read it first."""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.corrections import CorrectionSet
from udfdask.plan.plan import make_plan
from udfdask.udfs import StdDevUDF, SumUDF

DARK = CorrectionSet(dark=np.ones((64, 64)))


class OtherInput(SumUDF):
    """Wants its tiles in another dtype than the data."""

    def get_preferred_input_dtype(self):
        return np.dtype("float64")


class NoPromise(SumUDF):
    """Does not promise to read its tiles once."""

    promises = ud.Promises()


def test_one_tile_for_all_frames():
    cases = [
        ([SumUDF()], "<u2", None, True),
        ([SumUDF()], ">u2", None, True),  # the kernel swaps bytes as it loads them
        ([SumUDF()], "<c8", None, True),
        ([SumUDF()], ">c8", None, False),  # swapped in a copy
        ([SumUDF()], "<f2", None, False),  # converted for the kernel
        ([SumUDF(), SumUDF()], "<u2", None, False),  # each of them reads it
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
