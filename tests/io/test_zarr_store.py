"""Writing results: what is read back, and what is never left behind or replaced."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.io import Variable, open_file, result_variables, write_zarr
from udfdask.io.output_formats import FORMATS
from udfdask.io.write_zarr import OTHER_SUFFIXES

xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
pytest.importorskip("zarr", minversion="3", reason="xarray writes with zarr 3 only")

AXES = (Axis(name="y", unit="nm", scale=0.5, offset=1.0), Axis(name="x"), Axis(name="E"))


def image(dtype=float):
    return Variable(
        dims=("y", "x"), values=np.arange(6).reshape(2, 3).astype(dtype), attrs={"kind": "nav"}
    )


class FakeBuffer:
    def __init__(self, kind, shape):
        self.kind = kind
        self.extra_shape = shape[{"nav": 2, "sig": 1, "single": 0}[kind] :]


class FakeResult(dict):
    """A computed result: arrays by name, and a kind for each."""

    def __init__(self, kinds, **arrays):
        super().__init__(arrays)
        self.buffers = {name: FakeBuffer(kind, arrays[name].shape) for name, kind in kinds.items()}
        self.valid_mask = {name: np.ones(array.shape, bool) for name, array in arrays.items()}
        self.units = {}
        self._info = SimpleNamespace(origin={"udf_class": "SumUDF", "parameters": "{}"})
        self.extra_axes = {
            name: tuple(Axis(name=f"{name}_dim_{k}") for k in range(len(spec.extra_shape)))
            for name, spec in self.buffers.items()
        }


def read(path):
    with xr.open_zarr(path, consolidated=False, chunks=None) as dataset:
        return dataset.load()


def test_a_name_is_that_of_the_udf_and_of_the_buffer(tmp_path):
    store = write_zarr(
        tmp_path / "a.zarr", {"sum": {"image": image()}}, axes=AXES, attrs={"a": "b"}
    )
    dataset = read(store)
    assert list(dataset.data_vars) == ["sum_image"]
    np.testing.assert_array_equal(dataset["sum_image"], np.arange(6).reshape(2, 3))
    assert dataset["sum_image"].attrs == {"kind": "nav"}
    assert dataset.attrs == {"a": "b", "udfdask_results": '["sum_image"]'}
    np.testing.assert_array_equal(dataset["y"], [1.0, 1.5])
    assert dataset["y"].attrs == {"units": "nm"}
    assert "E" not in dataset.coords


def test_several_udfs_are_told_apart(tmp_path):
    results = {"a": {"image": image()}, "b": {"image": image(), "other": image()}, "c": {}}
    dataset = read(write_zarr(tmp_path / "a.zarr", results))
    assert sorted(dataset.data_vars) == ["a_image", "b_image", "b_other"]


@pytest.mark.parametrize("dtype", ["bool", "u1", ">i4", "f2", "complex64", "M8[ns]"])
def test_types_that_come_back(tmp_path, dtype):
    dataset = read(write_zarr(tmp_path / "a.zarr", {"sum": {"image": image(dtype)}}))
    np.testing.assert_array_equal(dataset["sum_image"].values, image(dtype).values)
    assert dataset["sum_image"].dtype == np.dtype(dtype).newbyteorder("=")


def test_a_single_number_and_missing_values(tmp_path):
    values = np.array([np.nan, 1.0])
    variables = {
        "n": Variable(dims=(), values=np.array(3)),
        "v": Variable(dims=("t",), values=values),
    }
    dataset = read(write_zarr(tmp_path / "a.zarr", {"sum": variables}))
    assert int(dataset["sum_n"]) == 3
    np.testing.assert_array_equal(dataset["sum_v"], values)


def test_results_are_read_back_with_their_axes(tmp_path):
    store = write_zarr(tmp_path / "a.zarr", {"sum": {"image": image()}}, axes=AXES)
    y, x = open_file(store, dataset="sum_image").axes
    assert y == AXES[0]
    assert (x.name, x.scale, x.offset) == ("x", 1.0, 0.0)


def test_dimensions_of_results():
    result = FakeResult(
        {"n": "nav", "s": "sig", "one": "single", "many": "nav"},
        n=np.zeros((2, 3)),
        s=np.zeros(5),
        one=np.zeros(()),
        many=np.zeros((2, 3, 7)),
    )
    alone = result_variables({"u": result}, AXES, 1)["u"]
    assert [alone[name].dims for name in result] == [
        ("y", "x"),
        ("E",),
        (),
        ("y", "x", "u_many_dim_0"),
    ]
    assert alone["s"].attrs == {
        "kind": "sig",
        "udf": "u",
        "udf_class": "SumUDF",
        "parameters": "{}",
    }
    both = result_variables({"u": result, "v": result}, AXES, 1)
    assert both["v"]["many"].dims == ("y", "x", "v_many_dim_0")


def test_where_a_result_is_valid_is_kept():
    result = FakeResult({"n": "nav", "s": "sig"}, n=np.zeros((2, 3)), s=np.zeros(5))
    result.valid_mask["n"][0] = False
    variables = result_variables({"u": result}, AXES, 1)["u"]
    assert list(variables) == ["n", "n_valid", "s"]
    assert variables["n_valid"].dims == ("y", "x")
    np.testing.assert_array_equal(variables["n_valid"].values, [[False] * 3, [True] * 3])


def test_what_is_there_is_not_replaced_unless_asked(tmp_path):
    target = tmp_path / "a.zarr"
    write_zarr(target, {"sum": {"image": image()}})
    with pytest.raises(FileExistsError, match=r"a\.zarr already exists: choose another name"):
        write_zarr(target, {"sum": {"other": image()}})
    assert list(read(target).data_vars) == ["sum_image"]
    write_zarr(target, {"sum": {"other": image()}}, overwrite=True)
    assert list(read(target).data_vars) == ["sum_other"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_no_store_is_never_replaced(tmp_path, is_folder):
    target = tmp_path / "precious"
    if is_folder:
        target.mkdir()
        (target / "data").write_text("1")
    else:
        target.write_text("1")
    with pytest.raises(FileExistsError, match="is not a zarr store, so it is not replaced"):
        write_zarr(target, {"sum": {"image": image()}}, overwrite=True)
    assert (target / "data" if is_folder else target).read_text() == "1"


@pytest.mark.parametrize("there_before", [True, False])
def test_a_failure_leaves_everything_as_it_was(tmp_path, monkeypatch, there_before):
    target = tmp_path / "a.zarr"
    if there_before:
        write_zarr(target, {"sum": {"image": image()}})
    to_zarr = xr.Dataset.to_zarr

    def fail_at_the_end(self, *args, **kwargs):
        to_zarr(self, *args, **kwargs)
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_zarr", fail_at_the_end)
    with pytest.raises(OSError, match="disk full"):
        write_zarr(target, {"sum": {"other": image()}}, overwrite=True)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"] * there_before
    if there_before:
        assert list(read(target).data_vars) == ["sum_image"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write a\.zarr in"):
        write_zarr(tmp_path / "nowhere" / "a.zarr", {"sum": {"image": image()}})


@pytest.mark.parametrize("dtype", [object, "S3", [("a", "f4")]])
def test_types_that_are_not_written(tmp_path, dtype):
    values = np.zeros(2, dtype)
    with pytest.raises(ArgumentTypeError, match=r"the dtype .* cannot be written to zarr"):
        write_zarr(tmp_path / "a.zarr", {"sum": {"image": Variable(dims=("t",), values=values)}})
    assert not list(tmp_path.iterdir())


def test_one_name_for_two_sizes(tmp_path):
    variables = {
        "a": Variable(dims=("t",), values=np.zeros(2)),
        "b": Variable(dims=("t",), values=np.zeros(3)),
    }
    with pytest.raises(ArgumentValueError, match="'t' of 'sum_b' has 3 positions and elsewhere 2"):
        write_zarr(tmp_path / "a.zarr", {"sum": variables})


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r'needs xarray.*pip install "udfdask\[io\]"'):
        write_zarr(tmp_path / "a.zarr", {"sum": {"image": image()}})


def test_zarr_2_is_too_old(tmp_path, monkeypatch):
    monkeypatch.setattr("zarr.__version__", "2.18.7")
    with pytest.raises(ImportError, match=r"needs zarr>=3, but 2\.18\.7 is installed: pip install"):
        write_zarr(tmp_path / "a.zarr", {"sum": {"image": image()}})


def test_names_with_slashes_are_no_paths(tmp_path):
    axes = [Axis(name="a/b", unit="nm", scale=0.5), Axis(name="a_b", unit="nm", scale=2.0)]
    values = np.arange(6.0).reshape(2, 3)
    variable = Variable(dims=("a/b", "a_b"), values=values, attrs={"kind": "nav"})
    store = write_zarr(tmp_path / "a.zarr", {"u": {"v/w": variable}}, axes=axes)
    found = open_file(store, dataset="u_v_w")
    assert [(axis.name, axis.unit, axis.scale) for axis in found.axes] == [
        ("a_b_", "nm", 0.5),
        ("a_b", "nm", 2.0),
    ]
    np.testing.assert_array_equal(found.array, values)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("foo.npz", r"save_results\('foo.npz', result\) writes this format"),
        ("foo.TIFF", r"save_results\('foo.TIFF', result\)"),
        ("foo.npy", r"numpy.save\('foo.npy', result\[name\]\)"),
        ("foo.png", r"result.plot\(\).savefig\('foo.png'\)"),
    ],
)
def test_a_store_has_no_suffix_of_a_file(tmp_path, name, remedy):
    with pytest.raises(ArgumentValueError, match=f"call it 'foo.zarr'; .*{remedy}"):
        write_zarr(tmp_path / name, {"sum": {"image": image()}})
    assert list(tmp_path.iterdir()) == []
    assert read(write_zarr(tmp_path / "foo", {"sum": {"image": image()}}))


def test_suffixes_that_are_refused_are_those_of_other_formats():
    assert set(FORMATS) - {".zarr"} <= OTHER_SUFFIXES
