"""Progressive runs over DataArrays: labeled snapshots."""

import numpy as np
import pytest

import udfdask as ud
from labelled_data import Kinds
from udfdask.udfs import SumUDF

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
