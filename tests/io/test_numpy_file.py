"""The .npy files that numpy.save writes."""

import numpy as np
import pytest
from dask.array.utils import assert_eq
from dask.base import is_dask_collection

from udfdask.errors import FileFormatError
from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint16", ">f4", "complex128"])
def test_reads_what_was_saved(tmp_path, order, dtype):
    values = np.asarray(np.arange(360).reshape(3, 4, 5, 6), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    opened = open_file(tmp_path / "a.npy", chunks=(2, 3, -1, 4))
    assert opened.array.dtype == values.dtype
    assert_eq(opened.array, values)
    assert (opened.reader, opened.title, opened.sig_dims) == ("NumPy", "a", 2)


def test_opening_computes_nothing(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    with raise_if_dask_computes():
        assert is_dask_collection(open_file(tmp_path / "a.npy").array)


@pytest.mark.parametrize(
    ("shape", "sig_dims", "names"),
    [
        ((8,), 1, ("sig_x",)),
        ((3, 8), 1, ("x", "sig_x")),
        ((3, 8, 8), 2, ("x", "sig_y", "sig_x")),
        ((2, 3, 4, 8, 8), 2, ("nav_0", "nav_1", "nav_2", "sig_y", "sig_x")),
    ],
)
def test_signal_dimensions_and_names_where_nobody_says(tmp_path, shape, sig_dims, names):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    opened = open_file(tmp_path / "a.npy")
    assert opened.sig_dims == sig_dims
    assert tuple(axis.name for axis in opened.axes) == names


def test_signal_dimensions_as_asked_for(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    opened = open_file(tmp_path / "a.npy", sig_dims=1)
    assert opened.sig_dims == 1
    assert [axis.name for axis in opened.axes] == ["y", "x", "sig_x"]


@pytest.mark.parametrize(
    "content", [b"", b"no numpy file", b"\x93NUMPY\x01\x00"], ids=["empty", "other", "cut"]
)
def test_a_file_that_is_none(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.npy (cannot be read as a \.npy file|is empty)"):
        open_file(tmp_path / "a.npy")


def test_a_file_that_is_cut(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 5)))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:-8])
    with pytest.raises(FileFormatError, match=r"a\.npy cannot be read as a \.npy file"):
        open_file(tmp_path / "a.npy")


def test_an_array_that_cannot_be_mapped(tmp_path):
    np.save(tmp_path / "a.npy", np.array([None]))
    with pytest.raises(FileFormatError, match="as an array of numbers"):
        open_file(tmp_path / "a.npy")


def test_an_empty_array(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((0, 3, 4)))
    assert_eq(open_file(tmp_path / "a.npy").array, np.zeros((0, 3, 4)))
