"""What may be written where; and the old or the new is there, complete, whatever happens."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.writing.replacing import part_path, replacing
from udfdask.writing.stores import store_root
from udfdask.writing.targets import check_apart, check_target

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
TARGETS = pytest.mark.parametrize("name", ["a.npz", "a.zarr"])
STORES = pytest.mark.parametrize("is_store", [False, True])
GROUP = '{"zarr_format": 3, "node_type": "group"}'


def write(target, word, *, overwrite=True):
    """Write a file or a store, all parts of which say the same word."""
    is_store = target.suffix == ".zarr"
    with replacing(check_target(target, is_store=is_store, overwrite=overwrite)) as new:
        if not is_store:
            new.write_text(word * 20_000)
            return
        for number in range(2):
            part = new / str(number)
            part.mkdir(parents=True)
            (part / "zarr.json").write_text(GROUP)
            (part / "word").write_text(word)
        (new / "zarr.json").write_text(GROUP)


def read(target):
    """The words in a file or store, in order: one, if it is complete; none, if it is not there."""
    try:
        if target.is_file():
            content = target.read_text()
            length = len(content) // 20_000
            parts = {content[k : k + length] for k in range(0, len(content), max(1, length))}
            return sorted(parts)
        return sorted({(target / str(k) / "word").read_text() for k in range(2)})
    except FileNotFoundError:
        return ["missing"] if target.exists() else []


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
    target = checked(tmp_path / name)
    with pytest.raises(FileExistsError):
        replace(target, "mine", lambda: write(tmp_path / name, "theirs"))
    assert read(tmp_path / name) == ["theirs"]
    (kept,) = (path for path in tmp_path.iterdir() if path.name != name)
    assert kept.suffix == Path(name).suffix
    assert kept.read_text() == "mine"


def test_what_a_dead_run_left_is_removed_after_a_day(tmp_path):
    old, young, other = (part_path(tmp_path / name) for name in ("a.npy", "a.npy", "b.npy"))
    for path in (old, young, other):
        path.mkdir()
    for path in (old, other):
        os.utime(path, (0, time.time() - 25 * 3600))
    part_path(tmp_path / "a.npy")
    assert sorted(tmp_path.iterdir()) == sorted([young, other])


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


# Names for a source that is a zarr array in a group, `scan.zarr/inner/x`, seen from its folder.
INSIDE = [
    "scan.zarr",
    "scan.zarr/",
    "./sub/../scan.zarr",
    "scan.zarr/inner",
    "scan.zarr/inner/x",
    "scan.zarr/result.zarr",
    "scan.zarr/inner/x/result.zarr",
    "link",
    "link/inner",
    "to_parent/scan.zarr",
    "to_parent/scan.zarr/new.zarr",
]


@pytest.mark.parametrize("name", INSIDE)
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
