"""Kernels for devices agree with those for the CPU, for blocks of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_udfs import MODULES, cupy_is
from udfdask.backends.table import to_host
from udfdask.kernels.cpu.pixel_sums import add_frames
from udfdask.kernels.cuda import dense_products, sums, variance
from udfdask.kernels.moment_arrays import Moments

RNG = np.random.default_rng(11)


@pytest.fixture(params=[1, 700, 1 << 26])
def small_blocks(monkeypatch, request):
    monkeypatch.setattr(sums, "BLOCK_BYTES", request.param)


@pytest.fixture(params=MODULES)
def xp(request):
    with cupy_is(request.param) as module:
        yield module


def frames(dtype, shape=(7, 5, 6)):
    if np.dtype(dtype).kind == "c":
        return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)
    return (RNG.normal(50, 20, shape)).astype(dtype)


@given(n=st.integers(0, 20), size=st.integers(1, 200))
def test_blocks_are_all_of_the_frames(n, size):
    data = np.arange(n * 4).reshape(n, 2, 2)
    found = []
    for block, numbers in sums.blocks_of(size, data, np.arange(n)):
        found.append(block)
        np.testing.assert_array_equal(block, data[numbers])
    assert sum(len(block) for block in found) == n
    assert all(len(block) for block in found)
    if n:
        np.testing.assert_array_equal(np.concatenate(found), data)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "complex64"])
def test_sums_are_those_of_the_host(xp, dtype):
    data = frames(dtype)
    wide = np.result_type(dtype, "f8") if np.dtype(dtype).kind in "fc" else np.dtype("i8")
    total, rows = xp.zeros((5, 6), dtype=wide), xp.zeros(7, dtype=wide)
    wanted = np.zeros((5, 6), wide)
    for _ in range(2):
        sums.add_frames(xp.asarray(data), total)
        sums.add_pixels(xp.asarray(data), rows)
        add_frames(data, wanted)
    np.testing.assert_allclose(to_host(total), wanted)
    np.testing.assert_allclose(to_host(rows), 2 * data.sum(axis=(1, 2), dtype=wide))


def no_moments(xp, shape, dtype):
    """Return the moments of no frames."""
    return Moments(xp.zeros(shape, dtype=dtype), xp.zeros(shape, dtype=dtype), xp.zeros(shape))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int64", "float32", "complex128"])
@pytest.mark.parametrize("cuts", [(7,), (1, 6), (3, 0, 4), (1,) * 7])
def test_moments_do_not_depend_on_the_tiles(xp, small_blocks, dtype, cuts):
    data = frames(dtype)
    wide = "c16" if np.dtype(dtype).kind == "c" else "f8"
    found, before = no_moments(xp, (5, 6), wide), 0
    for n in cuts:
        variance.add_moments(xp.asarray(data[before : before + n]), before, found)
        before += n
    total = to_host(found.origin) * before + to_host(found.excess)
    np.testing.assert_allclose(total, data.sum(axis=0, dtype=wide), rtol=1e-12)
    wanted = data.var(axis=0, dtype=wide) * 7
    np.testing.assert_allclose(to_host(found.varsum), wanted, rtol=1e-10)


def test_moments_of_nothing_change_nothing(xp):
    found = Moments(*(xp.ones((2, 2)) for _ in range(3)))
    variance.add_moments(xp.zeros((0, 2, 2)), 3, found)
    variance.merge_moments(3, found, 0, found)
    assert all(float(array.sum()) == 4 for array in found)


@pytest.mark.parametrize("offset", [1e9, -1e12])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_variances_beside_a_large_mean(xp, small_blocks, offset, dtype):
    noise = RNG.integers(-999, 999, size=(49, 5, 6)) / 1024
    data = (offset + noise).astype(dtype)
    found = no_moments(xp, (5, 6), dtype)
    for first in range(0, 49, 7):
        variance.add_moments(xp.asarray(data[first : first + 7]), first, found)
    np.testing.assert_allclose(to_host(found.varsum) / 49, noise.var(axis=0), rtol=1e-12)


@pytest.mark.parametrize("odd", [np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 3])
def test_sums_of_what_is_not_finite(xp, odd, place):
    data = frames("float64")
    data[place, 2, 2] = odd
    found = no_moments(xp, (5, 6), "f8")
    with np.errstate(all="ignore"):
        variance.add_moments(xp.asarray(data), 0, found)
    total = to_host(found.origin) * 7 + to_host(found.excess)
    np.testing.assert_allclose(total, data.sum(axis=0))
    assert np.isnan(to_host(found.varsum)).sum() == 1


@pytest.mark.parametrize("masked", [False, True])
def test_first_moments(xp, small_blocks, masked):
    data, mask = frames("float64"), np.ones((5, 6), bool)
    if masked:
        mask[:2], data[:, :2] = False, np.nan
    out = xp.ones((7, 3))
    place = xp.asarray(mask) if masked else None
    sums.add_first_moments(xp.asarray(data), place, (10, 20), out)
    y, x = np.mgrid[10:15, 20:26]
    seen = np.where(mask, data, 0)
    wanted = [(seen * w).sum(axis=(1, 2)) for w in (1, y, x)]
    np.testing.assert_allclose(to_host(out) - 1, np.stack(wanted, axis=1))


def test_products_of_heights(xp, small_blocks):
    data = frames("float64")
    data[2] = np.nan, *[1] * 5  # a column that is lost
    mantissa, exponent = xp.ones((5, 6)), xp.zeros((5, 6), dtype="int64")
    for part in (data[:4], data[4:]):
        dense_products.multiply_heights(xp.asarray(part), mantissa, exponent)
    logs = np.log(to_host(mantissa)) + to_host(exponent) * np.log(2)
    with np.errstate(invalid="ignore"):
        wanted = np.log(data - data.min(axis=(1, 2), keepdims=True) + 1).sum(axis=0)
    np.testing.assert_allclose(logs, wanted)
    finite = to_host(mantissa)[np.isfinite(wanted)]
    assert ((finite >= 1) & (finite < 2)).all()


@pytest.mark.parametrize("most", [None, 4, 30])
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_products_with_masks(xp, small_blocks, most, dtype):
    data = RNG.integers(0, 200, (7, 30), dtype="uint8")
    matrix = RNG.integers(-3, 4, (30, 2))
    out = xp.ones((7, 2), dtype="int64")
    dense_products.add_dense_products(xp.asarray(data), xp.asarray(matrix.astype(dtype)), out, most)
    np.testing.assert_array_equal(to_host(out), 1 + data.astype("int64") @ matrix)


def test_sums_of_rings(xp, small_blocks):
    data = frames("float32", (7, 30))
    data[:, 29] = np.nan  # in no ring
    rings = [(np.array([1, 3, 5]), RNG.normal(size=(3, 2))), (np.array([], int), np.zeros((0, 2)))]
    out = xp.zeros((7, 2, 2))
    sent = [(xp.asarray(p), xp.asarray(w)) for p, w in rings]
    sums.add_ring_products(xp.asarray(data), sent, out)
    np.testing.assert_allclose(to_host(out)[:, 0], data[:, rings[0][0]] @ rings[0][1], rtol=1e-5)
    assert not to_host(out)[:, 1].any()


@pytest.mark.parametrize("dtype", ["uint16", "complex64"])
def test_spreads_of_pixels(xp, small_blocks, dtype):
    data = frames(dtype)
    ys, xs = np.nonzero(RNG.random((5, 6)) > 0.4)
    mean = xp.zeros(7, dtype="c16" if dtype == "complex64" else "f8")
    squares = xp.zeros(7)
    for part in (slice(0, 4), slice(4, None)):
        places = xp.asarray(ys[part]), xp.asarray(xs[part])
        variance.add_spread(xp.asarray(data), *places, part.start, mean, squares)
    seen = data[:, ys, xs]
    np.testing.assert_allclose(to_host(mean), seen.mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(to_host(squares) / len(ys), seen.var(axis=1), rtol=1e-5)


@pytest.mark.parametrize("kept", [False, True])
def test_moduli_of_spectra(xp, small_blocks, kept):
    data, keep = frames("float64"), RNG.random((5, 6)) > 0.3
    ky, kx, out = np.array([0, 2, 4]), np.array([1, 3, 0]), xp.zeros(7)
    dense_products.write_moduli(
        xp.asarray(data),
        xp.asarray(keep) if kept else None,
        xp.asarray(ky),
        xp.asarray(kx),
        out,
    )
    wanted = np.abs(np.fft.rfft2(np.where(keep, data, 0) if kept else data))[:, ky, kx]
    np.testing.assert_allclose(to_host(out), wanted.sum(axis=1))


def plain_kernel(xp):
    """Return a Python function that does the same as the kernel."""

    def run(tile, frames, pixels, depth, origins, excesses, varsums):
        flat = to_host(tile).reshape(frames, pixels).astype("f8")
        for g, first in enumerate(range(0, frames, depth)):
            group = flat[first : first + depth]
            origins.reshape(-1, pixels)[g] = xp.asarray(group[0])
            excesses.reshape(-1, pixels)[g] = xp.asarray((group - group[0]).sum(axis=0))
            varsums.reshape(-1, pixels)[g] = xp.asarray((group - group[0]).var(axis=0) * len(group))

    return run


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
@pytest.mark.parametrize("frames_in_all", [1, 5, 16, 40, 133])
def test_groups_of_frames_are_put_together(monkeypatch, dtype, frames_in_all):
    monkeypatch.setattr(variance, "has_kernels", lambda xp, tile: True)
    monkeypatch.setattr(variance, "_kernel", plain_kernel)
    data = frames(dtype, (frames_in_all, 3, 4))
    with cupy_is("stand-in") as xp:
        found = no_moments(xp, (3, 4), "f8")
        cut = frames_in_all // 3
        variance.add_moments(xp.asarray(data[:cut]), 0, found)
        variance.add_moments(xp.asarray(data[cut:]), cut, found)
        total = (found.origin * frames_in_all + found.excess).get()
        np.testing.assert_allclose(total, data.sum(axis=0, dtype="f8"))
        wanted = data.var(axis=0, dtype="f8") * frames_in_all
        np.testing.assert_allclose(found.varsum.get(), wanted, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("offset", [0, 1e9, -1e12])
def test_groups_of_frames_far_from_zero(monkeypatch, offset):
    monkeypatch.setattr(variance, "has_kernels", lambda xp, tile: True)
    monkeypatch.setattr(variance, "_kernel", plain_kernel)
    noise = RNG.integers(-999, 999, size=(200, 3, 4)) / 1024
    with cupy_is("stand-in") as xp:
        found = no_moments(xp, (3, 4), "f8")
        for first in (0, 100):
            variance.add_moments(xp.asarray(noise[first : first + 100] + offset), first, found)
        np.testing.assert_allclose(found.varsum.get() / 200, noise.var(axis=0), rtol=1e-12)


@given(n=st.integers(1, 5000), pixels=st.integers(1, 10**7))
def test_groups_are_neither_tiny_nor_more_than_there_are_frames(n, pixels):
    depth = variance.group_depth(n, pixels)
    assert 1 <= depth <= n
    assert depth >= min(n, variance.LEAST)
    assert -(-n // depth) * pixels <= max(pixels, variance.THREADS)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", list("?bhilqBHILQfd"))
def test_the_kernel(dtype):
    with cupy_is("cupy") as xp:
        data = frames("float64", (133, 6, 7)).astype(dtype)
        found = variance.group_moments(xp, xp.asarray(data), 16)
        joined = variance.joined(*found)
        total = (joined.origin * 133 + joined.excess).get()
        np.testing.assert_allclose(total, data.sum(axis=0, dtype="f8"))
        wanted = data.var(axis=0, dtype="f8") * 133
        np.testing.assert_allclose(joined.varsum.get(), wanted, rtol=1e-9, atol=1e-9)
