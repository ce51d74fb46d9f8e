"""The limit of a cache: the records that were not used for the longest time go first."""

import os

import numpy as np
import pytest

from making import wait_until
from udfdask.errors import ArgumentValueError
from udfdask.records.cache import MARK, Limits, check_cache, open_cache, remove_unused
from udfdask.records.folder import StoredRecords
from udfdask.records.record_file import Record
from udfdask.records.writer import Writer

KIB = 1 << 10


def record(name, nbytes=3 * KIB):
    return Record(name, {"sum": np.zeros(nbytes, dtype="u1")}, {})


def aged(folder, *names):
    """Give records an age: the first is the oldest."""
    for k, name in enumerate(names):
        os.utime(folder.file_of(name), (1000 + k, 1000 + k))


@pytest.fixture
def folder(tmp_path):
    return open_cache(tmp_path / "cache", 40 * KIB)


def test_the_oldest_records_are_removed_down_to_90_percent(folder):
    names = [str(k) for k in range(12)]  # 4 KiB each on the disk
    folder.put([record(name) for name in names], flush=False)
    aged(folder, *names)
    assert remove_unused(folder) == 36 * KIB
    assert folder.names() == set(names[3:])
    assert remove_unused(folder) == 36 * KIB


def test_use_makes_a_record_young(folder):
    names = [str(k) for k in range(12)]
    folder.put([record(name) for name in names], flush=False)
    aged(folder, *names)
    stored = StoredRecords(folder)
    assert "1" in stored
    assert "missing" not in stored
    remove_unused(folder)
    assert folder.names() == {"1", *names[4:]}


def test_a_full_cache_is_limited_by_the_writer(folder):
    writer = Writer(delay=0.01)
    for k in range(100):
        writer.put(folder, [record(str(k))])
        if k % 10 == 0:
            writer.flush(folder)
    writer.flush(folder)
    wait_until(lambda: len(folder.names()) <= 10)
    assert folder.names()


def test_each_process_counts_what_it_writes(folder, monkeypatch):
    scans = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: scans.append(path) or scandir(path))
    limits = Limits()
    limits.count(folder, 1, 1)
    assert len(scans) == 1
    for _ in range(3):  # of the 40 KiB, 20 are left without a look
        limits.count(folder, 2 * KIB, 1)
    assert len(scans) == 1
    limits.count(folder, 2 * KIB, 1)
    assert len(scans) == 2


def test_a_record_larger_than_the_limit_is_not_kept(folder):
    folder.put([record("large", 50 * KIB), record("small")], flush=False)
    assert folder.names() == {"small"}


def test_unfinished_files_are_removed_when_they_are_old(folder):
    records = folder.file_of("a").parent
    for name in (".a.record-1", ".a.record-2"):
        (records / name).touch()
    os.utime(records / ".a.record-1", (1000, 1000))
    remove_unused(folder)
    assert [path.name for path in records.iterdir()] == [".a.record-2"]


def test_other_processes_may_remove_files_meanwhile(folder, monkeypatch):
    names = [str(k) for k in range(12)]
    folder.put([record(name) for name in names], flush=False)

    def gone(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", gone)
    assert remove_unused(folder) <= 36 * KIB


def test_a_folder_that_was_removed_is_no_error(tmp_path):
    folder = open_cache(tmp_path / "cache", 1)
    (tmp_path / "cache" / "records").rmdir()
    assert remove_unused(folder) == 0
    assert "a" not in StoredRecords(folder)


def test_an_interrupted_start_is_a_cache(tmp_path):
    (tmp_path / "cache").mkdir()
    check_cache(tmp_path / "cache")
    (tmp_path / "cache" / MARK).touch()
    open_cache(tmp_path / "cache", 1)
    open_cache(tmp_path / "cache", 1)
    (tmp_path / "other" / "records").mkdir(parents=True)
    with pytest.raises(ArgumentValueError, match="other files"):
        check_cache(tmp_path / "other")


def test_a_cache_that_is_being_removed_is_a_cache(tmp_path):
    folder = open_cache(tmp_path / "cache", 1)
    folder.file_of("a").touch()
    (tmp_path / "cache" / MARK).unlink()
    assert open_cache(tmp_path / "cache", 1) == folder
    assert (tmp_path / "cache" / MARK).exists()
    (tmp_path / "cache" / MARK).unlink()
    (tmp_path / "cache" / "records" / "sales.csv").touch()
    with pytest.raises(ArgumentValueError, match="other files"):
        open_cache(tmp_path / "cache", 1)
