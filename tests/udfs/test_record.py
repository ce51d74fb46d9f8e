"""RecordUDF: the file holds the frames in flattened order, whoever wrote it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import ArgumentTypeError, ArgumentValueError, UDFError
from udfdask.corrections import CorrectionSet
from udfdask.io import open_file
from udfdask.testing import check_udf, raise_if_dask_computes
from udfdask.udfs import RecordUDF, SumUDF
from udfdask.udfs.record import NpyRows

# many small signal chunks
pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

NAV, SIG = (4, 6), (5, 7)
RNG = np.random.default_rng(8)
DATA = RNG.integers(0, 900, (*NAV, *SIG)).astype("u2")
CHUNKS = [(4, 6, 5, 7), (1, 6, 5, 7), (4, 2, 5, 7), (3, 4, 2, 7), (1, 1, 2, 3)]


def record(data, chunks, path, scheduler="sync", overwrite=False, **options):
    x = da.from_array(data, chunks=chunks)
    with raise_if_dask_computes():
        lazy = ud.run_udf(x, RecordUDF(path, overwrite), **options)
    done = lazy.compute(scheduler=scheduler)
    found = np.load(path)
    n_sig = options.get("sig_dims", 2)
    expected = np.prod(found.shape[: found.ndim - n_sig], dtype=int)
    assert {name: int(value) for name, value in done.items()} == {"frames": expected}
    return found


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("tile", ["1 MiB", 100])
def test_frames(tmp_path, chunks, scheduler, tile):
    with dask.config.set({"udfdask.tile-bytes": tile}):
        found = record(DATA, chunks, tmp_path / "a.npy", scheduler)
    assert found.dtype == DATA.dtype
    assert list(tmp_path.iterdir()) == [tmp_path / "a.npy"]
    np.testing.assert_array_equal(found, DATA)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_region(tmp_path, chunks):
    roi = RNG.random(NAV) < 0.4
    found = record(DATA, chunks, tmp_path / "a.npy", "threads", roi=roi)
    np.testing.assert_array_equal(found, DATA[roi])


@pytest.mark.full
@pytest.mark.parametrize("share", [1, 0.5])
def test_processes(tmp_path, share):
    np.save(tmp_path / "a.npy", np.arange(7))
    roi = RNG.random(NAV) < share
    found = record(DATA, (1, 2, 3, 7), tmp_path / "a.npy", "processes", True, roi=roi)
    np.testing.assert_array_equal(found, DATA[roi])


def test_a_cluster(tmp_path, client):
    x = da.from_array(DATA, chunks=(1, 2, 5, 7))
    ud.compute(ud.run_udf(x, RecordUDF(tmp_path / "a.npy")), scheduler=client)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)


@pytest.mark.parametrize("dtype", ["?", "i1", ">u2", "i4", "u8", "f2", ">f4", "f8", "c8", "m8[s]"])
def test_dtypes(tmp_path, dtype):
    data = DATA.astype(dtype)
    found = record(data, (2, 3, 5, 7), tmp_path / "a.npy")
    assert found.dtype == data.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, data)


@pytest.mark.parametrize("sig_dims", [1, 3, 4])
def test_signals(tmp_path, sig_dims):
    found = record(DATA, (2, 6, 5, 3), tmp_path / "a.npy", sig_dims=sig_dims)
    np.testing.assert_array_equal(found, DATA)


def test_layouts_in_memory(tmp_path):
    x = da.from_array(DATA, chunks=(2, 3, 5, 7)).map_blocks(np.asfortranarray)
    ud.run_udf(x, RecordUDF(tmp_path / "a.npy")).compute()
    found = np.load(tmp_path / "a.npy")
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, DATA)


def test_building_writes_nothing(tmp_path):
    x = da.from_array(DATA, chunks=(2, 3, 5, 7))
    result = ud.run_udf(x, [RecordUDF(tmp_path / "a.npy"), SumUDF()])
    result[0].explain()
    assert not list(tmp_path.iterdir())
    # all UDFs of a run see each chunk, whichever result is asked for
    result[1].compute(scheduler="sync")
    (hidden,) = tmp_path.iterdir()
    assert hidden.suffix == ".part"
    np.testing.assert_array_equal(np.load(hidden), DATA)
    # the file gets its name with its own result
    ud.compute(*result, scheduler="sync")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)


def test_no_frame_no_file(tmp_path):
    x = da.from_array(DATA, chunks=(2, 3, 5, 7))
    ud.run_udf(x, RecordUDF(tmp_path / "a.npy"), roi=np.zeros(NAV, dtype=bool)).compute()
    assert not list(tmp_path.iterdir())


def test_corrected_frames(tmp_path):
    dark = RNG.random(SIG)
    corrections = CorrectionSet(dark=dark)
    found = record(DATA, (2, 3, 5, 7), tmp_path / "a.npy", corrections=corrections)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, DATA - dark, rtol=1e-5)


BEFORE = {
    "the same": lambda path: np.save(path, DATA[::-1]),
    "another dtype": lambda path: np.save(path, DATA.astype("f8") + 0.5),
    "a smaller one": lambda path: np.save(path, DATA[:1]),
    "same size, another shape": lambda path: np.save(path, DATA.reshape(6, 4, 5, 7)),
    "empty": lambda path: path.touch(),
}


@pytest.mark.parametrize("make", BEFORE.values(), ids=BEFORE)
def test_what_is_there_is_overwritten_if_asked(tmp_path, make):
    make(tmp_path / "a.npy")
    before = (tmp_path / "a.npy").read_bytes()
    with pytest.raises(FileExistsError, match="already exists: choose another name, or overwrite"):
        record(DATA, (1, 2, 5, 7), tmp_path / "a.npy")
    assert (tmp_path / "a.npy").read_bytes() == before
    found = record(DATA, (1, 2, 5, 7), tmp_path / "a.npy", "threads", overwrite=True)
    assert found.shape == DATA.shape
    np.testing.assert_array_equal(found, DATA)
    assert (tmp_path / "a.npy").stat().st_size == 128 + DATA.nbytes


def test_twice(tmp_path):
    x = da.from_array(DATA, chunks=(2, 3, 5, 7))
    lazy = ud.run_udf(x, RecordUDF(tmp_path / "a.npy"))
    for _ in range(2):
        lazy.compute(scheduler="threads")
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)
        (tmp_path / "a.npy").unlink()


def test_many_open_it_at_once(tmp_path):
    """Each opens, writes its row and closes; none may lose another one's."""
    path, rows = str(tmp_path / "a.npy"), np.arange(64 * 3, dtype="f4").reshape(64, 3)

    def write(k):
        file = NpyRows(path, rows.shape, 1, rows.dtype)
        file.write(slice(k, k + 1), rows[k : k + 1])
        file.close()

    for content in (None, b"", b"x" * 17, b"x" * 10_000):
        Path(path).unlink(missing_ok=True)
        if content is not None:
            Path(path).write_bytes(content)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(write, range(64)))
        np.testing.assert_array_equal(np.load(path), rows)


