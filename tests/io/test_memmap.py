"""Files in memory: mapped blocks with few descriptors, and reading in place of mapping."""

import gc
import os
from pathlib import Path

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.errors import FileFormatError
from udfdask.io import from_raw, memmap, open_file
from udfdask.io.file_identity import FileIdentity
from udfdask.io.memmap import MappedArray

SCAN = np.random.default_rng(3).integers(0, 60000, (5, 7, 6, 4)).astype(">u2")


@pytest.fixture
def unmapped():
    with dask.config.set({"udfdask.map-files": False}):
        yield


@pytest.fixture
def file(tmp_path):
    SCAN.tofile(tmp_path / "scan.raw")
    return tmp_path / "scan.raw"


def opened(file, **kwargs):
    return from_raw(file, nav_shape=(5, 7), sig_shape=(6, 4), dtype=">u2", **kwargs)


@given(data=st.data())
@settings(deadline=None, max_examples=examples(150))
def test_any_part_of_any_layout_is_what_mapping_gives(data, tmp_path_factory):
    shape = data.draw(st.lists(st.integers(1, 6), max_size=4).map(tuple))
    order = data.draw(st.permutations(range(len(shape))))
    gaps = data.draw(st.lists(st.integers(0, 40), min_size=len(shape), max_size=len(shape)))
    strides, step = [0] * len(shape), 3
    for axis, gap in zip(order, gaps, strict=True):
        strides[axis] = step + gap
        step = strides[axis] * shape[axis]
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(np.random.default_rng(1).bytes(11 + step))
    layout = {
        "file": FileIdentity.of(path),
        "shape": shape,
        "dtype": np.dtype("S3"),
        "offset": 11,
        "strides": tuple(strides),
    }
    index = tuple(
        data.draw(st.one_of(st.integers(-size, size - 1), st.slices(size))) for size in shape
    )
    read = MappedArray(mapped=False, **layout)[index]
    np.testing.assert_array_equal(read, MappedArray(mapped=True, **layout)[index])
    assert not isinstance(read, np.ndarray) or not read.flags.writeable


def test_little_is_read_of_what_is_not_wanted(unmapped, tmp_path, monkeypatch):
    frames = np.zeros((20, 1024, 1024), "u1")
    np.save(tmp_path / "scan.npy", frames)
    counted = []
    true_bytes = MappedArray._bytes
    monkeypatch.setattr(
        MappedArray,
        "_bytes",
        lambda self, stream, first, count: (
            counted.append(count) or true_bytes(self, stream, first, count)
        ),
    )
    open_file(tmp_path / "scan.npy", chunks=(20, 8, 1024)).array[:, :8].compute(scheduler="sync")
    assert sum(counted) == 20 * 8 * 1024
    assert len(counted) == 20


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_file_that_ends_early(unmapped, file, monkeypatch, when):
    """Cut after the comparison, before or while a task reads it."""
    array = opened(file)
    size = file.stat().st_size
    true_bytes = MappedArray._bytes

    def cut(self, stream, first, count):
        os.truncate(file, 0 if when == "before" else size // 2)
        return true_bytes(self, stream, first, count)

    monkeypatch.setattr(MappedArray, "_bytes", cut)
    with pytest.raises(FileFormatError, match=rf"{file} has changed .* expected {size} bytes"):
        array.compute(scheduler="synchronous")


resource = pytest.importorskip("resource", reason="limits of a process are those of Unix")

FRAMES = np.random.default_rng(3).integers(0, 99, (40, 30, 2, 2)).astype("u2")


@pytest.fixture
def frames(tmp_path):
    """A file that is read in 1200 blocks."""
    np.save(tmp_path / "scan.npy", FRAMES)
    return open_file(tmp_path / "scan.npy", chunks=(1, 1, 2, 2)).array


def descriptors():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def few_descriptors():
    """This process may have 64 descriptors more than it has, and the mappings alive."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + memmap.MOST_OWN + 64, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.full
def test_more_blocks_than_descriptors(frames, few_descriptors):
    before = descriptors()
    kept = frames.persist(scheduler="threads")
    others = 16  # of threads and packages that start meanwhile; without sharing there were 1200
    assert descriptors() <= before + memmap.MOST_OWN + others
    np.testing.assert_array_equal(kept.compute(scheduler="threads"), FRAMES)
    np.testing.assert_array_equal(frames.compute(scheduler="threads"), FRAMES)
    del kept
    assert descriptors() <= before + others
