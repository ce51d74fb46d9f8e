"""Replacing files and stores: the old or the new is there, complete, whatever happens."""

import json
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
import writers
from making import LATE
from udfdask.io import Variable, write_npz
from udfdask.udfs import RecordUDF
from udfdask.writing import NPZ, ZARR, check_target, replacing
from udfdask.writing.hidden import clean_up, hidden_folder, hidden_prefix
from writers import read, write

unix = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL, and no fork")
TARGETS = pytest.mark.parametrize("name", ["a.npz", "a.zarr"])


def start(*args):
    command = [sys.executable, writers.__file__, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result_of(*args):
    with start(*args) as process:
        output, _ = process.communicate(timeout=LATE)
        assert process.returncode == 0
        return json.loads(output.splitlines()[-1])


def write_and(checked, word, happens):
    """Write a file or store, while something else happens."""
    with replacing(checked) as new:
        there = checked.path.with_name(f"elsewhere{checked.path.suffix}")
        write(there, word)
        there.rename(new)
        happens()


@pytest.mark.full
@unix
@TARGETS
@pytest.mark.parametrize("first", ["first", ""], ids=["replaced", "new"])
def test_killed_at_every_step(tmp_path, name, first):
    old, new = ["old"] if first else [], ["new"]
    found = result_of("kill", tmp_path / name, first)
    assert len(found) > 20
    for there, _, then, left in found:
        if (name, first) == ("a.zarr", "first"):
            assert there in (old, new, [])  # the documented gap, which the next writer closes
        else:
            assert there in (old, new)
        assert then in (old, new)
        assert left == []
    assert any(left for _, left, _, _ in found)
    assert found[0][0] == old
    assert found[-1][0] == new


@pytest.mark.full
@unix
@TARGETS
def test_two_writers_at_once(tmp_path, name):
    target = tmp_path / name
    with (
        start("write", target, "one", 15) as first,
        start("write", target, "two", 15) as second,
    ):
        assert first.wait(LATE) == second.wait(LATE) == 0
    assert read(target) in (["one"], ["two"])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@TARGETS
def test_what_appears_on_the_way_stays_and_no_result_is_lost(tmp_path, name):
    target = tmp_path / name
    checked = check_target(target, NPZ if name == "a.npz" else ZARR)
    with pytest.raises(FileExistsError, match="already exists") as error:
        write_and(checked, "mine", lambda: write(target, "theirs"))
    assert read(target) == ["theirs"]
    (kept,) = (path for path in tmp_path.iterdir() if path != target)
    assert read(kept) == ["mine"]
    assert error.value.results_saved == kept


@TARGETS
def test_what_appears_after_the_last_check_stays(tmp_path, monkeypatch, name):
    target = tmp_path / name
    checked = check_target(target, NPZ if name == "a.npz" else ZARR)
    check = type(checked).check

    def check_and_lose(one):
        check(one)
        monkeypatch.undo()
        write(target, "theirs")

    def happens():
        monkeypatch.setattr(type(checked), "check", check_and_lose)

    with pytest.raises(FileExistsError) as error:
        write_and(checked, "mine", happens)
    assert read(target) == ["theirs"]
    assert read(error.value.results_saved) == ["mine"]


def test_a_note_that_was_put_into_a_store_meanwhile_stays(tmp_path):
    target = tmp_path / "a.zarr"
    write(target, "old")
    checked = check_target(target, ZARR, overwrite=True)
    with pytest.raises(FileExistsError, match=r"also contains notes\.txt"):
        write_and(checked, "new", lambda: (target / "notes.txt").write_text("mine"))
    assert (target / "notes.txt").read_text() == "mine"
    assert read(target) == ["old"]
    assert len(list(tmp_path.iterdir())) == 2  # the new one has another name


@TARGETS
def test_a_failure_leaves_what_was_there(tmp_path, name):
    target = tmp_path / name
    write(target, "old")
    checked = check_target(target, NPZ if name == "a.npz" else ZARR, overwrite=True)
    with pytest.raises(ZeroDivisionError):
        write_and(checked, "half", lambda: 1 / 0)
    assert read(target) == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_stopped_between_two_renames(tmp_path, monkeypatch, error):
    """Ctrl-C, or a disk that fails: neither the old nor the new store is removed."""
    target = tmp_path / "a.zarr"
    write(target, "old")
    replace = Path.replace

    def fail(path, target):
        monkeypatch.setattr(Path, "replace", replace)
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(error)):
        write(target, "new")
    assert read(target) == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_a_result_that_cannot_take_its_place_is_kept(tmp_path, monkeypatch):
    target = tmp_path / "a.npz"
    write(target, "old")
    checked = check_target(target, NPZ, overwrite=True)

    def refuse(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    with pytest.raises(PermissionError) as error:
        # as in a folder where only owners replace
        write_and(checked, "new", lambda: monkeypatch.setattr("os.replace", refuse))
    assert read(target) == ["old"]
    (kept,) = (path for path in tmp_path.iterdir() if path != target)
    assert read(kept) == ["new"]
    assert error.value.results_saved == kept


@TARGETS
def test_the_folder_of_a_living_writer_stays(tmp_path, name):
    target = tmp_path / name
    checked = check_target(target, NPZ if name == "a.npz" else ZARR)
    write_and(checked, "word", lambda: check_target(target, checked.kind))
    assert read(target) == ["word"]


@TARGETS
def test_permissions_are_kept(tmp_path, name):
    target = tmp_path / name
    write(target, "old")
    target.chmod(0o750)
    write(target, "new")
    assert target.stat().st_mode & 0o777 == 0o750


def test_a_link_stays_and_leads_to_the_new_file(tmp_path):
    (tmp_path / "far").mkdir()
    write(tmp_path / "far" / "a.npz", "old")
    (tmp_path / "a.npz").symlink_to("far/a.npz")
    write(tmp_path / "a.npz", "new")
    assert (tmp_path / "a.npz").is_symlink()
    assert read(tmp_path / "far" / "a.npz") == ["new"]


def test_a_full_disk(tmp_path, small_disk):
    disk = small_disk("size=1m")
    images = {"sum": {"image": Variable(dims=("x",), values=np.arange(40_000.0))}}
    large = {"sum": {"image": Variable(dims=("x",), values=np.arange(400_000.0))}}
    path = write_npz(disk / "a.npz", images)
    before = path.read_bytes()
    with pytest.raises(OSError, match="No space left on device"):
        write_npz(path, large, overwrite=True)
    assert path.read_bytes() == before
    with pytest.raises(OSError, match="No space left on device"):
        write_npz(disk / "b.npz", large)
    assert [p.name for p in Path(disk).iterdir()] == ["a.npz"]


def test_a_full_disk_is_named_with_what_was_written(small_disk):
    disk = small_disk("size=64k")
    target = check_target(disk / "a.npz", NPZ)
    full = pytest.raises(OSError, match=r"No space left on device, while an \.npz file was")
    with full as caught, replacing(target) as new:
        new.write_bytes(bytes(100_000))
    assert caught.value.filename == str(disk / "a.npz")
    assert not list(disk.iterdir())


def test_a_full_disk_is_named_with_the_hidden_file_on_it(small_disk):
    disk = small_disk("size=64k")
    frames = da.ones((64, 4, 8, 8), chunks=(8, 4, 8, 8))
    result = ud.run_udf(frames, RecordUDF(disk / "a.npy"))
    text = r"No space left on device, while frames .* you can remove"
    with pytest.raises(OSError, match=text) as found:
        result.compute(scheduler="synchronous")
    assert [found.value.filename] == [str(path) for path in disk.iterdir()]


def test_what_a_late_task_wrote_is_removed(tmp_path):
    """A thread of a run that failed may write once more after its folder has been removed."""
    path = tmp_path / "out"
    late = tmp_path / f"{hidden_prefix(path)}0123abcd"
    (late / "new" / "c").mkdir(parents=True)
    (late / "new" / "c" / "0").write_bytes(b"late")
    with hidden_folder(path) as alive:
        (alive / "new").write_bytes(b"alive")
        clean_up(path)
        assert not late.exists()
        assert (alive / "new").read_bytes() == b"alive"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_lock_may_belong_to_a_writer(tmp_path, monkeypatch):
    """If another writer takes it for a leftover at this moment, the first one makes another."""
    path = tmp_path / "out"
    made = []
    mkdir = Path.mkdir

    def mkdir_slowly(folder, *args, **kwargs):
        mkdir(folder, *args, **kwargs)
        made.append(folder)
        if len(made) == 1:
            clean_up(path)  # as another process would between these two steps
            assert not folder.exists()

    monkeypatch.setattr(Path, "mkdir", mkdir_slowly)
    with hidden_folder(path) as folder:
        assert made == [made[0], folder]
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []
