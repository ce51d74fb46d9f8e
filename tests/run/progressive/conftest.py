"""Data and schedulers for the tests of progressive runs."""

import dask.array as da
import numpy as np
import pytest

from progressive_cases import CHUNKS, SHAPE


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).integers(-9, 9, size=SHAPE)


@pytest.fixture
def x(values):
    return da.from_array(values, chunks=CHUNKS)
