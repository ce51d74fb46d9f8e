"""The array of the interface tests: every value is another one."""

import dask.array as da
import numpy as np
import pytest

from making import NAV, SIG


@pytest.fixture(scope="session")
def values() -> np.ndarray:
    array = np.arange(np.prod(NAV + SIG), dtype="float32").reshape(NAV + SIG)
    array.flags.writeable = False
    return array


@pytest.fixture
def x(values) -> da.Array:
    """The second navigation axis is chunked: the rows of a chunk are not neighbors."""
    return da.from_array(values, chunks=(2, 4, 3, 5))
