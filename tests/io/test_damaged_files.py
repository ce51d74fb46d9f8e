"""Damaged and unusual files of all formats: right values, or one error with the path."""

import warnings
from contextlib import suppress

import numpy as np
import pytest

from damaging import LEAVES_FILES_OPEN, outcome
from instrument_files import write_blo
from udfdask.errors import ArgumentTypeError
from udfdask.io import open_file

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")

pytestmark = [pytest.mark.full, *LEAVES_FILES_OPEN]

VALUES = np.random.default_rng(6).integers(1, 50, (2, 3, 4, 4)).astype(np.uint8)


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        options = {"chunks": (1, 1, 4, 4), "compression": "gzip", "fletcher32": True}
        file.create_dataset("entry/scan", data=VALUES, **options)


def write_zarr(path, **options):
    array = zarr.create_array(
        str(path), shape=VALUES.shape, dtype="u1", chunks=(1, 1, 4, 4), overwrite=True, **options
    )
    array[:] = VALUES


def read_zarr(path):
    return zarr.open_array(str(path), mode="r")[...]


def read_blo(path):
    content = path.read_bytes()
    frame = [("head", "V6"), ("data", "u1", (4, 4))]
    stored = np.frombuffer(content, frame, 6, int.from_bytes(content[12:16], "little"))["data"]
    return stored.reshape(VALUES.shape)


HOW = {"nav_shape": (2, 3), "sig_shape": (4, 4), "dtype": "u1"}
# A name, what writes the file, what reads it as its own library does, and options of `open_file`.
FORMATS = {
    "npy": ("a.npy", lambda path: np.save(path, VALUES), np.load, {}),
    "raw": ("a.raw", VALUES.tofile, lambda path: np.fromfile(path, "u1").reshape(2, 3, 4, 4), HOW),
    "hdf5": ("a.h5", write_hdf5, lambda path: h5py.File(path)["entry/scan"][()], {}),
    "zarr 3": ("a.zarr", write_zarr, read_zarr, {}),
    "shards": ("a.zarr", lambda path: write_zarr(path, shards=(1, 3, 4, 4)), read_zarr, {}),
    "blo": ("a.blo", lambda path: write_blo(path, VALUES), read_blo, {}),
    "hspy": ("a.hspy", hs.signals.Signal2D(VALUES).save, lambda path: hs.load(path).data, {}),
}


def files_of(path):
    if path.is_dir():
        return [file for file in sorted(path.rglob("*")) if file.is_file()]
    return [path]


def check(path, read, how):
    """Right values, which the library of the format gives, or an error."""
    values = outcome(path, named=path.parent, **how)
    if values is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(values, read(path))


@pytest.mark.parametrize("kind", FORMATS)
def test_files_that_are_cut(tmp_path, kind):
    name, write, read, how = FORMATS[kind]
    path = tmp_path / name
    write(path)
    check(path, read, how)
    for file in files_of(path):
        content = file.read_bytes()
        for length in {*range(0, len(content), max(1, len(content) // 25)), len(content) - 1}:
            file.write_bytes(content[:length])
            if file.suffix in (".npy", ".raw", ".blo", ".h5"):
                assert outcome(path, named=path.parent, **how) is None, length
            else:
                check(path, read, how)
        file.write_bytes(content)


SUFFIXES = "npy h5 nc zarr raw mib blo bcf hspy zspy emd tif dm4 ser mrc rpl prz xml".split()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_content_that_the_suffix_does_not_say(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    for content in (b"", b"1", b"text of no use, but of a few words\n" * 9):
        path.write_bytes(content)
        with suppress(ImportError):  # a package for this format only
            assert outcome(path) is None
    with path.open("wb") as stream:
        np.save(stream, VALUES)
    np.testing.assert_array_equal(outcome(path), VALUES, strict=True)
    path.unlink()
    path.mkdir()
    assert outcome(path) is None


def test_an_array_needs_no_opening():
    with pytest.raises(ArgumentTypeError, match=r"got ndarray: .*an array needs no opening"):
        open_file(np.ones((2, 3)))
