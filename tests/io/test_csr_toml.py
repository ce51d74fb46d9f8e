"""Descriptions of raw CSR files."""

import numpy as np
import pytest
import scipy.sparse as sp

from commands import call
from udfdask.errors import FileFormatError
from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes

pytestmark = pytest.mark.full

pytest.importorskip("sparse", reason="sparse is an extra")

DESCRIPTION = """
[params]
filetype = "raw_csr"
nav_shape = [2, 3]
sig_shape = [4, 5]

[raw_csr]
indptr_file = "rowind.dat"
indptr_dtype = "<i4"
indices_file = "coords.dat"
indices_dtype = "<i4"
data_file = "values.dat"
data_dtype = "<u2"
"""


@pytest.fixture
def values():
    return np.diag(np.arange(1, 7)).repeat(4, axis=1)[:, :20].reshape(2, 3, 4, 5).astype("u2")


@pytest.fixture
def file(tmp_path, values):
    matrix = sp.csr_array(values.reshape(6, 20))
    matrix.indptr.astype("<i4").tofile(tmp_path / "rowind.dat")
    matrix.indices.astype("<i4").tofile(tmp_path / "coords.dat")
    matrix.data.tofile(tmp_path / "values.dat")
    (tmp_path / "scan.toml").write_text(DESCRIPTION)
    return tmp_path / "scan.toml"


@pytest.mark.full
def test_what_is_described_is_read(file, values):
    with raise_if_dask_computes():
        opened = open_file(file, chunks=(1, 3, 4, 5))
    assert (opened.reader, opened.title, opened.sig_dims) == ("raw CSR", "scan", 2)
    assert [axis.name for axis in opened.axes] == ["y", "x", "sig_y", "sig_x"]
    assert opened.array.numblocks == (2, 1, 1, 1)
    np.testing.assert_array_equal(opened.array.compute().todense(), values)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("[params]", "[params", r"scan\.toml cannot be read as TOML"),
        ("[params]", "[parameters]", r"scan\.toml has no 'params': the table \[params\] needs"),
        ("nav_shape", "navshape", r"has no 'nav_shape'"),
        ("indices_dtype", "indices_type", r"has no 'indices_dtype'"),
        ('filetype = "raw_csr"', 'filetype = "blo"', r"describes data of type 'blo'"),
        (
            "[2, 3]",
            "[2, 4]",
            r"8 frames need 9 values of '<i4' in .*rowind\.dat, but it contains 7",
        ),
    ],
)
def test_descriptions_that_do_not_fit(file, old, new, match):
    file.write_text(DESCRIPTION.replace(old, new))
    with pytest.raises(FileFormatError, match=match):
        open_file(file)


def test_a_file_that_is_not_there(file):
    (file.parent / "coords.dat").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no file .*coords\.dat"):
        open_file(file)


def test_a_command_runs_over_it(file, values, tmp_path):
    out = tmp_path / "out.npz"
    call("run", file, "--udf", "sum", "--udf", "com:r=4", "--chunks", "1,3,4,5", "--out", out)
    with np.load(out) as done:
        (name,) = (name for name in done if "intensity" in name)
        np.testing.assert_array_equal(done[name], values.sum(axis=(0, 1)))
    assert "sparse.GCXS chunks" in call("explain", file, "--udf", "radial-profile:r=2")
