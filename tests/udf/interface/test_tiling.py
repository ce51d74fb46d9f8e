"""Point 20: tiling preferences, and tiles that fit the cache."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import compute, make
from udfdask.base.config import tile_bytes
from udfdask.geometry.tiling import TILE_BYTES


def shapes_of(x, *preferences, **config):
    """The shapes of all tiles, where several UDFs have these preferences."""
    seen: list[tuple[int, ...]] = []

    def process_tile(self, tile):
        seen.append(tile.shape)

    udfs = [
        make(
            {"v": {"kind": "nav"}},
            process_tile=process_tile,
            get_tiling_preferences=lambda self, one=one: one,
        )()
        for one in preferences
    ]
    with dask.config.set({f"udfdask.{k.replace('_', '-')}": v for k, v in config.items()}):
        compute(x, udfs)
    return set(seen)


@pytest.fixture
def x() -> da.Array:
    """Two chunks of 32 frames of 1 KiB."""
    return da.zeros((2, 32, 16, 16), chunks=(1, 32, 16, 16), dtype="float32")


@pytest.mark.point(20)
@pytest.mark.parametrize(
    ("preference", "expected"),
    [
        ({}, {(32, 16, 16)}),
        ({"depth": np.inf, "total_size": np.inf}, {(32, 16, 16)}),
        ({"depth": 8, "total_size": np.inf}, {(8, 16, 16)}),
        ({"depth": 8.0}, {(8, 16, 16)}),
        ({"depth": 8.9}, {(8, 16, 16)}),
        ({"depth": np.int16(8)}, {(8, 16, 16)}),
        ({"depth": 1}, {(1, 16, 16)}),
        ({"depth": 20}, {(20, 16, 16), (12, 16, 16)}),
        ({"total_size": 4096}, {(4, 16, 16)}),
        ({"total_size": 5119.5}, {(4, 16, 16)}),
        # where fewer than four frames fit, parts of many
        ({"total_size": 4095.5}, {(21, 3, 16), (11, 3, 16), (21, 1, 16), (11, 1, 16)}),
        ({"depth": 2, "total_size": 4096}, {(2, 16, 16)}),
    ],
)
def test_preferences(x, preference, expected):
    assert shapes_of(x, preference) == expected


@pytest.mark.point(20)
def test_the_smallest_preferences_win(x):
    assert shapes_of(x, {"depth": 8}, {"depth": 2}, {}) == {(2, 16, 16)}
    assert shapes_of(x, {"depth": 8}, {"total_size": 4096}) == {(4, 16, 16)}
    assert shapes_of(x, {"depth": 1}, {"total_size": 2048}) == {(1, 16, 16)}


@pytest.mark.point(20)
def test_a_tile_fits_a_share_of_the_cache():
    """4 MiB of converted data by default, also where a single frame is larger."""
    for shape, dtype in [
        ((128, 256, 256), "uint8"),
        ((64, 256, 256), "float64"),
        ((20, 600, 700), "float32"),
    ]:
        x = da.zeros(shape, chunks=-1, dtype=dtype)
        itemsize = np.result_type(dtype, "float32").itemsize
        shapes = shapes_of(x, {})
        sizes = [np.prod(shape) * itemsize for shape in shapes]
        assert max(sizes) <= TILE_BYTES == tile_bytes()
        assert max(sizes) > 1 << 20
        smaller = shapes_of(x, {}, tile_bytes="64 KiB")
        assert max(np.prod(shape) * itemsize for shape in smaller) <= 1 << 16


@pytest.mark.point(20)
def test_tiles_of_large_frames_hold_several_of_them(x):
    """Where a frame does not fit, its parts of at least 16 frames do."""
    large = da.zeros((32, 64, 64), chunks=-1, dtype="float32")
    assert shapes_of(large, {}, tile_bytes="8 KiB") == {(16, 2, 64)}


@pytest.mark.point(20)
@pytest.mark.parametrize("depth", [1, 3, np.inf])
@pytest.mark.parametrize("total_size", [64, 1000, np.inf])
def test_preferences_do_not_show_in_results(depth, total_size):
    data = np.arange(5 * 4 * 6 * 7).reshape(5, 4, 6, 7)
    x = da.from_array(data, chunks=(2, 3, 4, 7))

    class Sums(ud.UDF):
        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def get_result_buffers(self):
            return {"n": self.buffer("nav", dtype="int64"), "s": self.buffer("sig", dtype="int64")}

        def get_tiling_preferences(self):
            return {"depth": depth, "total_size": total_size}

        def process_tile(self, tile):
            self.results.n += tile.sum(axis=(1, 2))
            self.results.s += tile.sum(axis=0)

        def merge(self, dest, src):
            dest.n[:] = src.n
            dest.s += src.s

    done = compute(x, Sums())
    np.testing.assert_array_equal(done["n"], data.sum(axis=(2, 3)))
    np.testing.assert_array_equal(done["s"], data.sum(axis=(0, 1)))
