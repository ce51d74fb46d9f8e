"""A folder of records: those that were not used for the longest time go first."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from udfdask.errors import ArgumentValueError
from udfdask.records import folder as module
from udfdask.records.folder import (
    MARK,
    SUFFIX,
    check_folder,
    open_folder,
    remove_folder,
    remove_unused,
)
from udfdask.records.record_file import Record

KIB = 1 << 10
LIMIT = 40 * KIB


def record(name, nbytes=3 * KIB):
    return Record(name, {"sum": np.zeros(nbytes, dtype="u1")}, {})


def names(folder):
    return {p.name.removesuffix(SUFFIX) for p in Path(folder.path).glob(f"*{SUFFIX}")}


@pytest.fixture
def folder(tmp_path):
    return open_folder(tmp_path / "cache", LIMIT)


@pytest.fixture
def full(folder):
    """Twelve records of 4 KiB each on the disk; the first is the oldest."""
    for k in range(12):
        module.write_record(record(str(k)), f"{folder.path}/{k}{SUFFIX}")
        os.utime(f"{folder.path}/{k}{SUFFIX}", (1000 + k, 1000 + k))
    return folder


def test_the_oldest_records_are_removed_down_to_90_percent(full):
    for _ in range(2):
        assert remove_unused(full.path, LIMIT) == 36 * KIB
        assert names(full) == set(map(str, range(3, 12)))


def test_use_makes_a_record_young(full):
    assert full.use("1")
    assert not full.use("missing")
    remove_unused(full.path, LIMIT)
    assert names(full) == {"1", *map(str, range(4, 12))}


def test_a_full_folder_is_limited(folder, monkeypatch):
    monkeypatch.setattr(module, "_limits", module._Limits())
    for k in range(100):
        folder.put(record(str(k)))
    assert 5 <= len(names(folder)) <= 11
    folder.put(record("large", 41 * KIB))
    assert "large" not in names(folder)


def test_unfinished_files_are_removed_when_they_are_old(folder):
    for name, age in ((".a-1", 10**9), (".b-2", None)):
        file = Path(folder.path, name)
        file.touch()
        if age:
            os.utime(file, (age, age))
    remove_unused(folder.path, LIMIT)
    assert [p.name for p in Path(folder.path).iterdir()] == [".b-2"]


def test_other_processes_may_remove_files_meanwhile(full, monkeypatch):
    def gone(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", gone)
    remove_unused(full.path, LIMIT)
    remove_unused(f"{full.path}-removed", LIMIT)


def test_a_merge_replaces_its_sources(tmp_path):
    folder = open_folder(tmp_path / "resumed", None)
    for name in ("a", "b"):
        folder.put(record(name))
    folder.put(record("a+b"), ["a", "b", "never written"])
    assert names(folder) == {"a+b"}
    assert not folder.is_empty()


def test_another_processor_stores_nothing(folder, monkeypatch):
    """On a cluster, the client makes the names."""
    monkeypatch.setattr(module, "processor", lambda: "another one")
    pickle.loads(pickle.dumps(folder)).put(record("a"))
    assert folder.is_empty()


def test_a_folder_that_was_removed_or_made_in_part_is_a_folder(tmp_path):
    path = tmp_path / "cache"
    path.mkdir()
    for _ in range(2):
        assert check_folder(path) == path
        open_folder(path, LIMIT).put(record("a"))
        (path / "records").rename(tmp_path / "moved")  # killed while it was removed
        assert check_folder(path) == path
        (tmp_path / "moved").rename(path / "records")
        remove_folder(path)
        assert not path.exists()
        remove_folder(path)


def test_nothing_of_others_is_removed(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "mine").touch()
    with pytest.raises(ArgumentValueError, match="with other files"):
        open_folder(folder, LIMIT)
    remove_folder(folder)
    assert (folder / "mine").exists()
    (folder / MARK).touch()
    remove_folder(folder)
    assert [p.name for p in folder.iterdir()] == ["mine"]
