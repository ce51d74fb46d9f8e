"""A journal refuses another run, and says in which fields it differs."""

import os
import re
import threading

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from journal_cases import CASES, data
from named_data import MODULE
from neighborhood_udfs import WindowsUDF
from udfdask.corrections import CorrectionSet
from udfdask.io import open_file, with_sync_offset
from udfdask.records.journal import MANIFEST, different_fields
from udfdask.udfs import CoMUDF, RecordUDF, SumSigUDF, SumUDF

ROI = np.eye(4, 5, dtype=bool)
HOW = "the way they are made (functions, arguments, values)"


@pytest.fixture
def x(tmp_path):
    np.save(tmp_path / "scan.npy", np.arange(240, dtype="u2").reshape(4, 5, 3, 4))
    return open_file(tmp_path / "scan.npy", chunks=(1, 5, 3, 4)).array


def refused(journal, *results, **options):
    """The lines of the message with the differences."""
    with pytest.raises(ud.JournalError, match="is the journal of another run") as caught:
        ud.compute(*results, journal=journal, **options)
    return re.findall("^- (.*)$", str(caught.value), flags=re.MULTILINE)


OTHERS = {
    "UDF": (lambda x: ud.run_udf(x, SumSigUDF()), ["UDFs: CoMUDF in the journal, now SumSigUDF"]),
    "one more UDF": (
        lambda x: ud.run_udf(x, [CoMUDF(), SumUDF()])[0],
        ["UDFs: CoMUDF in the journal, now CoMUDF, SumUDF"],
    ),
    "parameters": (
        lambda x: ud.run_udf(x, CoMUDF(cy=2.5, r=4.0)),
        [
            "UDF 1 (CoMUDF): parameter cy: None in the journal, now 2.5",
            "UDF 1 (CoMUDF): parameter r: inf in the journal, now 4.0",
        ],
    ),
    "roi": (
        lambda x: ud.run_udf(x, CoMUDF(), roi=ROI),
        ["ROI: all frames in the journal, now 4 of 20 frames"],
    ),
    "corrections": (
        lambda x: ud.run_udf(x, CoMUDF(), corrections=CorrectionSet(dark=np.ones((3, 4)))),
        ["corrections: none in the journal, now a CorrectionSet"],
    ),
    "descan": (
        lambda x: ud.run_udf(x, CoMUDF(), descan=np.ones((4, 5, 2))),
        ["descan: none in the journal, now by whole pixels, with fill=0, a numpy.ndarray"],
    ),
    "data": (
        lambda x: ud.run_udf(x + 1, CoMUDF()),
        [f"data: {HOW} has changed"],
    ),
    "dtype": (
        lambda x: ud.run_udf(x.astype("i4"), CoMUDF()),
        ["data: dtype: <u2 in the journal, now <i4"],
    ),
    "chunks": (
        lambda x: ud.run_udf(x.rechunk((2, 5, 3, 4)), CoMUDF()),
        ["data: chunks: ((1, 1, 1, 1), (5,), (3,), (4,)) in the journal, now ((2, 2), (5,)"],
    ),
    "shape": (lambda x: ud.run_udf(x[1:], CoMUDF()), ["data: shape: (4, 5, 3, 4) in the journal"]),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_run_is_refused(other, x, tmp_path):
    make, expected = OTHERS[other]
    journal = tmp_path / "journal"
    ud.run_udf(x, CoMUDF()).compute(journal=journal)
    lines = refused(journal, make(x))
    for line in expected:
        assert any(found.startswith(line) for found in lines), lines
    about = {line.partition(":")[0] for line in expected} | {"shape of tiles"}
    assert {line.partition(":")[0] for line in lines} <= about | {"UDF 1 (CoMUDF)"}
    ud.run_udf(x, CoMUDF()).compute(journal=journal)  # the journal is as it was


@pytest.mark.filterwarnings("ignore:the array was made with sync_offset")
def test_other_absent_frames_are_refused(x, tmp_path):
    opened, journal = with_sync_offset(x, sync_offset=-3), tmp_path / "journal"
    ud.run_udf(opened, WindowsUDF(1)).compute(journal=journal)
    lines = refused(journal, ud.run_udf(opened.array, WindowsUDF(1), roi=opened.present))
    assert lines == ["positions with a frame: 17 of 20 in the journal, now nothing"]


def test_a_changed_file_is_refused(x, tmp_path):
    journal = tmp_path / "journal"
    ud.run_udf(x, SumUDF()).compute(journal=journal)
    path = tmp_path / "scan.npy"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
    (line,) = refused(journal, ud.run_udf(open_file(path, chunks=(1, 5, 3, 4)).array, SumUDF()))
    assert re.match(rf"data: file {path}: 608 bytes, written at .*Z in the journal, now", line)


def test_a_changed_chunk_of_a_zarr_store_is_refused(x, tmp_path):
    pytest.importorskip("zarr")
    store, journal = tmp_path / "scan.zarr", tmp_path / "journal"
    ud.run_udf(x, SumSigUDF()).to_zarr(store)

    def run():
        return ud.run_udf(open_file(store, dataset="intensity", sig_dims=1).array, SumUDF())

    run().compute(journal=journal)
    run().compute(journal=journal)
    chunk = max(
        (path for path in store.rglob("*") if path.name.isdigit() and path.is_file()), key=str
    )
    os.utime(chunk, ns=(0, chunk.stat().st_mtime_ns + 10**10))
    (line,) = refused(journal, run())
    assert line.startswith(f"data: file {store}")


def test_changed_code_is_refused(x, tmp_path, monkeypatch):
    journal = tmp_path / "journal"
    spaces = [{"__name__": "own"}, {"__name__": "own"}]
    for space, scale in zip(spaces, (2, 3), strict=True):
        exec(MODULE.format(scale=scale), space)
    ud.run_udf(x, spaces[0]["Own"]()).compute(journal=journal)
    lines = refused(journal, ud.run_udf(x, spaces[1]["Own"]()))
    assert lines == ["UDF 1 (Own): code: own.Own has changed"]


def test_another_version_is_refused(x, tmp_path, monkeypatch):
    journal = tmp_path / "journal"
    ud.run_udf(x, SumUDF()).compute(journal=journal)
    monkeypatch.setattr("udfdask.records.names._version", lambda package: "99")
    lines = refused(journal, ud.run_udf(x, SumUDF()))
    assert "version of numpy" in " ".join(lines)
    assert not any(line.startswith(("UDF", "data")) for line in lines)


def test_aux_data_and_lazy_parameters_count(tmp_path):
    for case in ("aux data", "lazy parameter", "lazily corrected"):
        journal = tmp_path / case
        (first, *_) = CASES[case](tmp_path)
        first.compute(journal=journal)
        (second, *_) = CASES[case](tmp_path)
        second.compute(journal=journal)
    x = data(tmp_path)

    class Weighted(ud.UDF):
        def get_result_buffers(self):
            return {"sum": self.buffer("nav", dtype="float64")}

        def process_frame(self, frame):
            self.results.sum[:] = frame.sum() * self.params.weight

    journal = tmp_path / "weights"
    weights = np.ones((4, 5))
    for change in (0, 1):
        weights[3, 3] += change
        for values in (weights, da.from_array(weights, chunks=2)):
            aux = ud.UDF.aux_data(values, "nav", dtype="float64")
            run = ud.run_udf(x, Weighted(weight=aux))
            if values is weights and not change:
                run.compute(journal=journal)
            else:
                (line,) = refused(journal, run)
                assert line.startswith("UDF 1 (Weighted): parameter weight: aux data of kind nav")


def test_data_without_a_lasting_name_need_an_identity(tmp_path):
    h5py = pytest.importorskip("h5py")
    journal = tmp_path / "journal"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", data=np.arange(36.0).reshape(4, 3, 3))
        run = ud.run_udf(da.from_array(dataset, chunks=(1, 3, 3)), SumUDF())
        with pytest.raises(
            ud.ArgumentValueError, match=r"cannot recognize the data.*h5py.*identity="
        ):
            run.compute(journal=journal)
        once = run.compute(journal=journal, identity="a.h5, third version")
        again = run.compute(journal=journal, identity="a.h5, third version")
        np.testing.assert_array_equal(once["intensity"], again["intensity"])
        lines = refused(journal, run, identity="a.h5, fourth version")
    assert lines == ["data: identity: a.h5, third version in the journal, now a.h5, fourth version"]


def test_a_udf_without_a_lasting_name_is_refused(x, tmp_path):
    class Locked(ud.UDF):
        def get_result_buffers(self):
            return {"sum": self.buffer("nav", dtype="float64")}

        def process_frame(self, frame):
            self.results.sum[:] = frame.sum()

    with pytest.raises(ud.ArgumentValueError, match="cannot recognize Locked: it depends on a"):
        ud.run_udf(x, Locked(local=threading.local())).compute(journal=tmp_path / "journal")


def test_what_a_journal_cannot_store_is_refused(x, tmp_path):
    class Objects(ud.UDF):
        def get_result_buffers(self):
            return {"found": self.buffer("nav", dtype=object)}

        def process_frame(self, frame):
            self.results.found[:] = None

    with pytest.raises(ud.ArgumentTypeError, match="Objects has 'found' of dtype object"):
        ud.run_udf(x, Objects()).compute(journal=tmp_path / "journal")
    with pytest.raises(ud.ArgumentTypeError, match="RecordUDF writes a file itself"):
        ud.run_udf(x, RecordUDF(tmp_path / "a.npy")).compute(journal=tmp_path / "journal")


def test_a_journal_is_used_by_one_process_at_a_time(x, tmp_path):
    from udfdask.records.journal import open_journal

    journal = tmp_path / "journal"
    run = ud.run_udf(x, SumUDF())
    with open_journal(journal), pytest.raises(ud.JournalError, match="used by another process"):
        run.compute(journal=journal)
    run.compute(journal=journal)


def test_a_path_that_is_no_journal_is_refused(x, tmp_path):
    run = ud.run_udf(x, SumUDF())
    with pytest.raises(ud.ArgumentTypeError, match="must be the path of a folder"):
        run.compute(journal=3)
    with pytest.raises(ud.ArgumentValueError, match="path of a local folder"):
        run.compute(journal="s3://bucket/journal")
    with pytest.raises(FileNotFoundError, match="create it first"):
        run.compute(journal=tmp_path / "missing" / "journal")
    with pytest.raises(ud.ArgumentValueError, match="with other files"):
        run.compute(journal=tmp_path)
    with pytest.raises(ud.ArgumentValueError, match="is not a folder"):
        run.compute(journal=tmp_path / "scan.npy")
    with pytest.raises(ud.ArgumentTypeError, match="pass journal="):
        run.compute(identity="a")
    with pytest.raises(ud.ArgumentTypeError, match="identity must be a text"):
        run.compute(journal=tmp_path / "journal", identity=3)
    with pytest.raises(ud.ArgumentTypeError, match="has no argument 'journal'"):
        run.persist(journal=tmp_path / "journal")
    run.compute(journal=tmp_path / "journal")
    (tmp_path / "journal" / MANIFEST).write_text("{")
    with pytest.raises(ud.JournalError, match="damaged"):
        run.compute(journal=tmp_path / "journal")


def test_results_that_are_not_lazy_are_refused(x, tmp_path):
    import dask

    run = ud.run_udf(x, SumUDF())
    kept = run.persist(scheduler="synchronous")
    for other in (kept, kept["intensity"], dask.optimize(run["intensity"])[0], x):
        with pytest.raises(ud.ArgumentValueError, match="neither computed, persisted nor optim"):
            ud.compute(other, journal=tmp_path / "journal")


def test_a_summary_is_shown_only_alone():
    old = {"data: shape": "1", "data: everything": f"{HOW} [1]"}
    assert list(different_fields(old, {**old, "data: shape": "2", "data: everything": "[2]"})) == [
        "data: shape: 1 in the journal, now 2"
    ]
    new = {**old, "data: everything": f"{HOW} [2]"}
    assert list(different_fields(old, new)) == [f"data: {HOW} has changed"]
    assert list(different_fields(old, {})) == ["data: shape: 1 in the journal, now nothing"]
