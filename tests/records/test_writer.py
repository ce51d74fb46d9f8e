"""The writer: nothing is lost at a normal end, and what a merge replaces is not written."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from making import LATE, wait_until
from udfdask.records import writer as writing
from udfdask.records.folder import RecordFolder
from udfdask.records.record_file import Record
from udfdask.records.writer import Writer


def record(name, values=3):
    return Record(name, {"sum": np.arange(float(values))}, {})


@pytest.fixture
def folder(tmp_path):
    return RecordFolder(str(tmp_path))


def test_flush_waits_for_all_records(folder):
    writer = Writer(delay=3600)
    for k in range(20):
        writer.put(folder, [record(str(k))])
    assert folder.names() == set()
    writer.flush(folder)
    assert folder.names() == {str(k) for k in range(20)}
    writer.flush(folder)
    assert "udfdask-records" not in {thread.name for thread in threading.enumerate()}


def test_records_are_written_when_they_are_due(folder):
    writer = Writer(delay=0.05)
    writer.put(folder, [record("a")])
    wait_until(folder.names)
    assert folder.names() == {"a"}
    writer.flush(folder)


def test_what_a_merge_replaces_is_never_written_or_removed(folder, monkeypatch):
    written = []
    put = RecordFolder.put

    def noted(self, records, *, flush):
        records = list(records)
        written.extend(each.name for each in records)
        put(self, records, flush=flush)

    monkeypatch.setattr(RecordFolder, "put", noted)
    writer = Writer(delay=3600)
    writer.put(folder, [record("early")])
    writer.flush(folder)
    writer.put(folder, [record("a-rows"), record("a-sums")], ["early"])
    writer.put(folder, [record("b")], ["a-sums"])
    writer.put(folder, [record("c")], ["b"])
    writer.flush(folder)
    assert written == ["early", "a-rows", "c"]
    assert folder.names() == {"a-rows", "c"}


def test_a_merge_of_merges_does_not_wait_longer(folder, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(writing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    writer = Writer(delay=10)
    for k in range(10):
        now[0] = float(k)
        writer.put(folder, [record(str(k))], [str(k - 1)])
    assert folder.names() == set()
    now[0] = 10.0  # the first one is due
    wait_until(folder.names)
    writer.flush(folder)
    assert folder.names() == {"9"}


def test_tasks_wait_if_too_much_waits(folder):
    writer = Writer(delay=3600, most_bytes=1000)
    for k in range(10):
        writer.put(folder, [record(str(k), values=50)])
    assert len(folder.names()) >= 7
    writer.put(folder, [record("large", values=500)])
    writer.flush(folder)
    assert len(folder.names()) == 11


def test_an_error_of_the_disk_is_raised_by_the_next_call(tmp_path, monkeypatch):
    def full(self, records, *, flush):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordFolder, "put", full)
    writer = Writer(delay=3600)
    writer.put(RecordFolder(str(tmp_path)), [record("a")])
    with pytest.raises(OSError, match="No space left"):
        writer.flush(RecordFolder(str(tmp_path)))
    writer.flush(RecordFolder(str(tmp_path)))


def test_an_unexpected_error_of_the_thread_is_raised_and_nobody_waits_for_ever(
    tmp_path, monkeypatch
):
    def broken(self, records, *, flush):
        raise RuntimeError("unexpected")

    monkeypatch.setattr(RecordFolder, "put", broken)
    writer, folder = Writer(delay=3600), RecordFolder(str(tmp_path))
    writer.put(folder, [record("a")])
    with pytest.raises(RuntimeError, match="unexpected"):
        writer.flush(folder)
    monkeypatch.undo()
    writer.put(folder, [record("b")])
    writer.flush(folder)
    assert folder.names() == {"b"}


def test_only_what_replaces_others_is_flushed(folder, monkeypatch):
    flushed = {}
    put = RecordFolder.put

    def noted(self, records, *, flush):
        records = list(records)
        flushed.update(dict.fromkeys((each.name for each in records), flush))
        put(self, records, flush=flush)

    monkeypatch.setattr(RecordFolder, "put", noted)
    writer = Writer(delay=3600)
    writer.put(folder, [record("old")])
    writer.flush(folder)
    writer.put(folder, [record("rows of a chunk")])
    writer.put(folder, [record("rows"), record("sums")], ["old", "never written"])
    writer.put(folder, [record("first")], ["never written either"])
    writer.flush(folder)
    assert flushed == {
        "old": False,
        "rows of a chunk": False,
        "rows": True,
        "sums": True,
        "first": False,
    }
    assert folder.names() == {"rows of a chunk", "rows", "sums", "first"}


def test_a_folder_that_was_removed_is_no_error(tmp_path):
    writer = Writer(delay=3600)
    writer.put(RecordFolder(str(tmp_path / "gone")), [record("a")])
    writer.flush(RecordFolder(str(tmp_path / "gone")))


def test_a_process_that_ends_writes_what_waits(folder):
    program = f"""
import numpy as np
from udfdask.records.folder import RecordFolder
from udfdask.records.record_file import Record
from udfdask.records.writer import Writer
Writer(delay=3600).put({folder!r}, [Record("a", {{"sum": np.arange(3.0)}}, {{}})])
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=LATE)
    assert folder.get("a").arrays["sum"].tolist() == [0, 1, 2]


FORKING = """
import os, signal, sys, threading
import numpy as np
from udfdask.records.folder import RecordFolder
from udfdask.records.record_file import Record
from udfdask.records.writer import WRITER

put, begun, go_on = RecordFolder.put, threading.Event(), threading.Event()

def slow(self, records, *, flush):
    records = list(records)
    if records[0].name == "parent":
        begun.set()
        go_on.wait()
    put(self, records, flush=flush)

RecordFolder.put = slow
folder = RecordFolder(sys.argv[1])
WRITER.put(folder, [Record("parent", {"sum": np.arange(3.0)}, {})])
begun.wait()  # the thread of the parent is writing
WRITER.put(folder, [Record("waiting", {"sum": np.arange(3.0)}, {})])
child = os.fork()
if not child:
    signal.alarm(500)  # rather than wait for ever
    WRITER.put(folder, [Record("child", {"sum": np.arange(3.0)}, {})])
    WRITER.flush(folder)
    os._exit(0 if folder.names() == {"child"} else 1)
_, status = os.waitpid(child, 0)
go_on.set()
WRITER.flush(folder)
assert status == 0 and folder.names() == {"parent", "waiting", "child"}, (status, folder.names())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_starts_with_an_empty_writer(folder):
    # newer versions of Python warn of each fork while threads run
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, folder.path]
    subprocess.run(command, check=True, timeout=LATE)
