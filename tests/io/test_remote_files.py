"""Files of NumPy and raw files on servers: each task reads its own bytes, and the same values."""

import numpy as np
import pytest
from dask.array.utils import assert_eq
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_servers import serving
from suites import examples
from udfdask.errors import FileFormatError
from udfdask.io import from_raw, open_file
from udfdask.testing import raise_if_dask_computes

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")

SHAPE = (6, 8, 16, 16)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(5).integers(0, 999, SHAPE).astype(">u2")


@pytest.fixture(scope="module")
def server(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("server")
    np.save(folder / "scan.npy", values)
    np.save(folder / "columns.npy", np.asfortranarray(values))
    (folder / "scan.raw").write_bytes(bytes(100) + values.tobytes())
    with serving(folder) as files:
        yield files


@pytest.mark.parametrize("name", ["scan.npy", "columns.npy"])
def test_it_is_what_the_local_file_is(server, values, name):
    here, there = open_file(server.folder / name), open_file(f"{server.url}/{name}")
    assert_eq(there.array, values)
    assert there.array.dtype == here.array.dtype
    assert there.array.chunks == here.array.chunks
    assert (there.title, there.sig_dims, there.axes) == (here.title, here.sig_dims, here.axes)
    assert there.reader == "NumPy, by byte ranges"


def test_opening_reads_the_header_alone(server):
    server.loaded()
    with raise_if_dask_computes():
        opened = open_file(f"{server.url}/scan.npy")
    assert opened.array.shape == SHAPE
    assert sum(request.sent for request in server.loaded()) < 1 << 15


def test_distant_parts_are_read_apart(tmp_path):
    rows = np.arange(4 * 2 * 300 * 300, dtype="u4").reshape(4, 2, 300, 300)
    np.save(tmp_path / "rows.npy", rows)
    with serving(tmp_path) as files:
        scan = open_file(f"{files.url}/rows.npy", chunks=(-1, 1, -1, -1)).array
        files.loaded()
        assert_eq(scan, rows)
        loaded = files.loaded()
        assert len(loaded) == 8
        assert sum(request.sent for request in loaded) == rows.nbytes


def test_a_pixel_of_each_frame_needs_no_request_for_each_frame(server, values):
    scan = open_file(f"{server.url}/scan.npy").array
    server.loaded()
    assert np.array_equal(scan[:, :, 3, 5].compute(), values[:, :, 3, 5])
    assert len(server.loaded()) == len(scan.chunks[0])


@settings(max_examples=examples(40))
@given(st.data())
def test_any_part_is_that_of_the_array(server, values, data):
    scan = open_file(f"{server.url}/{data.draw(st.sampled_from(['scan.npy', 'columns.npy']))}")
    parts = st.tuples(
        *(
            st.integers(-size, size - 1) | st.slices(size).filter(lambda part: part.step != 0)
            for size in SHAPE
        )
    )
    chunks = data.draw(st.tuples(*(st.integers(1, size) for size in SHAPE)))
    source = open_file(f"{server.url}/scan.npy", chunks=chunks).array
    index = data.draw(parts)
    assert np.array_equal(scan.array[index].compute(), values[index])
    assert np.array_equal(source[index].compute(), values[index])


def test_a_raw_file(server, values):
    layout = {"nav_shape": (6, 8), "sig_shape": (16, 16), "dtype": ">u2", "offset": 100}
    array = from_raw(f"{server.url}/scan.raw", **layout, chunks=(3, 4, -1, -1))
    assert_eq(array, values)
    opened = open_file(f"{server.url}/scan.raw", **layout)
    assert_eq(opened.array, values)
    assert (opened.title, opened.reader, opened.sig_dims) == ("scan", "raw binary", 2)


@pytest.mark.full
def test_a_damaged_header(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(content[:-1])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "text.npy").write_bytes(b"These are no numbers")
    with serving(tmp_path) as files:
        with pytest.raises(FileFormatError, match="fewer than an array"):
            open_file(f"{files.url}/cut.npy")
        for name in ("empty.npy", "text.npy"):
            with pytest.raises(FileFormatError, match=f"{name} cannot be read as a .npy file"):
                open_file(f"{files.url}/{name}")