def test_nobody_writes_back_what_it_has_read(tmp_path):
    path, rows = str(tmp_path / "a.npy"), np.arange(8.0).reshape(8, 1)
    early, late = (NpyRows(path, (8, 1), 1, rows.dtype) for _ in range(2))
    late.write(slice(1, 2), rows[1:2])
    late.close()
    early.write(slice(5, 6), rows[5:6])
    early.close()
    assert np.load(path)[:, 0].tolist() == [0, 1, 0, 0, 0, 5, 0, 0]


def test_unwritten_rows_of_a_new_file_are_zero(tmp_path):
    file = NpyRows(str(tmp_path / "a.npy"), (6, 2), 1, np.dtype("i4"))
    file.write(np.array([4, 1, 2]), np.array([[4, 4], [1, 1], [2, 2]]))
    file.close()
    assert np.load(tmp_path / "a.npy")[:, 0].tolist() == [0, 1, 2, 0, 4, 0]


def test_a_relative_name_means_what_it_meant_at_first(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    lazy = ud.run_udf(da.from_array(DATA), RecordUDF("a.npy"))
    monkeypatch.chdir(tmp_path)
    lazy.compute(scheduler="sync")
    np.testing.assert_array_equal(np.load(tmp_path / "here" / "a.npy"), DATA)


def test_laws(tmp_path):
    check_udf(RecordUDF(tmp_path / "a.npy", overwrite=True))


def test_mistakes(tmp_path):
    x = da.from_array(DATA)
    for wrong in (3, None, b"a.npy"):
        with pytest.raises(ArgumentTypeError, match=r"filename must be a path, such as 'a.npy'"):
            RecordUDF(wrong)
    with pytest.raises(ArgumentTypeError, match=r"overwrite must be True or False, not 'yes'"):
        RecordUDF("a.npy", "yes")
    with pytest.raises(FileExistsError, match=r"is a folder: choose another name"):
        ud.run_udf(x, RecordUDF(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no folder .*missing to write a.npy in"):
        ud.run_udf(x, RecordUDF(tmp_path / "missing" / "a.npy"))
    with pytest.raises(ArgumentValueError, match=r"s3://b/a.npy is not a local path"):
        ud.run_udf(x, RecordUDF("s3://b/a.npy"))
    (tmp_path / "notes").write_text("frames")
    with pytest.raises(FileExistsError, match=r"is not an .npy file, so it is not replaced"):
        ud.run_udf(x, RecordUDF(tmp_path / "notes", overwrite=True))
    twice = [RecordUDF(tmp_path / "a.npy"), RecordUDF(tmp_path / "." / "a.npy")]
    with pytest.raises(ArgumentValueError, match=r"cannot both be written"):
        ud.run_udf(x, twice)
    assert (tmp_path / "notes").read_text() == "frames"


@pytest.mark.parametrize("make", [os.symlink, os.link, None], ids=["symlink", "hard link", "same"])
def test_never_the_file_that_is_read(tmp_path, make):
    source, other = tmp_path / "scan.npy", tmp_path / "other.npy"
    np.save(source, DATA)
    if make is not None:
        make(source, other)
    x = open_file(source).array
    for array in (x, x.astype("f8")[1:]):
        with pytest.raises(ArgumentValueError, match="is the source of the data"):
            ud.run_udf(array, RecordUDF(source if make is None else other, overwrite=True))
    np.testing.assert_array_equal(np.load(source), DATA)


def test_the_same_result_twice_leaves_the_file(tmp_path):
    lazy = ud.run_udf(da.from_array(DATA, chunks=(2, 3, 5, 7)), RecordUDF(tmp_path / "a.npy"))
    lazy.compute(scheduler="sync")
    before = (tmp_path / "a.npy").stat()
    lazy.compute(scheduler="threads")
    after = (tmp_path / "a.npy").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    np.save(tmp_path / "a.npy", DATA + 1)
    with pytest.raises(FileExistsError, match="already exists, with other frames"):
        lazy.compute(scheduler="sync")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA + 1)
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_absent_or_complete(tmp_path):
    """Whoever looks while tasks write sees no file, or what was there before."""
    seen = []

    def look(block):
        seen.append(sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith(".")))
        if block[0, 0, 0, 0] == 9999:
            raise OSError("disk lost")
        return block

    x = da.from_array(DATA, chunks=(1, 6, 5, 7)).map_blocks(look, meta=DATA[:0])
    ud.run_udf(x, RecordUDF(tmp_path / "a.npy")).compute(scheduler="sync")
    assert seen == [[]] * 4
    data = DATA.copy()
    data[3, 0, 0, 0] = 9999
    x = da.from_array(data, chunks=(1, 6, 5, 7)).map_blocks(look, meta=DATA[:0])
    with pytest.raises(OSError, match="disk lost"):
        ud.run_udf(x, RecordUDF(tmp_path / "a.npy", True)).compute(scheduler="sync")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)


