"""Labeled data give labeled results: the same numbers, with all labels."""

import importlib
import sys
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from labelled_data import cases, expected_coords
from making import SYNC
from signal_cases import Kinds
from suites import examples
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import NeighborAverageUDF, StdDevUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")

# tiny frames in many chunks
pytestmark = pytest.mark.filterwarnings("ignore:a task takes . signal chunks:udfdask.UDFWarning")


class NamedUDFs(NamedTuple):
    image: ud.UDF
    pattern: ud.UDF


def run(case, udf, **options):
    with raise_if_dask_computes():
        return case.array.udf.run_udf(udf, sig_dims=case.sig, **options)


@given(case=cases())
@settings(deadline=None, max_examples=examples(60))
def test_values_are_those_of_the_unlabelled_run(case):
    labeled = run(case, Kinds(), roi=case.roi, valid_masks=True)
    plain = ud.run_udf(case.ordered, Kinds(), sig_dims=len(case.sig), roi=case.roi)
    found, wanted = ud.compute(labeled, plain, **SYNC)
    own = {"nav": case.nav, "sig": case.sig, "single": ()}
    extra = {"ends": ("end",), "powers": ("power",), "pair": ("end", "rest")}
    assert set(found.data_vars) == {*wanted, *(f"{name}_valid" for name in wanted)}
    for name, values in wanted.items():
        assert found[name].dims == (*own[wanted.buffers[name].kind], *extra.get(name, ()))
        np.testing.assert_array_equal(found[name].values, values)
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[f"{name}_valid"], wanted.valid_mask[name])


@given(case=cases())
@settings(deadline=None, max_examples=examples(60))
def test_every_coordinate_and_attribute_is_kept(case):
    labeled = run(case, Kinds())
    coords = expected_coords(case.array, case.array.dims)
    assert set(labeled.coords) == {*coords, "end", "power"}
    for name, coord in coords.items():
        xr.testing.assert_identical(labeled[name].variable, coord.variable)
    for name, index in case.array.indexes.items():
        assert labeled.indexes[name].equals(index)
    general = {k: v for k, v in case.array.attrs.items() if k not in ("units", "long_name")}
    assert labeled.attrs == labeled["sums"].attrs == labeled["count"].attrs == general
    assert labeled["total"].attrs == case.array.attrs


@given(case=cases(), data=st.data())
@settings(deadline=None, max_examples=examples(40))
def test_the_order_of_names_is_the_order_of_frame_axes(case, data):
    sig = tuple(data.draw(st.permutations(case.sig)))
    total = case.array.udf.run_udf(SumUDF(), sig_dims=sig)["intensity"]
    assert total.dims == sig
    wanted = case.array.sum(case.nav, keep_attrs=True).transpose(*sig)
    np.testing.assert_array_equal(total.compute(**SYNC), wanted.compute(**SYNC))


@given(case=cases())
@settings(deadline=None, max_examples=examples(30))
def test_data_in_memory_give_the_same_computed(case):
    lazy = run(case, Kinds(), roi=case.roi, valid_masks=True)
    loaded = case.array.compute(**SYNC)
    found = loaded.udf.run_udf(Kinds(), case.sig, case.roi, valid_masks=True)
    assert all(isinstance(v.data, np.ndarray) for v in found.data_vars.values())
    xr.testing.assert_identical(found, lazy.compute(**SYNC))


def test_dims_in_order_are_not_touched(array):
    total = array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))["intensity"].data
    assert total.name == ud.run_udf(array.data, SumUDF())["intensity"].name
    moved = array.transpose("ky", "y", "kx", "x")
    layers = set(moved.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))["intensity"].data.dask.layers)
    own = set(ud.run_udf(moved.data.transpose(1, 3, 0, 2), SumUDF())["intensity"].dask.layers)
    assert layers == own


def test_a_multi_index_is_kept(array):
    stacked = array.stack(position=("y", "x"))
    sums = stacked.udf.run_udf(SumSigUDF(), sig_dims=("ky", "kx"))
    assert sums.indexes["position"].equals(stacked.indexes["position"])
    np.testing.assert_array_equal(
        sums["intensity"].unstack("position").transpose("y", "x"), array.sum(("ky", "kx"))
    )


