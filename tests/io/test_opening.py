"""What open_file decides before any reader comes in, and files of NumPy."""

import sys

import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io import open_file


def test_a_file_that_is_not_there(tmp_path):
    match = r"there is no file '.*scan\.mib' \(the folder .* exists\): check the path"
    with pytest.raises(FileNotFoundError, match=match):
        open_file(tmp_path / "scan.mib")
    with pytest.raises(
        FileNotFoundError, match=r"\(the folder .*elsewhere does not exist either\)"
    ):
        open_file(tmp_path / "elsewhere" / "scan.mib")


@pytest.mark.parametrize(
    "given", [{"sig_shape": 2}, {"nav_shape": 2, "dtype": "u1"}, {"offset": 3}]
)
def test_half_of_a_raw_file(tmp_path, given):
    (tmp_path / "f").write_bytes(bytes(12))
    with pytest.raises(ArgumentValueError, match=r"pass all of them.* (nav|sig)_shape=None"):
        open_file(tmp_path / "f", **given)
    with pytest.raises(FileFormatError, match="pass nav_shape, sig_shape and dtype"):
        open_file(tmp_path / "f", nav_shape=2)


@pytest.mark.parametrize("begin", [b"\x93NUMPY", b"\x89HDF\r\n\x1a\n"])
def test_a_file_of_another_format_is_not_raw(tmp_path, begin):
    (tmp_path / "f").write_bytes(begin.ljust(24, b"\0"))
    with pytest.raises(ArgumentValueError, match="says itself how to read it"):
        open_file(tmp_path / "f", nav_shape=4, sig_shape=6, dtype="u1")
    opened = open_file(tmp_path / "f", nav_shape=2, sig_shape=6, dtype="u1", offset=12)
    assert not opened.array.any().compute()


@pytest.mark.parametrize(
    ("suffix", "content", "package"),
    [
        (".h5", b"\x89HDF\r\n\x1a\n", "h5py"),
        (".zarr", None, "zarr"),
        (".mib", b"HDR", "hyperspy"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, suffix, content, package):
    path = tmp_path / f"scan{suffix}"
    if content is None:
        path.mkdir()
        (path / "zarr.json").write_text("{}")
    else:
        path.write_bytes(content)
    for name in [package, "rsciio"]:
        monkeypatch.setitem(sys.modules, name, None)
    match = rf'reading scan{suffix} needs {package}.*pip install "udfdask\[io\]"'
    with pytest.raises(ImportError, match=match):
        open_file(path)


@pytest.mark.parametrize("header", [10, 25, 24 + 24 + 7])
def test_a_forgotten_header(tmp_path, header):
    values = np.arange(4 * 12, dtype="u2").reshape(2, 2, 3, 4)  # 24 bytes for each frame
    (tmp_path / "scan.raw").write_bytes(bytes(3 + header) + values.tobytes())
    layout = {"nav_shape": (2, 2), "sig_shape": (3, 4), "dtype": "u2"}
    with pytest.raises(FileFormatError, match="file header") as caught:
        open_file(tmp_path / "scan.raw", **layout, offset=3)
    assert f"pass offset={3 + header}" in str(caught.value)
    assert "sync_offset" not in str(caught.value)
    opened = open_file(tmp_path / "scan.raw", **layout, offset=3 + header)
    assert_eq(opened.array, values)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint16", ">f4", "complex128"])
def test_reads_what_was_saved(tmp_path, order, dtype):
    values = np.asarray(np.arange(360).reshape(3, 4, 5, 6), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    opened = open_file(tmp_path / "a.npy", chunks=(2, 3, -1, 4))
    assert opened.array.dtype == values.dtype
    assert_eq(opened.array, values)
    assert (opened.reader, opened.title, opened.sig_dims) == ("NumPy", "a", 2)


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