def test_a_file_that_appears_on_the_way_stays(tmp_path):
    target = tmp_path / "a.npy"

    def appear(block):
        if list(tmp_path.glob(".*.part")):  # the first frames have been written
            np.save(target, np.arange(3))
        return block

    x = da.from_array(DATA, chunks=(1, 6, 5, 7)).map_blocks(appear, meta=DATA[:0])
    with pytest.raises(FileExistsError, match="already exists"):
        ud.run_udf(x, RecordUDF(target)).compute(scheduler="sync")
    np.testing.assert_array_equal(np.load(target), np.arange(3))
    (kept,) = tmp_path.glob("a-*.npy")
    np.testing.assert_array_equal(np.load(kept), DATA)


def test_a_hidden_file_that_is_lost_on_the_way_is_noticed(tmp_path):
    def lose(block):
        for part in tmp_path.glob(".*.part"):  # of the frames before
            part.rename(tmp_path / "lost")
        return block

    x = da.from_array(DATA, chunks=(1, 6, 5, 7)).map_blocks(lose, meta=DATA[:0])
    with pytest.raises(UDFError, match=r"a.npy has not been written: during the run"):
        ud.run_udf(x, RecordUDF(tmp_path / "a.npy")).compute(scheduler="sync")
    assert not (tmp_path / "a.npy").exists()


