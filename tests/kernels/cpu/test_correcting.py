"""The correction of a tile agrees with its definition for every dtype and memory layout."""

import itertools

import numpy as np
import pytest

from udfdask import Shape, Slice
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correct_tile import as_lines, correct_tile
from udfdask.corrections.correction_set import checked
from udfdask.corrections.planes import tile_planes
from udfdask.kernels.overflow import compiled_dtype

RNG = np.random.default_rng(3)
FRAMES, SIG = 3, (7, 6)
DARK, GAIN = RNG.uniform(-9, 9, SIG), RNG.uniform(0.5, 2, SIG)
BROKEN = RNG.random(SIG) < 0.2
BROKEN[:2, :2] = True  # the corner has no good neighbor


def corrected(frames, dark, gain, broken):
    """Return the definition, in double precision."""
    wide = np.complex128 if frames.dtype.kind == "c" else np.float64
    good = (frames.astype(wide) - dark) * gain
    out = good.copy()
    for y, x in np.argwhere(broken):
        around = [
            good[:, y + dy, x + dx]
            for dy, dx in itertools.product((-1, 0, 1), repeat=2)
            if 0 <= y + dy < SIG[0] and 0 <= x + dx < SIG[1] and not broken[y + dy, x + dx]
        ]
        if around:
            out[:, y, x] = np.mean(around, axis=0)
    return out


def planes_of(part, dtype, **given):
    mask = given.pop("broken", BROKEN)
    corrections = CorrectionSet(**given, excluded_pixels=np.nonzero(mask))
    return tile_planes(checked(corrections, SIG, np.dtype(dtype)), part, np.dtype(dtype), SIG)


WHOLE = Slice((0, 0), Shape(SIG, sig_dims=2))


@pytest.mark.full
@pytest.mark.parametrize(
    ("native", "dtype"),
    [
        ("?", "f4"),
        ("u1", "f4"),
        ("i2", "f4"),
        ("u2", "f4"),
        (">u2", "f4"),
        ("u2", "f8"),
        ("i4", "f8"),
        ("u8", "f8"),
        ("f2", "f4"),
        ("f4", "f4"),
        (">f4", "f4"),
        ("f8", "f8"),
        ("g", "g"),
        ("u2", "c8"),
        ("c8", "c8"),
        ("c16", "c16"),
    ],
)
def test_dtypes(native, dtype):
    frames = RNG.integers(0, 90, (FRAMES, *SIG)).astype(native)
    if frames.dtype.kind == "c":
        frames += 1j * frames[::-1]
    out = correct_tile(frames, planes_of(WHOLE, dtype, dark=DARK, gain=GAIN))
    assert out.dtype == dtype
    assert out.flags.c_contiguous
    eps = np.finfo(dtype).eps
    expected = corrected(frames, DARK, GAIN, BROKEN)
    np.testing.assert_allclose(out, expected, rtol=20 * max(eps, 1e-16), atol=200 * eps)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("gain", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_what_is_not_given_changes_nothing(dark, gain, broken):
    frames = RNG.integers(0, 90, (FRAMES, *SIG)).astype("u2")
    mask = BROKEN if broken else np.zeros_like(BROKEN)
    given = {"dark": DARK if dark else None, "gain": GAIN if gain else None, "broken": mask}
    out = correct_tile(frames, planes_of(WHOLE, "f8", **given))
    expected = corrected(frames, DARK if dark else 0, GAIN if gain else 1, mask)
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-12)


LAYOUTS = {
    "contiguous": lambda big: big[2:5].copy(),
    "some frames": lambda big: big[2:5],
    "every other frame": lambda big: big[:6:2],
    "last frames first": lambda big: big[4:1:-1],
    "of wider frames": lambda big: np.tile(big, (1, 2, 3))[:3, 3:10, 5:11],
    "of longer frames": lambda big: np.tile(big, (1, 3, 1))[:3, 4:11],
    "fortran": lambda big: np.asfortranarray(big)[:3],
    "columns first": lambda big: big[:3].transpose(0, 2, 1).copy().transpose(0, 2, 1),
    "one frame, many times": lambda big: np.broadcast_to(big[0], big.shape)[:3],
    "one value": lambda big: np.broadcast_to(big[0, 0, 0], big.shape)[:3],
    "every other column": lambda big: np.repeat(big, 2, axis=2)[:3, :, ::2],
    "a field of records": lambda big: records(big)["counts"][:3],
    "one frame": lambda big: big[3:4],
    "no frame": lambda big: big[:0],
}


