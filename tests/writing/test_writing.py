"""What may be written where; and the old or the new is there, complete, whatever happens."""

import os
import time

import numpy as np
import pytest

from udfdask.base.replacing import part_path, replacing
from udfdask.base.targets import check_apart, check_target, store_root
from udfdask.errors import ArgumentTypeError, ArgumentValueError

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
TARGETS = pytest.mark.parametrize("name", ["a.npz", "a.zarr"])
STORES = pytest.mark.parametrize("is_store", [False, True])


def make_store(path, zarr_format=3):
    """A group with an array in a group, chunked along two dimensions."""
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    group.attrs["title"] = "mine"
    inner = group.create_group("inner")
    array = inner.create_array("x", shape=(4, 6), chunks=(2, 3), dtype="f8")
    array[...] = np.arange(24.0).reshape(4, 6)
    group.create_array("none", shape=(), dtype="f4")[...] = 1
    return path


def tree(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def checked(path, **options):
    return check_target(path, is_store=path.suffix == ".zarr", **options)


def replace(target, word, happens):
    """Write a file in place of a target, while something happens."""
    with replacing(target) as part:
        part.write_text(word)
        happens()


@TARGETS
def test_what_appears_on_the_way_stays(tmp_path, name):
    place, theirs = tmp_path / name, tmp_path / "theirs"
    make_store(theirs) if name == "a.zarr" else theirs.write_text("theirs")
    before = theirs.read_text() if theirs.is_file() else tree(theirs)
    with pytest.raises(FileExistsError):
        replace(checked(place), "mine", lambda: theirs.rename(place))
    assert (place.read_text() if place.is_file() else tree(place)) == before
    (kept,) = (path for path in tmp_path.iterdir() if path != place)
    assert kept.suffix == place.suffix
    assert kept.read_text() == "mine"


def test_what_a_dead_run_left_is_removed_after_a_day(tmp_path):
    old, young, other = (part_path(tmp_path / name) for name in ("a.npy", "a.npy", "b.npy"))
    for path in (old, young, other):
        path.mkdir()
    for path in (old, other):
        os.utime(path, (0, time.time() - 25 * 3600))
    part_path(tmp_path / "a.npy")
    assert sorted(tmp_path.iterdir()) == sorted([young, other])


def test_a_run_that_takes_longer_than_a_day_keeps_its_store(tmp_path):
    part = part_path(tmp_path / "a.zarr")
    (part / "result" / "c").mkdir(parents=True)
    (part / "result" / "c" / "0").write_bytes(b"chunk")
    for path in (part, part / "result", part / "result" / "c"):
        os.utime(path, (0, time.time() - 25 * 3600))
    part_path(tmp_path / "a.zarr")
    assert part.exists()


def folders(tmp_path):
    for name in ("notes", "link", "folder"):
        make_store(tmp_path / f"{name}.zarr")
    (tmp_path / "notes.zarr" / "notes.txt").write_text("mine")
    (tmp_path / "link.zarr" / "link").symlink_to("inner")
    (tmp_path / "folder.zarr" / "scan").mkdir()
    (tmp_path / "plain").mkdir()
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray" / "zarr.json").write_text("{}")
    for zarr_format in (2, 3):
        recorded = str(tmp_path / f"frames{zarr_format}.zarr")
        zarr.create_array(recorded, shape=(4, 4), dtype="u2", zarr_format=zarr_format)[:] = 1
    return list(tmp_path.iterdir())


def test_folders_that_are_never_replaced(tmp_path):
    found = folders(tmp_path)
    before = tree(tmp_path)
    for folder in found:
        for is_store in (False, True):
            with pytest.raises(FileExistsError):
                check_target(folder, is_store=is_store, overwrite=True)
    assert tree(tmp_path) == before


# Names for the store of a source, seen from its folder; results/test_to_zarr has others.
@pytest.mark.parametrize(
    "name", ["./sub/../scan.zarr", "link/inner", "to_parent/scan.zarr/new.zarr"]
)
def test_never_a_source_what_contains_it_or_lies_in_it(tmp_path, monkeypatch, name):
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    store = make_store(folder / "scan.zarr")
    (folder / "link").symlink_to("scan.zarr")
    (folder / "to_parent").symlink_to(folder)
    monkeypatch.chdir(folder)
    for source in (store, store / "inner" / "x", store / "inner" / "x" / "zarr.json"):
        assert store_root(source) == store
        for given in (source, os.path.relpath(source), folder / "to_parent" / "scan.zarr"):
            with pytest.raises(ArgumentValueError):
                check_target(name, is_store=True, overwrite=True, sources=["nowhere", given])


@STORES
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", ArgumentValueError),
        (" ", ArgumentValueError),
        ("a\0b", ArgumentValueError),
        ("simplecache::s3://bucket/a", ArgumentValueError),
        ("file:///tmp/a", ArgumentValueError),
        (b"a", ArgumentTypeError),
        (None, ArgumentTypeError),
        ("nowhere/a", FileNotFoundError),
        ("file/a", NotADirectoryError),
        ("loop", FileExistsError),
        ("loop/a", FileNotFoundError),
        ("dangling/a", FileNotFoundError),
    ],
)
def test_paths_that_are_none(tmp_path, monkeypatch, path, error, is_store):
    monkeypatch.chdir(make_store(tmp_path / "a.zarr"))  # an empty name is not this store
    tmp_path = tmp_path / "a.zarr"
    (tmp_path / "file").write_text("1")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(error):
        check_target(path, is_store=is_store, overwrite=True, sources=[tmp_path / "read"])


def test_several_targets_are_apart(tmp_path):
    make_store(tmp_path / "a.zarr")
    (tmp_path / "link.zarr").symlink_to("a.zarr")

    def at(name):
        return checked(tmp_path / name, overwrite=True)

    check_apart([at("b.zarr"), at("c.zarr"), at("d.npz"), at("d.npy")])
    for pair in (
        ["b.zarr", "b.zarr"],
        ["a.zarr", "link.zarr"],
        ["a.zarr", "a.zarr/plot.png"],
        ["a.zarr/plot.png", "a.zarr"],
        ["b.zarr", "B.zarr"],
    ):
        with pytest.raises(ArgumentValueError):
            check_apart([at(name) for name in pair])
