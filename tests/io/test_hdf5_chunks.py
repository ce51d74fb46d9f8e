"""Chunks of HDF5 files that are read without HDF5: the values that h5py reads."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.errors import FileFormatError
from udfdask.io import open_file, stored_chunks
from udfdask.io.hdf5 import HDF5Dataset

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

VALUES = np.random.default_rng(8).poisson(0.2, (5, 7, 12, 10)).astype("u2")
STORED = (2, 3, 12, 7)

OWN = {
    "plain": {},
    "gzip": {"compression": "gzip"},
    "shuffle and gzip": {"compression": "gzip", "shuffle": True},
    "lzf": {"compression": "lzf"},
}
"""Options of datasets that are read without HDF5."""

OTHERS = {
    "shuffle": {"shuffle": True},
    "checksum": {"fletcher32": True},
    "gzip and checksum": {"compression": "gzip", "fletcher32": True},
    "scale and offset": {"scaleoffset": 0},
    "shuffle, gzip and checksum": {"compression": "gzip", "shuffle": True, "fletcher32": True},
}
"""Options of datasets that only HDF5 reads."""


def write(path, values=VALUES, *, stored=STORED, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("scan", data=values, chunks=stored, **options)
    return path


def plugin_options():
    hdf5plugin = pytest.importorskip("hdf5plugin", reason="hdf5plugin is not in any extra")
    return {
        "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="none")),
        "bitshuffle lz4": dict(hdf5plugin.Bitshuffle(cname="lz4")),
        "bitshuffle lz4, small blocks": dict(hdf5plugin.Bitshuffle(nelems=64, cname="lz4")),
        "bitshuffle zstd": dict(hdf5plugin.Bitshuffle(cname="zstd")),
        "blosc": dict(hdf5plugin.Blosc(cname="lz4")),
        "blosc snappy": dict(hdf5plugin.Blosc(cname="snappy")),
        "blosc zstd": dict(hdf5plugin.Blosc(cname="zstd", shuffle=2)),
        "blosc2": dict(hdf5plugin.Blosc2()),
        "lz4": dict(hdf5plugin.LZ4()),
        "zstd": dict(hdf5plugin.Zstd()),
        "shuffle and zstd": {**hdf5plugin.Zstd(), "shuffle": True},
    }


@pytest.fixture
def without_library(monkeypatch):
    """An error if HDF5 reads values."""

    def refuse(self, index):
        raise AssertionError(f"HDF5 reads {index}")

    monkeypatch.setattr(HDF5Dataset, "_from_library", refuse)


@pytest.fixture
def library_reads(monkeypatch):
    parts, read = [], HDF5Dataset._from_library

    def note(self, index):
        parts.append(index)
        return read(self, index)

    monkeypatch.setattr(HDF5Dataset, "_from_library", note)
    return parts


def computed(path, chunks=(3, 4, -1, -1)):
    return open_file(path, chunks=chunks).array.compute(scheduler="synchronous")


@pytest.mark.parametrize("name", OWN)
def test_known_filters(tmp_path, without_library, name):
    for dtype in ("u1", "<u2", ">u2", "<i4", ">f4", "f8", "f2"):
        path = write(tmp_path / "a.h5", VALUES.astype(dtype), **OWN[name])
        found = computed(path)
        np.testing.assert_array_equal(found, VALUES)
        assert found.dtype == dtype


def test_known_filters_of_plugins(tmp_path, without_library):
    pytest.importorskip("imagecodecs", reason="it comes with rosettasciio[tiff]")
    for name, options in plugin_options().items():
        if name in ("bitshuffle", "blosc2", "blosc snappy"):
            continue
        for dtype in ("<u2", ">u4", "u1"):
            path = write(tmp_path / "a.h5", VALUES.astype(dtype), **options)
            np.testing.assert_array_equal(computed(path), VALUES, err_msg=name)


@pytest.mark.parametrize("name", OTHERS)
def test_other_filters_are_left_to_hdf5(tmp_path, library_reads, name):
    path = write(tmp_path / "a.h5", **OTHERS[name])
    np.testing.assert_array_equal(computed(path), VALUES)
    assert library_reads


def test_all_filters_without_other_packages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    monkeypatch.setattr(stored_chunks, "_bitshuffle_library", lambda: None)
    for name, options in (OWN | OTHERS | plugin_options()).items():
        np.testing.assert_array_equal(
            computed(write(tmp_path / "a.h5", **options)), VALUES, err_msg=name
        )


@given(data=st.data())
@settings(deadline=None, max_examples=examples(60, 3))
def test_any_grid_over_any_stored_grid(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "a.h5"
    stored = tuple(data.draw(st.integers(1, size)) for size in VALUES.shape)
    chunks = tuple(data.draw(st.integers(1, size)) for size in VALUES.shape)
    options = data.draw(st.sampled_from([*OWN.values(), *OTHERS.values()]))
    with h5py.File(path, "w") as file:
        scan = file.create_dataset(
            "scan", VALUES.shape, "u2", chunks=stored, fillvalue=7, **options
        )
        # chunks that are never written contain the fill value
        rows = data.draw(st.slices(len(VALUES)))
        scan[sorted(range(len(VALUES))[rows])] = VALUES[sorted(range(len(VALUES))[rows])]
        expected = scan[()]
    array = open_file(path, chunks=chunks).array
    np.testing.assert_array_equal(array.compute(scheduler="synchronous"), expected)
    index = tuple(data.draw(st.slices(size)) for size in VALUES.shape[:2])
    np.testing.assert_array_equal(array[index].compute(scheduler="synchronous"), expected[index])
    np.testing.assert_array_equal(array[1, -1].compute(scheduler="synchronous"), expected[1, -1])


def test_chunks_that_filters_have_skipped(tmp_path, library_reads):
    path = write(tmp_path / "a.h5", compression="gzip")
    changed = VALUES.copy()
    changed[:2, :3, :, :7] = 5
    with h5py.File(path, "r+") as file:
        raw = np.ascontiguousarray(changed[:2, :3, :, :7]).tobytes()
        file["scan"].id.write_direct_chunk((0, 0, 0, 0), raw, filter_mask=1)
    np.testing.assert_array_equal(computed(path, STORED), changed)
    assert len(library_reads) == 1


def test_the_second_dimension_can_grow(tmp_path):
    """HDF5 2.0 lists such chunks at positions (0, 0), (0, 1), (0, 2)."""
    frames = np.arange(120).reshape(3, 1, 5, 8)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        scan = file.create_dataset(
            "scan", (3, 4, 5, 8), "i4", chunks=(1, 1, 5, 8), maxshape=(3, None, 5, 8)
        )
        scan[:, :1] = frames
    expected = np.concatenate([frames, np.zeros((3, 3, 5, 8), int)], axis=1)
    array = open_file(tmp_path / "a.h5", chunks=(1, 1, 5, 8)).array
    np.testing.assert_array_equal(array, expected)


def test_a_damaged_chunk_gives_no_number(tmp_path):
    for name, options in (OWN | plugin_options()).items():
        if name in ("plain", "bitshuffle", "shuffle and zstd"):
            continue
        path = write(tmp_path / "a.h5", **options)
        with h5py.File(path, "r+") as file:
            scan = file["scan"].id
            _, stored = scan.read_direct_chunk((2, 3, 0, 0))
            scan.write_direct_chunk((2, 3, 0, 0), stored[: len(stored) // 2])
        with pytest.raises(FileFormatError, match=rf"{path}, dataset 'scan' at .* cannot be read"):
            computed(path, STORED)


def test_a_file_to_which_this_process_still_writes(tmp_path):
    for number, options in enumerate([{"stored": None}, *OWN.values(), *OTHERS.values()]):
        path = write(tmp_path / f"{number}.h5", np.zeros_like(VALUES), **options)
        with h5py.File(path, "r+") as file:
            for row, values in enumerate(VALUES):  # HDF5 does not write them to the file at once
                file["scan"][row] = values
            np.testing.assert_array_equal(computed(path), VALUES, err_msg=str(options))


def test_a_chunk_that_hdf5_cannot_decode(tmp_path):
    path = write(tmp_path / "a.h5", **OTHERS["gzip and checksum"])
    with h5py.File(path) as file:
        chunk = file["scan"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 20] ^= 255
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"read as HDF5: OSError.*hdf5plugin"):
        computed(path)


@pytest.mark.parametrize("size", [512, 1024, 8192])
def test_files_that_begin_with_other_data(tmp_path, size):
    for suffix in (".h5", ".dat"):
        path = tmp_path / f"a{suffix}"
        with h5py.File(path, "w", userblock_size=size) as file:
            file.create_dataset("scan", data=VALUES, chunks=STORED, compression="gzip")
        with path.open("r+b") as file:
            file.write(b"MATLAB 7.3")
        np.testing.assert_array_equal(computed(path), VALUES)
