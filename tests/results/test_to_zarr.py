"""Write results to zarr stores: they are read back, in one pass, and no store is incomplete."""

import sys

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import udfdask as ud
from counting import CountedChain, CountedData, CountedNav, counts
from making import SYNC, make
from saved import read_saved
from signal_cases import Kinds
from suites import examples
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import datasets
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")


@pytest.fixture
def x():
    values = np.arange(5 * 6 * 4 * 4).reshape(5, 6, 4, 4)
    return da.from_array(values, chunks=((2, 1, 2), (1, 5), 4, 4))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


@given(data=datasets(min_nav=0, dtype="int16"))
@settings(deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.filterwarnings("ignore:a task takes .* signal chunks:udfdask.UDFWarning")
def test_what_is_read_back(data, stores):
    result = ud.run_udf(data.array, Kinds(), sig_dims=data.sig_dims, roi=data.roi)
    store = result.to_zarr(stores / "a.zarr", overwrite=True, **SYNC)
    found, wanted = read_saved(store), result.compute(**SYNC).to_xarray()
    if data.roi is not None:
        np.testing.assert_array_equal(found["roi"], data.roi)
        found = found.drop_vars("roi")
    xr.testing.assert_identical(found, wanted.assign_coords(end=found["end"]))
    assert found["end"].values.tolist() == ["min", "max"]


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("door", ["to_zarr", "to_xarray"])
def test_labels_are_read_back_as_text(x, tmp_path, zarr_format, door):
    """zarr warns about text of fixed length in format 3, and warnings are errors."""
    result = ud.run_udf(x, CoMUDF())
    if door == "to_zarr":
        with zarr.config.set(default_zarr_format=zarr_format):
            result.to_zarr(tmp_path / "a.zarr", **SYNC)
    else:
        dataset = result.compute(**SYNC).to_xarray()
        dataset.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=False)
    with xr.open_zarr(tmp_path / "a.zarr", consolidated=door == "to_zarr") as found:
        labels = found["component"].values
        assert [type(label) for label in labels.tolist()] == [str, str]
        assert labels.tolist() == ["y", "x"]
        field = found["field"].sel(component="x").load()
    np.testing.assert_array_equal(field, result.compute(**SYNC)["field"][..., 1])


def test_chunks_and_masks(x, tmp_path):
    class Masked(ud.UDF):
        def get_result_buffers(self):
            return {"m": self.buffer("nav"), "s": self.buffer("nav")}

        def process_frame(self, frame):
            self.results.m[:] = self.results.s[:] = frame.mean()

        def get_results(self):
            m = self.results.m
            return {"m": self.with_mask(m, m > 200), "s": self.results.s}

    result = ud.run_udf(x, Masked(), roi=np.s_[1:4])
    with xr.open_zarr(result.to_zarr(tmp_path / "a.zarr", **SYNC)) as found:
        assert found["m"].chunks == found["m_valid"].chunks == ((2, 2, 1), (5, 1))
        np.testing.assert_array_equal(found["m_valid"], result.valid_mask["m"].compute(**SYNC))
        assert int(found["roi"].sum()) == 18
        assert found["m"].coords["roi"].dims == ("y", "x")


def test_a_result_called_roi(x, tmp_path):
    udf = make({"roi": {"kind": "nav"}}, process_frame=lambda self, frame: None)()
    found = read_saved(ud.run_udf(x, udf, roi=(1, 1)).to_zarr(tmp_path / "a.zarr", **SYNC))
    assert int(found["roi_"].sum()) == 1
    assert found["roi"].dtype == np.float32


@pytest.mark.parametrize("udf", [CountedChain, CountedNav])
def test_one_pass(tmp_path, folder, options, udf):
    values = np.arange(6 * 5 * 3 * 4).reshape(6, 5, 3, 4)
    counted = CountedData(values, folder)
    array = da.from_array(counted, chunks=(2, 3, 3, 2), meta=np.empty(0, "int64"))
    result = ud.run_udf(array, udf(folder), roi=np.s_[1:])
    found = read_saved(result.to_zarr(tmp_path / "a.zarr", **options))
    noted = counts(folder)
    assert set(noted.values()) == {1}
    assert sum(name.startswith("load") for name in noted) == 12
    np.testing.assert_array_equal(found["sums"][1:], values.sum((2, 3))[1:])


