"""Weighted sums over rings around a common center, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, sample
from suites import examples
from udfdask.kernels.cpu.ring_sums import (
    FEWEST,
    RingPlaces,
    add_ring_sums,
    frames_in_memory,
    ring_runs,
)
from udfdask.kernels.numba_internals.vector_products import LANES
from udfdask.masks.bins import find_members

REAL = [d for d in KNOWN + FOREIGN if np.dtype(d).kind != "c"]
NUMBERS = [0, 1, 5, FEWEST, LANES - 1, LANES, LANES + 3, 2 * LANES + FEWEST]


def found(tile, members, origin=(0, 0)):
    frames = frames_in_memory(tile)
    inside = members.within(origin, tile.shape[1:])
    places = inside.flat_pixels(origin, frames.row_step).astype(np.uint32)
    rings = RingPlaces(inside.bounds, places, inside.weight)
    out = np.ones((len(tile), len(rings.bounds) - 1))
    runs = ring_runs(rings, frames)
    add_ring_sums(frames, rings, runs, out)
    return out - 1


def plain(tile, members, origin=(0, 0)):
    inside = members.within(origin, tile.shape[1:])
    ring = np.repeat(np.arange(len(inside.bounds) - 1), np.diff(inside.bounds))
    sums = np.zeros((len(tile), len(inside.bounds) - 1))
    with np.errstate(invalid="ignore"):
        values = tile[:, inside.y - origin[0], inside.x - origin[1]] * inside.weight
        for f, row in enumerate(values.astype("f8")):
            np.add.at(sums[f], ring, row)
    return sums


@st.composite
def cases(draw):
    sig = draw(st.tuples(st.integers(1, 40), st.integers(1, 70)))
    center = draw(st.tuples(st.floats(-9, sig[0] + 9), st.floats(-9, sig[1] + 9)))
    inner = draw(st.sampled_from([0, 0.3, 7]))
    outer = inner + draw(st.floats(1, 50))
    rings = draw(st.sampled_from([1, 3, 20, 90]))  # also thinner than a pixel, and much thicker
    return sig, find_members(center, sig, outer, inner, rings)


@pytest.mark.parametrize("dtype", REAL)
@settings(max_examples=examples(30))
@given(cases(), st.sampled_from(NUMBERS[1:]), st.booleans())
def test_every_dtype(dtype, case, n, part):
    (height, width), members = case
    origin = (height // 3, width // 3) if part else (0, 0)
    tile = sample(dtype, (n, height, width))[:, origin[0] :, origin[1] :]
    largest = np.abs(tile.astype("f8")).max(initial=0)  # sums may cancel each other
    np.testing.assert_allclose(
        found(tile, members, origin),
        plain(tile, members, origin),
        rtol=1e-12,
        atol=1e-12 * largest * tile[0].size + 1e-12,
    )


@pytest.mark.parametrize("dtype", ["f4", ">f8"])
def test_only_pixels_with_a_weight_are_read(dtype):
    members = find_members((20, 20), (41, 41), 12, 0, 12)
    for n in NUMBERS[1:]:
        tile = np.ones((n, 41, 41), dtype)
        tile[:, 20, 35] = np.nan  # in no ring
        tile[n // 2, 20, 25], tile[-1, 24, 23] = np.inf, np.nan  # both at a distance of 5
        rings, wanted = found(tile, members), plain(tile, members)
        np.testing.assert_allclose(rings, wanted, rtol=1e-12)
        assert (~np.isfinite(rings)).any(axis=0).nonzero()[0].tolist() == [4, 5]
