"""Sparse frames in raw files: what is read, without copies, and files that disagree."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.backends.sparse_types import gcxs_to_csr
from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io import from_raw_csr, raw_csr
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import chunkings, shapes

sparse = pytest.importorskip("sparse", reason="sparse is an extra")


class Files(NamedTuple):
    """Where the three arrays of a matrix are, and their types."""

    indptr: str
    indices: str
    data: str
    types: dict[str, str]

    def open(self, nav_shape, sig_shape, **others):
        return from_raw_csr(
            *self[:3], nav_shape=nav_shape, sig_shape=sig_shape, **(self.types | others)
        )


def write(folder, values, n_nav, indptr="<i8", indices="<i4", data="<u2"):
    """Write an array as CSR files, its first dimensions being navigation."""
    nav = int(np.prod(values.shape[:n_nav]))
    matrix = sp.csr_array(values.reshape(nav, -1))
    types = {"indptr_dtype": indptr, "indices_dtype": indices, "dtype": data}
    paths = [os.fspath(folder / name) for name in ("indptr", "indices", "data")]
    parts = (matrix.indptr, matrix.indices, matrix.data)
    for path, part, dtype in zip(paths, parts, types.values(), strict=True):
        part.astype(dtype).tofile(path)
    return Files(*paths, types)


@pytest.fixture
def values():
    rng = np.random.default_rng(5)
    return (rng.integers(1, 900, (4, 6, 5, 7)) * (rng.random((4, 6, 5, 7)) < 0.2)).astype("u2")


@pytest.fixture
def files(tmp_path, values):
    return write(tmp_path, values, 2)


def dense(array):
    return array.compute(scheduler="synchronous").todense()


@pytest.mark.full
@settings(deadline=None, max_examples=examples(40))
@given(data=st.data())
def test_what_is_written_is_read(data, tmp_path_factory):
    shape = data.draw(shapes(min_nav=1))
    n_nav = shape.nav.dims
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    density = data.draw(st.sampled_from([0, 0.1, 0.7, 1]))
    wanted = (rng.integers(1, 99, shape) * (rng.random(shape) < density)).astype("u2")
    index_types = ["<i4", "<i8", "<u4", ">i4", "<u2", "u8"]
    files = write(
        tmp_path_factory.mktemp("csr"),
        wanted,
        n_nav,
        indptr=data.draw(st.sampled_from(["<i4", "<u8", ">i8"])),
        indices=data.draw(st.sampled_from(index_types)),
        data=data.draw(st.sampled_from(["<u2", ">u2", "f4", "i8", "c8"])),
    )
    chunks = (*data.draw(chunkings(tuple(shape.nav))), *(-1 for _ in shape.sig))
    array = files.open(tuple(shape.nav), tuple(shape.sig), chunks=chunks)
    assert array.shape == tuple(shape)
    assert array.dtype == np.dtype(files.types["dtype"]).newbyteorder("=")
    np.testing.assert_array_equal(dense(array), wanted)
    for block in array.blocks.ravel():
        one = block.compute(scheduler="synchronous")
        assert one.compressed_axes == tuple(range(n_nav))
        matrix = gcxs_to_csr(one)
        assert matrix.has_canonical_format
        np.testing.assert_array_equal(matrix.toarray(), one.todense().reshape(matrix.shape))


def test_pixels_out_of_order_and_twice(tmp_path):
    files = write(tmp_path, np.ones((1, 4), "u2"), 1)
    np.array([2, 0, 2, 3], "<i4").tofile(files.indices)
    array = files.open(1, 4)
    np.testing.assert_array_equal(dense(array), [[1, 0, 2, 1]])
    assert gcxs_to_csr(array.compute()).has_canonical_format


def test_indices_are_looked_at_once(tmp_path, monkeypatch):
    calls = []
    look = raw_csr.in_order
    monkeypatch.setattr(raw_csr, "in_order", lambda *given: calls.append(1) or look(*given))
    files = write(tmp_path, np.eye(6, dtype="u2"), 1)
    for _ in range(2):
        np.testing.assert_array_equal(dense(files.open(6, 6, chunks=(3, -1))), np.eye(6))
        assert len(calls) == 2
    os.utime(files.indices, ns=(0, 10**9))  # another file, for all one knows
    dense(files.open(6, 6, chunks=(3, -1)))
    assert len(calls) == 4


@pytest.mark.parametrize(("place", "value"), [(3, 0), (-1, 9999), (0, -1)])
def test_pointers_that_cannot_be(files, place, value):
    values = np.fromfile(files.indptr, "<i8")
    values[place] = value
    values.tofile(files.indptr)
    match = r"indptr must increase from 0 to the \d+ entries"
    with raise_if_dask_computes(), pytest.raises(FileFormatError, match=match):
        files.open((4, 6), (5, 7))


@pytest.mark.parametrize("which", [1, 2])
def test_a_file_that_is_cut(files, which):
    file = Path(files[which])
    content = file.read_bytes()
    file.write_bytes(content[:-8])
    with pytest.raises(
        FileFormatError, match=r"indices contains \d+ values .*data contains \d+ values of '<u2'"
    ):
        files.open((4, 6), (5, 7))
    file.write_bytes(content[:-1])
    with pytest.raises(FileFormatError, match=r"bytes, which is not a multiple of the [24] byt"):
        files.open((4, 6), (5, 7))


def test_pixels_outside_of_the_frame_are_told_when_they_are_read(files):
    array = files.open((4, 6), (5, 3), chunks=(2, 6, -1, -1))
    with pytest.raises(
        FileFormatError, match=r"indices has pixels .* among frames 0 to 11, .* has 15 pixels"
    ):
        array.blocks[0].compute()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"indices_dtype": "f4"}, ArgumentTypeError),
        ({"dtype": "M8[s]"}, ArgumentTypeError),
        ({"nav_shape": ()}, ArgumentValueError),
        ({"sig_shape": (5, 0)}, ArgumentValueError),
        ({"chunks": (4, 6, 2, 7)}, ArgumentValueError),
    ],
)
def test_wrong_arguments(files, wrong, error):
    with pytest.raises(error):
        files.open(**({"nav_shape": (4, 6), "sig_shape": (5, 7)} | wrong))