@pytest.mark.parametrize(
    ("option", "asked", "kept"),
    [
        ("default", None, True),
        (True, None, True),
        (False, None, False),
        (False, True, True),
        (True, False, False),
    ],
)
def test_keep_attrs_follows_xarray(array, option, asked, kept):
    with xr.set_options(keep_attrs=option):
        found = array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"), keep_attrs=asked)
    assert bool(found.attrs) is bool(found["intensity"].attrs) is kept
    assert found["kx"].attrs == {"units": "mrad"}


@pytest.mark.parametrize("kind", [list, tuple, NamedUDFs._make], ids=["list", "tuple", "named"])
def test_udfs_in_any_sequence(array, kind):
    both = array.udf.run_udf(kind([SumUDF(), SumSigUDF()]))
    for found, udf in zip(both, [SumUDF(), SumSigUDF()], strict=True):
        xr.testing.assert_identical(found.compute(), array.udf.run_udf(udf).compute())


def test_rename(array):
    found = array.udf.run_udf([SumUDF(), StdDevUDF()], rename={"intensity": "total", "var": "v"})
    assert list(found[0].data_vars) == ["total"]
    assert {"v", "std"} <= set(found[1].data_vars)
    assert "var" not in found[1]


def test_what_comes_out_may_be_changed(array):
    before = array.copy(deep=True)
    found = array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))
    for item in (found, found["intensity"], found["kx"]):
        item.attrs["beam"] = item.attrs["units"] = "none"
    found["drift"] = ("kx", np.arange(10))
    xr.testing.assert_identical(array, before)


def test_the_extra_is_named_without_xarray(monkeypatch):
    for name in list(sys.modules):
        if name.startswith(("udfdask.results.layout", "udfdask.xarray")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r'needs xarray, .*pip install "udfdask\[xarray\]"'):
        importlib.import_module("udfdask.xarray")


def test_data_in_a_file_are_read_chunk_by_chunk(array, tmp_path):
    pytest.importorskip("zarr", reason="zarr is in the io extra")
    array.to_dataset(name="scan").to_zarr(tmp_path / "a.zarr", consolidated=False)
    with xr.open_dataset(tmp_path / "a.zarr", engine="zarr", consolidated=False) as opened:
        scan = opened["scan"]
        assert scan.chunks is None
        found = scan.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))
        assert not scan.variable._in_memory
    np.testing.assert_array_equal(found["intensity"].values, array.sum(("y", "x")).values)


@pytest.mark.parametrize(
    "positions", [np.arange(7) / 3 + 5, list("abcdefg"), np.datetime64("2020-01-01") + np.arange(7)]
)
def test_whole_frames_have_the_coordinates_of_the_data(positions):
    values = np.arange(3 * 4 * 7.0).reshape(3, 4, 7)
    coords = {"kx": ("kx", positions, {"long_name": "angle"})}
    array = xr.DataArray(values, dims=("t", "ky", "kx"), coords=coords)
    udf = NeighborAverageUDF(np.array([0, 1, 0]))
    found = array.udf.run_udf(udf, sig_dims=("ky", "kx"))["intensity"]
    xr.testing.assert_identical(found["kx"], array["kx"])
    xr.testing.assert_equal(found, array)


def test_the_last_snapshot_is_the_run(array):
    moved, roi = array.transpose("kx", "y", "x", "ky"), array["thickness"] > 2
    options = {"rename": {"sums": "s"}, "valid_masks": True}
    *_, last = moved.udf.run_udf_iter([Kinds(), SumUDF()], ("ky", "kx"), roi, **options)
    wanted = moved.udf.run_udf(
        [Kinds(), SumUDF()], ("ky", "kx"), roi, rename={"sums": "s"}, valid_masks=True
    )
    assert len(last.buffers) == 2
    for found, lazy in zip(last.buffers, wanted, strict=True):
        xr.testing.assert_identical(found, lazy.compute())


def test_each_snapshot_is_labelled_like_the_plain_one(array):
    labeled = array.udf.run_udf_iter(Kinds(), ("ky", "kx"), scheduler="synchronous")
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
