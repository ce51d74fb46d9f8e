"""Convert results without labels to Datasets."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings

import udfdask as ud
from making import SYNC, make
from signal_cases import Kinds
from suites import examples
from udfdask.errors import ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import datasets
from udfdask.udfs import NoOpUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")


@given(data=datasets(min_nav=0, dtype="int16"))
@settings(deadline=None, max_examples=examples(50))
@pytest.mark.filterwarnings("ignore:a task takes .* signal chunks:udfdask.UDFWarning")
def test_values_masks_and_laziness(data):
    how = {"sig_dims": data.sig_dims, "roi": data.roi}
    with raise_if_dask_computes():
        lazy = ud.run_udf(data.array, Kinds(), **how)
        dataset = lazy.to_xarray(valid_masks=True)
    done, found = ud.compute(lazy, dataset, **SYNC)
    xr.testing.assert_identical(done.to_xarray(valid_masks=True), found)
    for name, values in done.items():
        np.testing.assert_array_equal(found[name], values)
        np.testing.assert_array_equal(found[f"{name}_valid"], done.valid_mask[name])
    assert set(done.to_xarray().data_vars) == set(done)


@pytest.mark.parametrize(
    ("shape", "sig_dims", "nav", "sig"),
    [
        ((2, 3, 4, 5), 2, ("y", "x"), ("sig_y", "sig_x")),
        ((2, 3), 1, ("x",), ("sig_x",)),
        ((2, 3), 2, (), ("sig_y", "sig_x")),
        ((2, 3, 4, 5, 2), 1, ("nav_0", "nav_1", "nav_2", "nav_3"), ("sig_x",)),
        ((2, 3, 4, 5), 3, ("x",), ("sig_0", "sig_1", "sig_2")),
    ],
)
def test_names_of_dimensions(shape, sig_dims, nav, sig):
    dataset = ud.run_udf(da.ones(shape), Kinds(), sig_dims=sig_dims).to_xarray()
    assert dataset["sums"].dims == nav
    assert dataset["powers"].dims == (*sig, "power")
    assert dataset["pair"].dims == ("end", "rest")
    assert dataset["end"].values.tolist() == ["min", "max"]
    assert dataset["power"].values.tolist() == [1.0, 3.0, 5.0]
    assert dataset["power"].attrs == {"units": "1"}
    assert "rest" not in dataset.coords


def test_a_udf_without_results():
    result = ud.run_udf(da.ones((2, 2, 2, 2), chunks=1), NoOpUDF(), roi=(0, 1))
    lazy = result.to_xarray()
    assert lazy["visited"].compute(**SYNC).values.tolist() == [[False, True], [False, False]]
    xr.testing.assert_identical(result.compute(**SYNC).to_xarray(), lazy.compute(**SYNC))


def test_a_result_called_like_a_dimension():
    udf = make({"sig_x": {"kind": "nav"}}, process_frame=lambda self, frame: None)()
    result = ud.run_udf(da.ones((2, 2, 2, 2)), udf)
    with pytest.raises(ArgumentValueError, match=r"'sig_x'.*rename="):
        result.to_xarray()
    assert list(result.to_xarray(rename={"sig_x": "s"}).data_vars) == ["s"]
    with pytest.raises(ArgumentValueError, match="names of results"):
        result.to_xarray(rename={"x": "s"})


def axes(buffers, given):
    """A result with these buffers and these axes of extra dimensions."""
    cls = make(
        buffers,
        process_frame=lambda self, frame: None,
        get_result_axes=lambda self: given,
        merge=lambda self, dest, src: None,
    )
    return ud.run_udf(da.ones((2, 3, 4, 5)), cls()).to_xarray()


def test_results_share_what_is_the_same():
    pair = {"kind": "nav", "extra_shape": (2,)}
    vector = ud.Axis(name="component", labels=("y", "x"))
    found = axes({"a": pair, "b": pair}, {"a": (vector,), "b": (vector,)})
    assert found["a"].dims == found["b"].dims == ("y", "x", "component")


@pytest.mark.parametrize(
    "other",
    [
        (ud.Axis(name="component", labels=("x", "y")), 2),
        (ud.Axis(name="component", unit="px"), 2),
        (ud.Axis(name="component"), 3),
    ],
)
def test_what_is_not_the_same_is_called_after_its_result(other):
    axis, n = other
    found = axes(
        {"a": {"kind": "nav", "extra_shape": (2,)}, "b": {"kind": "sig", "extra_shape": (n,)}},
        {"a": (ud.Axis(name="component", labels=("y", "x")),), "b": (axis,)},
    )
    assert found["a"].dims == ("y", "x", "component")
    assert found["b"].dims == ("sig_y", "sig_x", "b_component")
    assert found["component"].values.tolist() == ["y", "x"]


@pytest.mark.parametrize("name", ["y", "sig_x", "a", "b"])
def test_an_axis_called_like_something_else(name):
    buffers = {"a": {"kind": "nav", "extra_shape": (2,)}, "b": {"kind": "nav"}}
    found = axes(buffers, {"a": (ud.Axis(name=name, unit="px"),)})
    assert found["a"].dims == ("y", "x", f"a_{name}")
    assert found[f"a_{name}"].attrs == {"units": "px"}


def test_masks_find_a_free_name():
    nav = {"kind": "nav"}
    cls = make({"a": nav, "a_valid": nav}, process_frame=lambda self, frame: None)
    found = ud.run_udf(da.ones((2, 3, 4, 5)), cls()).to_xarray(valid_masks=True)
    assert set(found.data_vars) == {"a", "a_valid", "a_valid_", "a_valid_valid"}
