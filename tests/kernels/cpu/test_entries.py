"""The entries of sparse tiles: from every format, without copies, moved, and summed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparse_data import FORMATS, MATRIX_FORMATS, as_matrix, maker, sprinkled
from suites import examples
from udfdask.kernels.cpu import sparse_sums
from udfdask.kernels.cpu.change_frames import moved_back, moved_entries
from udfdask.kernels.cpu.sparse_sums import Entries, entries_of, in_order, values_of

sparse = pytest.importorskip("sparse", reason="sparse is an extra")

SHAPE = (7, 3, 4)


def tile_of(form, values):
    return maker(form, 1)(as_matrix(values, 1) if form in MATRIX_FORMATS else values)


def dense(entries, shape):
    """Return dense frames; entries of the same pixel are added up."""
    out = np.zeros((shape[0], int(np.prod(shape[1:]))), entries.values.dtype)
    frames = np.repeat(np.arange(entries.frames), np.diff(entries.starts))
    np.add.at(out, (frames, entries.pixels.astype(int)), entries.values)
    return out.reshape(shape)


def data(dtype="i4"):
    return sprinkled(np.arange(1, 1 + np.prod(SHAPE)).reshape(SHAPE).astype(dtype), 0.4)


@pytest.mark.parametrize("form", [f for f in (*FORMATS, *MATRIX_FORMATS) if f != "DOK"])
def test_entries_of_each_format(form):
    values = data()
    tile = tile_of(form, values)
    entries = entries_of(tile)
    np.testing.assert_array_equal(dense(entries, SHAPE), values)
    assert (entries.frames, entries.starts.dtype, entries.pixels.dtype.kind) == (7, np.int64, "u")
    assert not any(array.flags.writeable for array in entries)
    starts, stored = values_of(tile)
    np.testing.assert_array_equal(starts, entries.starts)
    np.testing.assert_array_equal(stored, entries.values)


@pytest.mark.parametrize("form", ["GCXS", "csr_array", "csr_matrix"])
def test_rows_are_not_copied(form):
    tile = tile_of(form, data())
    entries = entries_of(tile)
    assert np.shares_memory(entries.values, tile.data)
    assert np.shares_memory(entries.pixels, tile.indices)


def test_values_of_coordinates_are_not_copied():
    tile = tile_of("COO", data())
    assert np.shares_memory(entries_of(tile).values, tile.data)


@pytest.mark.parametrize("form", ["GCXS", "COO", "csr_array", "csc_array"])
@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 2, 2)])
def test_nothing_stored(form, shape):
    entries = entries_of(tile_of(form, np.zeros(shape, "u2")))
    assert entries.frames == shape[0]
    assert len(entries.pixels) == len(entries.values) == 0
    assert not entries.starts.any()


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8"])
def test_narrow_coordinates(dtype):
    """Test more frames and pixels than the dtype of the coordinates can count."""
    values = np.zeros((255, 200), "f4")
    values[254, 199], values[3, 5] = 7, 8
    whole = sparse.COO.from_numpy(values)
    narrow = sparse.COO.from_numpy(values)
    narrow.coords = whole.coords.astype(dtype)
    np.testing.assert_array_equal(dense(entries_of(narrow), values.shape), values)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i4", "i8"])
def test_indices_of_any_integer(dtype):
    tile = tile_of("GCXS", data())
    tile.indices, tile.indptr = tile.indices.astype(dtype), tile.indptr.astype(dtype)
    np.testing.assert_array_equal(dense(entries_of(tile), SHAPE), data())


@pytest.mark.parametrize(
    ("dtype", "taken"), [("?", "u1"), ("f2", "f4"), ("g", "f8"), ("G", "c16"), ("c8", "c8")]
)
def test_dtypes_that_compiled_code_knows(dtype, taken):
    values = data("?") if dtype == "?" else data(dtype)
    assert entries_of(tile_of("COO", values)).values.dtype == np.dtype(taken)


@given(st.integers(1, 9), st.integers(0, 12))
@settings(deadline=None)
def test_groups_of_frames_hold_all_entries(most, frames):
    values = sprinkled(np.arange(1, 1 + frames * 6).reshape(frames, 6), 0.5)
    entries = entries_of(maker("csr_array", 1)(values))
    groups = entries.cut(most)
    assert all(group.frames <= most for group in groups)
    again = [dense(group, (group.frames, 6)) for group in groups]
    np.testing.assert_array_equal(np.concatenate(again), values)


@given(st.data())
@settings(deadline=None, max_examples=examples(50))
def test_moved_entries_are_those_of_moved_frames(draw):
    sig = draw.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    frames = draw.draw(st.integers(0, 4))
    values = np.arange(1, 1 + frames * int(np.prod(sig))).reshape(frames, *sig)
    far = st.lists(st.integers(-6, 6), min_size=len(sig), max_size=len(sig))
    shifts = np.array([draw.draw(far) for _ in range(frames)], "i8").reshape(frames, len(sig))
    first = [draw.draw(st.integers(0, n - 1)) for n in sig]
    part = tuple(slice(f, n) for f, n in zip(first, sig, strict=True))
    piece = values[(slice(None), *part)]
    entries = entries_of(maker("COO", 1)(piece))
    moved = moved_entries(entries, shifts, first, piece.shape[1:], sig)
    elsewhere = np.zeros_like(values)
    elsewhere[(slice(None), *part)] = piece
    np.testing.assert_array_equal(dense(moved, values.shape), moved_back(elsewhere, shifts))


@given(st.lists(st.lists(st.integers(-2, 9), max_size=5), max_size=5), st.integers(1, 9))
@settings(deadline=None)
def test_rows_in_order(rows, width):
    starts = np.cumsum([0, *map(len, rows)])
    pixels = np.array([p for row in rows for p in row], "i4")
    expected = all(
        sorted(set(row)) == row and all(0 <= pixel < width for pixel in row) for row in rows
    )
    assert in_order(starts, pixels, width) is expected
    assert in_order(starts, pixels.astype("i8"), width) is expected


def test_few_frames_are_one_group():
    entries = Entries(np.array([0, 1]), np.array([3], "u4"), np.array([2.0]))
    assert entries.cut(5) == [entries]


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "c8"])
@given(st.data())
@settings(deadline=None, max_examples=examples(30))
def test_sums_of_frames_are_those_of_their_values(dtype, draw):
    """Test intermediate sums in every narrow dtype, also if they are full several times."""
    frames, pixels = draw.draw(st.integers(0, 700)), draw.draw(st.integers(0, 5))
    largest = 1 if dtype == "?" else draw.draw(st.sampled_from([1, 2, 3, 50, 127]))
    kind = np.dtype(dtype).kind
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    values = rng.integers(-largest if kind in "ifc" else 0, largest + 1, (frames, pixels))
    values = sprinkled(values.astype(dtype), draw.draw(st.sampled_from([0.01, 0.5, 1.0])))
    before = {"b": "u8", "u": "u8", "i": "i8", "f": "f8", "c": "c16"}[kind]
    total = np.arange(pixels).astype(before)
    expected = total + values.sum(axis=0, dtype=before)
    sparse_sums.add_entries(entries_of(maker("csr_array", 1)(values)), total)
    np.testing.assert_array_equal(total, expected)


LARGEST = [
    (dtype, value)
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4")
    for value in sorted(
        {np.iinfo(dtype).min, np.iinfo(dtype).max, 1, 15, 16, 127, 128, 255, 256, -1, -127}
    )
    if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
]


@pytest.mark.full
@pytest.mark.parametrize(("dtype", "value"), LARGEST)
def test_narrow_sums_hold_as_many_of_the_largest_values_as_they_can(dtype, value):
    """Test the largest number of frames that fits each dtype, and a few more."""
    for frames in (1, 127, 128, 255, 256, 32768, 65537):
        values = np.full((frames, 2), value, dtype)
        total = np.zeros(2, "u8" if dtype[0] == "u" else "i8")
        sparse_sums.add_entries(entries_of(maker("csr_array", 1)(values)), total)
        np.testing.assert_array_equal(total, int(value) * frames)


def test_narrow_sums_of_negative_values():
    """The number of frames depends on the value that is farthest from zero."""
    total = np.zeros(2, "i8")
    values = np.full((300, 2), -100, "i1")
    sparse_sums.add_entries(entries_of(maker("csr_array", 1)(values)), total)
    np.testing.assert_array_equal(total, -30_000)


@pytest.mark.parametrize(
    ("frames", "largest", "dtypes"),
    [
        (1_000_000, 3, ["uint8", "uint16", "uint32"]),
        (1_000_000, 300, ["uint16", "uint32"]),
        (1_000_000, 60_000, ["uint32"]),
        (1_000, 3, ["uint8", "uint16"]),
        (70, 3, ["uint8"]),
        (10, 3, []),
    ],
)
def test_narrow_dtypes_are_those_that_are_not_full_at_once(frames, largest, dtypes):
    """Store one of 100 pixels in each frame; no dtype is wider than necessary."""
    starts = np.arange(frames + 1)
    entries = Entries(starts, np.zeros(frames, "u4"), np.full(frames, largest, "u4"))
    assert [np.dtype(dtype).name for dtype, _ in sparse_sums._steps(entries, 100)] == dtypes
