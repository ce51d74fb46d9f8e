"""Many blocks of mapped files at once: descriptors are few, and are given back."""

import gc
from pathlib import Path

import numpy as np
import pytest

from udfdask.io import memmap, open_file

resource = pytest.importorskip("resource", reason="limits of a process are those of Unix")

FRAMES = np.random.default_rng(3).integers(0, 99, (40, 30, 2, 2)).astype("u2")


@pytest.fixture
def frames(tmp_path):
    """A file that is read in 1200 blocks."""
    np.save(tmp_path / "scan.npy", FRAMES)
    return open_file(tmp_path / "scan.npy", chunks=(1, 1, 2, 2)).array


def descriptors():
    """How many this process has."""
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


def test_files_share_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memmap, "MOST_OWN", 0)
    kept = []
    for seed in range(3):  # in one place, and of one size
        path = tmp_path / "scan.npy"
        path.unlink(missing_ok=True)
        np.save(path, FRAMES + seed)
        kept.append(open_file(path, chunks=(20, 15, 2, 2)).array.persist(scheduler="threads"))
    for seed, array in enumerate(kept):
        np.testing.assert_array_equal(array.compute(scheduler="threads"), FRAMES + seed)