@pytest.mark.parametrize("roi", [None, np.s_[1:]])
def test_dates(x, tmp_path, roi):
    def process_frame(self, frame):
        seconds = np.timedelta64(int(self.meta.coordinates[0, 0]), "s")
        self.results.when[:] = np.datetime64("2020-01-01") + seconds
        self.results.since[:] = seconds

    buffers = {
        "when": {"kind": "nav", "dtype": "M8[ns]"},
        "since": {"kind": "nav", "dtype": "m8[s]"},
    }
    result = ud.run_udf(x, make(buffers, process_frame=process_frame)(), roi=roi)
    found = read_saved(result.to_zarr(tmp_path / "a.zarr", **SYNC))
    for name, values in result.compute(**SYNC).items():
        np.testing.assert_array_equal(found[name], values)


def test_a_failed_write_leaves_nothing(x, tmp_path):
    def fails(self, frame):
        if self.meta.coordinates[0, 0] == 4:
            raise ValueError("broken")

    result = ud.run_udf(x, make({"v": {"kind": "nav"}}, process_frame=fails)())
    with pytest.raises(ValueError, match="broken"):
        result.to_zarr(tmp_path / "a.zarr", **SYNC)
    assert list(tmp_path.iterdir()) == []
    before = read_saved(ud.run_udf(x, SumUDF()).to_zarr(tmp_path / "a.zarr", **SYNC))
    with pytest.raises(ValueError, match="broken"):
        result.to_zarr(tmp_path / "a.zarr", overwrite=True, **SYNC)
    xr.testing.assert_identical(read_saved(tmp_path / "a.zarr"), before)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("after", [lambda r: r, lambda r: r.compute(**SYNC), lambda r: r.persist()])
@pytest.mark.parametrize("name", ["a.zarr", "a.zarr/intensity", "a.zarr/new", "link", "."])
def test_a_store_that_the_data_come_from(x, tmp_path, monkeypatch, after, name):
    store = ud.run_udf(x, SumSigUDF()).to_zarr(tmp_path / "a.zarr")
    before = read_saved(store)
    (tmp_path / "link").symlink_to(store)
    monkeypatch.chdir(tmp_path)
    for array in (
        xr.open_zarr("a.zarr")["intensity"].data,
        da.from_zarr("a.zarr", component="intensity")[1:] + 1,
        open_file("a.zarr", dataset="intensity").array.rechunk(2),
    ):
        result = after(ud.run_udf(array, SumUDF(), sig_dims=1))
        with (
            raise_if_dask_computes(),
            pytest.raises(ArgumentValueError, match="the source of the data"),
        ):
            result.to_zarr(name, overwrite=True)
    xr.testing.assert_identical(read_saved(store), before)
    assert {path.name for path in tmp_path.iterdir()} == {"a.zarr", "link"}


@pytest.mark.parametrize("option", ["append", "mode", "consolidated", "overwite", "nworkers"])
def test_options_that_nothing_takes(x, tmp_path, option):
    with (
        raise_if_dask_computes(),
        pytest.raises(ArgumentTypeError, match=rf"no argument '{option}'"),
    ):
        ud.run_udf(x, SumUDF()).to_zarr(tmp_path / "a.zarr", **{option: True})
    with pytest.raises(ArgumentTypeError, match="did you mean 'overwrite'"):
        ud.run_udf(x, SumUDF()).to_zarr(tmp_path / "a.zarr", overwite=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["zarr", "xarray"])
def test_a_missing_package_is_named_with_its_extra(x, tmp_path, monkeypatch, package):
    for name in list(sys.modules):
        if name.startswith("udfdask.results.layout"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}, .*udfdask\["):
        ud.run_udf(x, SumUDF()).to_zarr(tmp_path / "a.zarr")
