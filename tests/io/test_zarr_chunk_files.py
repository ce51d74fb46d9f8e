"""Chunks of a zarr store that are written, or vanish, after it was opened."""

import shutil
import time
from dataclasses import replace

import numpy as np
import pytest

from udfdask.errors import FileFormatError
from udfdask.io import open_file, zarr_chunk_files
from udfdask.io.zarr_chunk_files import ChunkFiles
from zarr_writing import FORMATS, needs_zarr_3, write_group

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")

SCAN = np.random.default_rng(1).integers(1, 99, (4, 6, 5, 5)).astype("u2")
SYNC = {"scheduler": "synchronous"}


@pytest.fixture(params=FORMATS)
def store(request, tmp_path):
    """A group with an array in chunks of two rows and three columns."""
    path = tmp_path / "scan.zarr"
    write_group(path, {"data/scan": (SCAN, (2, 3, 5, 5))}, request.param)
    return path


def chunk(store, place):
    """The file of a stored chunk."""
    parts = map(str, place)
    nested = store.joinpath("data", "scan", "c", *parts)
    return nested if nested.exists() else store / "data" / "scan" / ".".join(map(str, place))


def opened(store):
    """The array in stored chunks; what is written from now on is newer by the clock of files."""
    array = open_file(store, chunks=(2, 3, 5, 5)).array
    now = time.time_ns()
    marker = store.with_name("marker")
    marker.touch()
    while marker.stat().st_mtime_ns <= now:  # some ms: the clock of files is behind
        marker.touch()
    return array


def test_a_chunk_that_is_written(store):
    array = opened(store)
    np.testing.assert_array_equal(array.compute(**SYNC), SCAN)
    path = chunk(store, (1, 0, 0, 0))
    zarr.open_array(str(store / "data/scan"), mode="r+")[2:, :3] = 7
    np.testing.assert_array_equal(array.blocks[0, 1].compute(**SYNC), SCAN[:2, 3:])
    with pytest.raises(FileFormatError, match=rf"{path} was written after the array was opened"):
        array.compute(**SYNC)


def test_a_written_chunk_gives_another_name(store):
    before = open_file(store).array
    assert open_file(store).array.name == before.name
    zarr.open_array(str(store / "data/scan"), mode="r+")[2:, :3] = 0
    assert open_file(store).array.name != before.name
    assert open_file(store).array[2:, :3].sum().compute(**SYNC) == 0


@pytest.mark.parametrize("levels", [0, 1, 2, 3, 4])
def test_a_chunk_that_is_gone(store, levels):
    """Without a word, zarr reads zeros."""
    array = opened(store)
    path = chunk(store, (1, 1, 0, 0))
    if levels and path.name != "0":
        pytest.skip("in this format chunks have no folders of their own")
    gone = [path, *path.parents][levels]
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    with pytest.raises(
        FileFormatError, match=rf"there is no chunk {store}.*, and {gone.parent} has"
    ):
        array.compute(**SYNC)


def test_a_chunk_that_zarr_deletes_because_all_of_it_is_zero_now(store):
    array = opened(store)
    zarr.open_array(str(store / "data/scan"), mode="r+")[2:, :3] = 0
    with pytest.raises(FileFormatError, match=r"there is no chunk .*1.0.0.0, and"):
        array.compute(**SYNC)


def test_a_store_that_is_gone(store):
    array = opened(store)
    shutil.rmtree(store)
    with pytest.raises(FileFormatError, match=rf"{store}.* it cannot be opened \(No such file"):
        array.compute(**SYNC)


def test_chunks_that_never_were_are_fill_values(store):
    path = chunk(store, (0, 1, 0, 0))
    path.unlink()
    array = opened(store)
    expected = SCAN.copy()
    expected[:2, 3:] = 0
    np.testing.assert_array_equal(array.compute(**SYNC), expected)


def test_permissions_and_old_chunks_put_back_are_no_change(store):
    array = opened(store)
    path = chunk(store, (0, 0, 0, 0))
    path.chmod(0o444)
    np.testing.assert_array_equal(array.compute(**SYNC), SCAN)


def test_a_damaged_chunk(store):
    path = chunk(store, (0, 0, 0, 0))
    path.write_bytes(b"damaged" * 10)
    array = opened(store)
    with pytest.raises(
        FileFormatError, match=rf"{path} (has .* and states|cannot be read as a chunk)"
    ):
        array.compute(**SYNC)


@needs_zarr_3
def test_shards(tmp_path):
    options = {"chunks": (1, 1, 5, 5), "shards": (2, 3, 5, 5)}
    written = zarr.create_array(str(tmp_path / "a.zarr"), data=SCAN, **options)
    array = opened(tmp_path / "a.zarr")
    written[3, 0] = 0
    with pytest.raises(FileFormatError, match="c/1/0/0/0 was written after the array was opened"):
        array.compute(**SYNC)
    np.testing.assert_array_equal(array.blocks[0].compute(**SYNC), SCAN[:2])


def test_stores_with_too_many_chunks_to_list_have_names_of_their_own(store, monkeypatch):
    monkeypatch.setattr(zarr_chunk_files, "MOST_LISTED", 3)
    first, second = open_file(store).array, open_file(store).array
    assert first.name != second.name
    np.testing.assert_array_equal(first.compute(**SYNC), SCAN)


def test_a_file_server_with_a_fast_clock(store):
    """What was written last before the opening is not taken for a change."""
    found = zarr.open_array(str(store / "data/scan"), mode="r")
    state = ChunkFiles.of(found, store / "data/scan")
    keys = list(zarr_chunk_files.touched_chunks(found, (slice(0, 4), slice(0, 6), 0, slice(0, 5))))
    assert len(keys) == 4
    state.check(store / "data/scan", iter(keys))
    behind = replace(state, opened_ns=state.opened_ns - 10**13)
    with pytest.raises(FileFormatError, match="was written after the array was opened"):
        behind.check(store / "data/scan", iter(keys))
    newest = max((store / "data/scan" / key).stat().st_mtime_ns for key in keys)
    assert state.opened_ns >= newest


def test_chunks_that_never_were_on_a_file_server_with_a_fast_clock(store, monkeypatch):
    chunk(store, (0, 1, 0, 0)).unlink()
    monkeypatch.setattr(zarr_chunk_files, "_clock_ns", lambda: 10**9)
    array = open_file(store).array
    assert not array[:2, 3:].any().compute(**SYNC)
    np.testing.assert_array_equal(array[2:].compute(**SYNC), SCAN[2:])


def test_what_a_process_keeps_open_is_never_that_of_another_store(store, tmp_path, monkeypatch):
    """The metadata changes just when it is opened, and is put back after that."""
    array = opened(store)
    folder = store / "data" / "scan"
    true_open = zarr.open_array

    def swapped(*args, **kwargs):
        folder.rename(tmp_path / "before")
        write_group(tmp_path / "b.zarr", {"scan": (SCAN[::-1] * 2, (2, 3, 5, 5))}, 2)
        shutil.copytree(tmp_path / "b.zarr" / "scan", folder)
        shutil.copy(tmp_path / "before" / metadata.name, folder / metadata.name)
        return true_open(*args, **kwargs)

    (metadata,) = (f for f in folder.iterdir() if f.name in ("zarr.json", ".zarray"))
    monkeypatch.setattr(zarr, "open_array", swapped)
    with pytest.raises(FileFormatError, match="has changed since it was opened"):
        array.compute(**SYNC)
    monkeypatch.undo()
    shutil.rmtree(folder)
    (tmp_path / "before").rename(folder)
    np.testing.assert_array_equal(array.compute(**SYNC), SCAN)
