"""Tiles reach the device unchanged, however late it copies from pinned memory."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from device_udfs import cupy_is
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends import device
from udfdask.backends.device import using_device

TILES = st.lists(
    hnp.arrays(
        st.sampled_from(["uint8", ">u2", "float32", "complex64", "bool", ">f8"]),
        hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6),
        elements=st.integers(0, 1),
    ),
    max_size=8,
)


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    monkeypatch.setattr(device, "STAGING_BYTES", 40)


@pytest.mark.parametrize("pinned", [None, 0, 90])
@given(tiles=TILES, cut=st.booleans())
def test_tiles_arrive_as_they_are(pinned, tiles, cut):
    """Check after all transfers were started: a buffer overwritten too early gives an error."""
    if cut:
        tiles = [tile[..., ::-1] for tile in tiles]
    with numpy_standing_in_for_cupy(pinned=pinned) as cupy, using_device(own_stream=True):
        there = [device.tile_to_device(tile) for tile in tiles]
        for tile, copy in zip(tiles, there, strict=True):
            assert copy.dtype == tile.dtype.newbyteorder("=")
            np.testing.assert_array_equal(copy.get(), tile)
        assert cupy.ledger.bytes_to_device == sum(tile.nbytes for tile in tiles)


def test_pinned_memory_is_two_buffers_a_thread():
    with numpy_standing_in_for_cupy() as cupy:

        def work():
            for _ in range(3):
                with using_device(own_stream=True):
                    for _ in range(10):
                        device.tile_to_device(np.ones((2, 25)))  # one frame is larger than a buffer

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cupy.ledger.pinned == 3 * 2 * 200
        assert cupy.ledger.to_device == 3 * 3 * 10 * 2


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1 << 16, 8 << 20])
def test_tiles_arrive_on_a_device(monkeypatch, size):
    """Start many transfers before the device finishes the first one."""
    monkeypatch.setattr(device, "STAGING_BYTES", size)
    rng = np.random.default_rng(2)
    tiles = [rng.integers(0, 1000, (n, 300, 301), dtype="uint16")[..., 1:] for n in range(1, 30)]
    with cupy_is("cupy") as xp, using_device(own_stream=True):
        ballast = xp.ones((4000, 4000), dtype="float32")
        there = []
        for tile in tiles:
            ballast = ballast @ ballast * 0
            there.append(device.tile_to_device(tile))
        sums = [int(copy.sum(dtype="int64")) for copy in there]
        for tile, copy in zip(tiles, there, strict=True):
            np.testing.assert_array_equal(copy.get(), tile)
    assert sums == [int(tile.sum(dtype="int64")) for tile in tiles]
