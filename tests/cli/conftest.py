"""A scan, and the files that hold it."""

import numpy as np
import pytest

SHAPE = (6, 8, 10, 12)


@pytest.fixture(scope="session")
def values():
    return np.random.default_rng(5).integers(0, 1000, SHAPE).astype(np.uint16)


@pytest.fixture
def file(tmp_path, values):
    np.save(tmp_path / "scan.npy", values)
    return tmp_path / "scan.npy"
