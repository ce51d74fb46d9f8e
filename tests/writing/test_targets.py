"""What may be written where: the decision that all writers share."""

import os
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.writing import (
    HDF5,
    NPY,
    NPZ,
    PDF,
    PNG,
    SVG,
    TIFF,
    ZARR,
    check_apart,
    check_target,
)
from udfdask.writing.stores import foreign_entry, store_root

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")

BEGINS = {
    PNG: b"\x89PNG\r\n\x1a\n...",
    NPZ: b"PK\x03\x04...",
    NPY: b"\x93NUMPY...",
    PDF: b"%PDF-1.4...",
    SVG: b'<?xml version="1.0"?>\n<!-- mine -->\n<svg ...',
    HDF5: b"\x89HDF\r\n\x1a\n...",
    TIFF: b"II*\0...",
}
FILES = pytest.mark.parametrize("kind", BEGINS, ids=lambda kind: kind.words)


def make_store(path, zarr_format=3, values=None):
    """A group with an array in a group, chunked along two dimensions."""
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    group.attrs["title"] = "mine"
    inner = group.create_group("inner")
    data = np.arange(24.0).reshape(4, 6) if values is None else values
    array = inner.create_array("x", shape=data.shape, chunks=(2, 3), dtype=data.dtype)
    array[...] = data
    group.create_array("none", shape=(), dtype="f4")[...] = 1
    return path


