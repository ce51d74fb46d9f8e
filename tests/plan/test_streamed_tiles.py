"""UDFs that read each tile once get all frames of a chunk as one tile, if they read it first."""

import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.corrections import CorrectionSet
from udfdask.plan.plan import make_plan
from udfdask.udfs import StdDevUDF, SumUDF, VirtualDetectorUDF

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
