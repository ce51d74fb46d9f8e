"""What users pass first in place of a dask array: each error says which call to make."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, NoOpUDF, SumUDF

DATA = np.arange(2 * 3 * 4 * 5, dtype="uint16").reshape(2, 3, 4, 5)
LAZY = da.from_array(DATA, chunks=(1, 3, 4, 5))


def data_array(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    return xr.DataArray(DATA, dims=("y", "x", "ky", "kx"))


def dataset(tmp_path):
    return data_array(tmp_path).to_dataset(name="scan")


def signal(tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    return hs.signals.Signal2D(DATA)


def zarr_group(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
    return zarr.create_group({})


def zarr_array(tmp_path):
    return zarr_group(tmp_path).create_array("scan", data=DATA)


def hdf5_dataset(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
    file = h5py.File(tmp_path / "scan.h5", "w", driver="core", backing_store=False)
    return file.create_dataset("run/scan", data=DATA)


MISTAKES = {
    "array": lambda _: DATA,
    "DataArray": data_array,
    "Dataset": dataset,
    "signal": signal,
    "name of a file": lambda _: "a.npy",
    "zarr array": zarr_array,
    "zarr group": zarr_group,
    "HDF5 dataset": hdf5_dataset,
    "list of arrays": lambda _: [LAZY, LAZY],
    "result": lambda _: ud.run_udf(LAZY, SumUDF()),
    "UDF": lambda _: SumUDF(),
    "UDF class": lambda _: SumUDF,
    "list of UDFs": lambda _: [SumUDF()],
    "function": lambda _: np.sum,
}
"""Values passed as the array."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_something_else_than_a_dask_array(mistake, tmp_path):
    array = MISTAKES[mistake](tmp_path)
    for call in (ud.run_udf, ud.run_udf_iter, ud.explain):
        with pytest.raises(ud.ArgumentTypeError, match="expected a dask array"):
            call(array, SumUDF())
    with pytest.raises(ud.ArgumentTypeError, match="expected a dask array"):
        ud.map_frames(array, np.sum)


@pytest.mark.parametrize("udf", [SumUDF, SumUDF()])
def test_map_frames_takes_no_udf(udf):
    with pytest.raises(ud.ArgumentTypeError):
        ud.map_frames(LAZY, udf)


@pytest.mark.parametrize("names", ["kx", ("ky", "kx")])
def test_names_of_axes(names):
    with pytest.raises(ud.ArgumentTypeError):
        ud.run_udf(LAZY, SumUDF(), sig_dims=names)


class TestResultsAreNoArrays:
    """A `Result` is a mapping: NumPy would make an array that holds one object."""

    @pytest.fixture
    def results(self):
        return ud.run_udf(LAZY, [SumUDF(), CoMUDF(), NoOpUDF()])

    @pytest.mark.parametrize(
        "use", [np.asarray, np.sum, float, da.asarray, lambda result: np.ones((4, 5)) + result]
    )
    def test_numpy_says_what_to_write(self, results, use):
        with raise_if_dask_computes():
            for result in results:
                with pytest.raises(ud.ArgumentTypeError):
                    use(result)
        with pytest.raises(TypeError, match=r"result\['intensity'\]"):
            use(results[0].compute())

    @pytest.mark.parametrize("name", ["sum", "shape"])
    def test_attributes_of_arrays(self, results, name):
        with pytest.raises(TypeError, match="Result"):
            results[0] + 1
        with pytest.raises(AttributeError, match=rf"result\['intensity'\]\.{name}"):
            getattr(results[0], name)

    def test_methods_that_save(self, results):
        with pytest.raises(AttributeError, match="save_results"):
            results[0].save("a.nc")


@pytest.mark.parametrize("call", [ud.compute, ud.persist])
@pytest.mark.parametrize("given", [(SumUDF(),), (SumUDF,), ({"sum": [SumUDF()]},)])
def test_a_udf_is_no_result(call, given):
    with raise_if_dask_computes(), pytest.raises(ud.ArgumentTypeError):
        call(*given)