def tree(folder):
    """Everything in a folder, by its path."""
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("begin", [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"])
def test_all_kinds_of_tiff_files(tmp_path, begin):
    (tmp_path / "a.tif").write_bytes(begin + b"...")
    check_target(tmp_path / "a.tif", TIFF, overwrite=True)


@FILES
def test_files_are_replaced_by_their_own_kind_alone(tmp_path, kind):
    path = tmp_path / "a"
    assert check_target(path, kind).path == path
    path.touch()
    check_target(path, kind, overwrite=True)  # nothing is lost
    for other, content in {**BEGINS, "text": b"notes", "short": b"\x89P"}.items():
        path.write_bytes(content)
        if other is kind:
            check_target(path, kind, overwrite=True)
            with pytest.raises(FileExistsError, match=r"already exists: choose.*--overwrite"):
                check_target(path, kind)
        else:
            for overwrite in (True, False):
                with pytest.raises(FileExistsError, match=r"not replaced.*remove it yourself"):
                    check_target(path, kind, overwrite=overwrite)
        assert path.read_bytes() == content
    with pytest.raises(FileExistsError, match="not a zarr store, so it is not replaced"):
        check_target(path, ZARR, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_stores_are_replaced(tmp_path, zarr_format):
    path = make_store(tmp_path / "a.zarr", zarr_format)
    assert foreign_entry(path) is None
    with warnings.catch_warnings(action="ignore"):  # format 3 does not name it
        zarr.consolidate_metadata(str(path))
    check_target(path, ZARR, overwrite=True)
    with pytest.raises(FileExistsError, match="already exists"):
        check_target(path, ZARR)
    for kind in BEGINS:
        with pytest.raises(FileExistsError, match="is a folder"):
            check_target(path, kind, overwrite=True)


LAYOUTS = {
    "v2 with dots": {"zarr_format": 2},
    "v2 with slashes": {
        "zarr_format": 2,
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
    "v3": {},
    "v3 with dots": {"chunk_key_encoding": {"name": "default", "separator": "."}},
    "v3 as v2": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    "shards": {"shards": (4, 4)},
}


@pytest.mark.parametrize("options", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("shape", [(), (5,), (4, 8)], ids=str)
def test_every_layout_of_chunks_is_known(tmp_path, options, shape):
    values = np.ones(shape)
    cut = dict(options)
    if len(shape) != 2:
        cut.pop("shards", None)
    path = tmp_path / "a.zarr"
    chunks = {"chunks": tuple(min(n, 2) for n in shape)} if shape else {}
    array = zarr.create_array(str(path), shape=shape, dtype="f8", **chunks, **cut)
    array[...] = values
    assert foreign_entry(path) is None
    # what zarr leaves when it is killed while it writes a chunk
    (path / f"0.{'a' * 32}.partial").touch()
    assert foreign_entry(path) is None


FOREIGN = [
    "notes.txt",
    "inner/notes.txt",
    "inner/x/notes.txt",
    "inner/x/c/notes.txt",
    "inner/x/c/0/notes.txt",
    "inner/x/c/0/0.txt",
    "inner/x/c/1/2/3",
    "inner/x/2024",
    "data/scan.npy",
    "empty/",
    "inner/x/c/plots/",
    "scan.npy",
]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_store_with_anything_else_in_it_is_never_replaced(tmp_path, name):
    path = make_store(tmp_path / "a.zarr")
    extra = path / name
    if name.endswith("/"):
        extra.mkdir(parents=True)
    else:
        extra.parent.mkdir(parents=True, exist_ok=True)
        extra.write_text("mine")
    before = tree(path)
    with pytest.raises(FileExistsError, match=r"also contains .*, which is not part of it"):
        check_target(path, ZARR, overwrite=True)
    assert tree(path) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"zarr_format": 1}', b"\xff", b"7"])
@pytest.mark.parametrize("name", ["zarr.json", ".zgroup", ".zarray"])
def test_a_stray_metadata_file_makes_no_store(tmp_path, content, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_bytes(content)
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="not a zarr store, so it is not replaced"):
        check_target(tmp_path / "mine", ZARR, overwrite=True)


def test_links_in_a_store_are_foreign(tmp_path):
    path = make_store(tmp_path / "a.zarr")
    (tmp_path / "data").mkdir()
    (path / "inner" / "x" / "c" / "5").symlink_to(tmp_path / "data")
    with pytest.raises(FileExistsError, match=r"also contains inner/x/c/5"):
        check_target(path, ZARR, overwrite=True)


def test_special_files_are_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        for name in (tmp_path / "pipe", tmp_path / "socket", "/dev/null"):
            for kind in (*BEGINS, ZARR):
                with pytest.raises(FileExistsError, match="neither a file nor a folder"):
                    check_target(name, kind, overwrite=True)


@pytest.mark.parametrize("kind", [NPZ, ZARR], ids=lambda kind: kind.words)
def test_folders_that_are_never_replaced(tmp_path, monkeypatch, kind):
    make_store(tmp_path / "a.zarr")
    (tmp_path / "a.zarr" / "inner" / "deep").mkdir()
    (tmp_path / "a.zarr" / "inner" / "deep" / "zarr.json").write_text(
        '{"zarr_format": 3, "node_type": "group"}'
    )
    monkeypatch.chdir(tmp_path / "a.zarr" / "inner")
    for name in ("/", ".", "..", "../../a.zarr", tmp_path / "a.zarr"):
        with pytest.raises(FileExistsError, match=r"is a folder|current folder, contains it"):
            check_target(name, kind, overwrite=True)
    if kind is ZARR:
        check_target("deep", kind, overwrite=True)


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
    before = tree(store)
    for source in (store, store / "inner" / "x", store / "inner" / "x" / "zarr.json"):
        assert store_root(source) == store
        for given in (source, os.path.relpath(source), folder / "to_parent" / "scan.zarr"):
            with pytest.raises(ArgumentValueError, match="the source of the data"):
                check_target(name, ZARR, overwrite=True, sources=["nowhere", given])
    assert tree(store) == before


def test_a_store_that_contains_a_source_that_is_no_part_of_it(tmp_path):
    store = make_store(tmp_path / "a.zarr")
    np.save(store / "scan.npy", np.ones(3))
    with pytest.raises(ArgumentValueError, match="contains the source of the data"):
        check_target(store, ZARR, overwrite=True, sources=[store / "scan.npy"])


@pytest.mark.parametrize("link", [os.link, os.symlink, None])
def test_never_a_file_that_is_read(tmp_path, link):
    source, other = tmp_path / "scan.npy", tmp_path / "other.npy"
    np.save(source, np.ones(3))
    if link is not None:
        link(source, other)
    for given in (source, other if link is not None else source):
        for target in (source, other if link is not None else source):
            with pytest.raises(ArgumentValueError, match="is the source of the data"):
                check_target(target, NPY, overwrite=True, sources=[given])
    # a neighbor is none of its business
    check_target(tmp_path / "new.npy", NPY, sources=[source])


@pytest.mark.parametrize(
    ("path", "error", "match"),
    [
        ("", ArgumentValueError, "not a possible name"),
        (" ", ArgumentValueError, "not a possible name"),
        ("a\0b", ArgumentValueError, "not a possible name"),
        ("memory://a", ArgumentValueError, "is not a local path"),
        ("s3://bucket/a", ArgumentValueError, "is not a local path"),
        ("simplecache::s3://bucket/a", ArgumentValueError, "is not a local path"),
        ("file:///tmp/a", ArgumentValueError, "is not a local path"),
        ("~nobody_of_this_name/a", ArgumentValueError, "is not a path"),
        (b"a", ArgumentTypeError, "must be a string or path"),
        (3, ArgumentTypeError, "must be a string or path"),
        (None, ArgumentTypeError, "must be a string or path"),
        ("nowhere/a", FileNotFoundError, "create it first"),
        ("file/a", NotADirectoryError, "is not a folder"),
        ("x" * 256, OSError, "cannot be written here: File name too long"),
        ("loop", FileExistsError, "neither a file nor a folder"),
        ("loop/a", FileNotFoundError, "create it first"),
        ("dangling/a", FileNotFoundError, "create it first"),
    ],
)
@pytest.mark.parametrize("kind", [PNG, ZARR], ids=lambda kind: kind.words)
def test_paths_that_are_none(tmp_path, monkeypatch, path, error, match, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("1")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "read").write_text("2")
    for sources in [(), (tmp_path / "read",)]:
        with pytest.raises(error, match=match):
            check_target(path, kind, overwrite=True, sources=sources)


def test_objects_that_are_stores_but_no_paths(tmp_path):
    for store in (zarr.storage.MemoryStore(), zarr.storage.LocalStore(tmp_path / "a.zarr")):
        with pytest.raises(
            ArgumentTypeError, match=r"must be a string or path.*to_xarray\(\)\.to_zarr"
        ):
            check_target(store, ZARR)
    with pytest.raises(ArgumentValueError, match=r"has the name of a \.zip file"):
        check_target(tmp_path / "a.zarr.ZIP", ZARR)


def test_links_are_followed(tmp_path, monkeypatch):
    (tmp_path / "far").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "far"))
    (tmp_path / "a.png").symlink_to("far/b.png")
    found = check_target(tmp_path / "a.png", PNG)
    assert (found.named.name, found.path) == ("a.png", tmp_path / "far" / "b.png")
    assert check_target("~/c.png", PNG).path == tmp_path / "far" / "c.png"
    (tmp_path / "far" / "b.png").write_bytes(b"notes")
    with pytest.raises(FileExistsError, match=r"a\.png already exists and is not a PNG"):
        check_target(tmp_path / "a.png", PNG, overwrite=True)


@pytest.mark.parametrize(
    "name", ["x" * 255, "ä" * 127, "\udcff\udcfe", "new\nline", "-", "a.png ", "日本"], ids=ascii
)
def test_odd_names(tmp_path, name):
    assert check_target(tmp_path / name, PNG).path.name == name
    assert not list(tmp_path.iterdir())


def test_write_protection_holds_for_root_as_well(tmp_path):
    (tmp_path / "a.png").write_bytes(BEGINS[PNG])
    (tmp_path / "a.png").chmod(0o444)
    with pytest.raises(PermissionError, match="is write-protected, so it is not replaced"):
        check_target(tmp_path / "a.png", PNG, overwrite=True)


UNPRIVILEGED = """
import os, sys
from udfdask.writing import PNG, check_target
os.setuid(65534)
try:
    check_target(sys.argv[1], PNG)
except PermissionError as error:
    print(error)
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root can be another")
@pytest.mark.parametrize("mode", [0o755, 0o700, 0o311])
def test_a_folder_without_permission(mode):
    # another user does not find the folders of pytest
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(mode)
        command = [sys.executable, "-c", UNPRIVILEGED, f"{name}/a.png"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "a PNG file cannot be written here: Permission denied" in done.stdout
        assert not list(Path(name).iterdir())


@FILES
def test_a_read_only_disk(small_disk, kind):
    disk = small_disk("size=1m,ro")
    for asked in (kind, ZARR):
        with pytest.raises(OSError, match=r"cannot be written here: Read-only file system"):
            check_target(disk / "a", asked)


def test_a_disk_is_no_store(small_disk):
    disk = small_disk("size=1m")
    (disk / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(FileExistsError, match="is a disk of its own"):
        check_target(disk, ZARR, overwrite=True)


def test_several_targets_are_apart(tmp_path):
    make_store(tmp_path / "a.zarr")
    (tmp_path / "link").symlink_to("a.zarr")
    (tmp_path / "x.npz").write_bytes(BEGINS[NPZ])
    os.link(tmp_path / "x.npz", tmp_path / "y.npz")

    def at(name, kind=ZARR):
        return check_target(tmp_path / name, kind, overwrite=True)

    check_apart([at("b.zarr"), at("c.zarr"), at("d.npz", NPZ), at("d.npy", NPZ)])
    for pair in (
        [at("b.zarr"), at("b.zarr")],
        [at("a.zarr"), at("link")],
        [at("a.zarr"), at("a.zarr/plot.png", PNG)],
        [at("a.zarr/plot.png", PNG), at("a.zarr")],
        [at("b.zarr"), at("B.zarr")],
        [at("x.npz", NPZ), at("y.npz", NPZ)],
    ):
        with pytest.raises(ArgumentValueError, match="cannot both be written"):
            check_apart(pair)
