"""The demonstration recording: lazy, repeatable, and like a recording."""

import numpy as np
import pytest

from udfdask.demo import make_recording

pytestmark = pytest.mark.full

SMALL = {"nav_shape": (12, 16), "sig_shape": (48, 48)}


@pytest.fixture(scope="module")
def recording():
    return make_recording().compute()


@pytest.mark.parametrize("chunks", [-1, (5, 16, 48, 48), (12, 7, 20, 31), "auto"])
def test_the_same_seed_gives_the_same_counts(chunks):
    expected = make_recording(**SMALL, seed=3).compute()
    array = make_recording(**SMALL, chunks=chunks, seed=3)
    np.testing.assert_array_equal(array.compute(), expected)


def test_particles_absorb_and_deflect(recording):
    disk = recording[..., 38:59, 38:59].astype(float)
    total = disk.sum(axis=(2, 3))
    assert total[14, 15] < 0.8 * total[0, 0]
    offsets = np.arange(-10, 11)
    com_x = (disk.sum(axis=2) * offsets).sum(axis=-1) / total
    # Left and right of the first particle's center, and far from all.
    assert com_x[14, 9:12].mean() > 0.4
    assert com_x[14, 19:22].mean() < -0.4
    assert np.abs(com_x[:3, :6]).max() < 0.3