def test_a_hidden_file_whose_number_was_given_away_is_noticed(tmp_path):
    """A file system may give the number of a file that was removed to the next one."""
    seen = []

    def load(block):
        seen.append(block)
        if len(seen) == 3:
            (hidden,) = tmp_path.glob("*.part")
            hidden.unlink()
        return block

    x = da.from_array(DATA, chunks=(1, 6, 5, 7)).map_blocks(load, meta=DATA[:0])
    lazy = ud.run_udf(x, RecordUDF(tmp_path / "a.npy"))
    with pytest.raises(UDFError, match=r"hidden file for its frames was removed"):
        lazy.compute(scheduler="sync")
    assert not (tmp_path / "a.npy").exists()


def test_hidden_files_of_dead_runs_are_removed_after_a_day(tmp_path):
    x = da.from_array(DATA, chunks=(2, 3, 5, 7))
    for _ in range(2):
        ud.run_udf(x, [RecordUDF(tmp_path / "a.npy"), SumUDF()])[1].compute(scheduler="sync")
    old, young = tmp_path.iterdir()
    os.utime(old, (0, time.time() - 25 * 3600))
    ud.run_udf(x, RecordUDF(tmp_path / "a.npy"))
    assert list(tmp_path.iterdir()) == [young]


def test_progressive(tmp_path):
    x = da.from_array(DATA, chunks=(1, 6, 5, 7))
    counts = []
    run = ud.run_udf_iter(x, [RecordUDF(tmp_path / "a.npy"), SumUDF()], scheduler="sync")
    for snapshot in run:
        assert not (tmp_path / "a.npy").exists()
        run.update_parameters([{}, {}])
        counts.append(int(snapshot.buffers[0]["frames"]))
    assert counts == [6, 12, 18, 24]
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)


def test_the_name_cannot_change_on_the_way(tmp_path):
    x = da.from_array(DATA, chunks=(1, 6, 5, 7))
    run = ud.run_udf_iter(x, RecordUDF(tmp_path / "a.npy"), scheduler="sync")
    next(run)
    run.update_parameters([{"filename": str(tmp_path / "b.npy")}])
    with pytest.raises(ArgumentValueError, match="filename cannot change during a run"):
        list(run)