def records(big):
    array = np.zeros(big.shape, dtype=[("flag", "u1"), ("counts", "u2")])
    array["counts"] = big
    return array


@pytest.mark.parametrize("cut", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("writeable", [False, True])
def test_layouts(cut, writeable):
    big = RNG.integers(0, 90, (9, *SIG)).astype("u2")
    tile = cut(big)
    if tile.flags.writeable:
        tile.flags.writeable = writeable
    before = tile.copy()
    out = correct_tile(tile, planes_of(WHOLE, "f4", dark=DARK, gain=GAIN))
    np.testing.assert_allclose(out, corrected(tile, DARK, GAIN, BROKEN), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(tile, before)
    assert out.shape == tile.shape


def test_no_copy_where_lines_are_contiguous():
    big = RNG.integers(0, 90, (9, 12, 10)).astype("u2")
    for tile, line in (
        (big, 120),
        (big[2:], 120),
        (big[::2], 120),
        (big[:, 3:5], 20),
        (big[:, :, 2:7], 5),
        (big[:1, 2:4, 2:7], 5),
        (big[:, 2:3, 2:7], 5),
    ):
        flat, frame_step, line_step, got = as_lines(tile)
        assert got == line or len(tile) * tile[0].size == got
        assert np.shares_memory(flat, big)
        assert not flat.flags.writeable
        lines = tile[0].size // got
        for i in range(len(tile)):
            read = [flat[i * frame_step + j * line_step :][:got] for j in range(lines)]
            np.testing.assert_array_equal(np.concatenate(read), tile[i].reshape(-1))
    assert not np.shares_memory(as_lines(big[..., ::2])[0], big)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (3, 6), (7, 1), (4, 4)])
def test_parts_look_beyond_themselves(size):
    """The values are identical to those of the full frame, to the bit."""
    frames = RNG.integers(0, 900, (FRAMES, *SIG)).astype("u2")
    corrections = CorrectionSet(dark=DARK, gain=GAIN, excluded_pixels=np.nonzero(BROKEN))
    whole = correct_tile(frames, tile_planes(corrections, WHOLE, np.dtype("f4"), SIG))
    out = np.empty_like(whole)
    looked = 0
    for y, x in itertools.product(range(0, SIG[0], size[0]), range(0, SIG[1], size[1])):
        shape = [min(n, full - o) for n, full, o in zip(size, SIG, (y, x), strict=True)]
        part = Slice((y, x), Shape(shape, sig_dims=2))
        planes = tile_planes(corrections, part, np.dtype("f4"), SIG)
        window = (slice(None), *part.get())
        around = frames[(slice(None), *planes.beyond)]
        looked += planes.beyond.shape[1]
        out[window] = correct_tile(frames[window], planes, around)
    np.testing.assert_array_equal(out, whole)
    assert looked


def test_patches_that_need_nothing_from_beyond_look_nowhere():
    broken = np.zeros(SIG, dtype=bool)
    broken[1, 1] = True
    part = Slice((0, 0), Shape((3, 6), sig_dims=2))
    assert planes_of(part, "f4", broken=broken).beyond.shape == (2, 0)
    part = Slice((3, 0), Shape((4, 6), sig_dims=2))
    planes = planes_of(part, "f4", broken=broken)
    assert planes.beyond.shape == (2, 0)
    assert planes.patched.size == 0


def test_compiled_dtypes():
    for given, compiled in (
        (">u2", "u2"),
        ("<f4", "f4"),
        ("f2", "f4"),
        (">f2", "f4"),
        ("g", "f8"),
        ("G", "c16"),
        ("?", "?"),
        (">c8", "c8"),
    ):
        assert compiled_dtype(np.dtype(given)) == np.dtype(compiled)
        assert compiled_dtype(np.dtype(given)).isnative
