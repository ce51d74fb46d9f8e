import numpy as np
import pytest


@pytest.fixture(scope="session")
def values():
    """A scan."""
    made = np.random.default_rng(3).integers(0, 99, (4, 6, 8, 10)).astype(np.uint16)
    made.flags.writeable = False
    return made
