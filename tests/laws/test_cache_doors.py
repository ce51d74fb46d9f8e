"""Which computations use a cache; what cannot be kept is computed, with a warning."""

import os
from collections import Counter
from pathlib import Path

import dask
import numpy as np
import pytest

import udf_zoo as zoo
import udfdask as ud
import udfdask.chunk.run_chunk as run_chunk_module
from cache_cases import assert_equal, computed, data, loads, records, without_cache
from udfdask.scheduling.records.folder import RecordFolder
from udfdask.udfs import RecordUDF, SumSigUDF, SumUDF


def assert_nothing_kept(cache, run, match):
    """The run is computed, with a warning that says why nothing is kept."""
    for _ in range(2):
        with pytest.warns(ud.UDFWarning, match=match) as caught:
            computed(run)
        assert len([each for each in caught if each.category is ud.UDFWarning]) == 1
    assert not records(cache)


def test_what_has_no_name_is_computed_each_time(cache, tmp_path):
    class Objects(ud.UDF):
        def get_result_buffers(self):
            return {"found": self.buffer("nav", dtype=object)}

        def process_frame(self, frame):
            self.results.found[:] = [[frame.sum()]]

    x = data(tmp_path)
    assert_nothing_kept(cache, ud.run_udf(x, Objects()), "Objects has 'found' of dtype object")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", data=np.arange(36.0).reshape(4, 3, 3))
        run = ud.run_udf(dask.array.from_array(dataset, chunks=(1, 3, 3)), SumUDF())
        assert_nothing_kept(cache, run, r"cannot recognize the data.*h5py.*open_file")
    assert_nothing_kept(cache, ud.run_udf(x, RecordUDF(tmp_path / "a.npy")), "writes a file")


def test_runs_without_a_name_do_not_stop_others(cache, tmp_path):
    import threading

    class Locked(zoo.Chain):
        pass

    x = data(tmp_path)
    runs = (ud.run_udf(x, Locked(local=threading.local())), ud.run_udf(x, SumUDF()))
    with pytest.warns(ud.UDFWarning, match="cannot recognize Locked"):
        computed(*runs)
    assert records(cache)
    loads(tmp_path)
    computed(runs[1])
    assert not loads(tmp_path)


def test_a_folder_that_is_no_cache_is_refused(tmp_path):
    x = data(tmp_path)
    run = ud.run_udf(x, SumUDF())
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "scan.raw").touch()
    with pytest.raises(ud.ArgumentValueError, match="with other files, so it cannot be a cache"):
        ud.cache(folder)
    with pytest.raises(ud.ArgumentValueError, match="with other files"):
        run.compute(cache=folder)
    with (
        dask.config.set({"udfdask.cache-folder": str(folder)}),
        pytest.raises(ud.ArgumentValueError, match="with other files"),
    ):
        run.compute()
    with pytest.raises(ud.ArgumentValueError, match="is not a folder"):
        ud.cache(folder / "scan.raw")
    with pytest.raises(ud.ArgumentTypeError, match="cache must be the path of a folder"):
        ud.cache(3)
    with pytest.raises(ud.ArgumentValueError, match="path of a local folder"):
        ud.cache("s3://bucket/cache")
    with pytest.raises(FileNotFoundError, match="create it first"):
        ud.cache(tmp_path / "missing" / "cache")
    for limit in (0, "many", None):
        with pytest.raises(ud.ArgumentValueError, match="cache-limit must be a positive number"):
            ud.cache(tmp_path / "cache", limit=limit)
    assert dask.config.get("udfdask.cache-folder", None) is None


def test_contexts_and_settings(tmp_path):
    def folder():
        return dask.config.get("udfdask.cache-folder", None)

    with ud.cache(tmp_path / "a"):
        assert folder() == str(tmp_path / "a")
        with ud.cache(None):
            assert folder() is None
            computed(ud.run_udf(data(tmp_path), SumUDF()))
        assert folder() == str(tmp_path / "a")
    assert folder() is None
    assert not (tmp_path / "a").exists()
    with ud.cache(tmp_path / "a"):
        pass
    setting = ud.cache(tmp_path / "a")  # without a block: until it is changed
    try:
        computed(ud.run_udf(data(tmp_path), SumUDF()))
        assert records(tmp_path / "a")
    finally:
        setting.__exit__(None, None, None)
    with dask.config.set({"udfdask.cache-folder": 3}), pytest.raises(ud.ArgumentValueError):
        computed(ud.run_udf(data(tmp_path), SumUDF()))


def test_every_door_uses_it(cache, tmp_path):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    import udfdask.xarray  # noqa: F401  # adds the accessor

    run = ud.run_udf(data(tmp_path), SumUDF())
    run.compute()
    assert sum(loads(tmp_path).values()) == 12
    (expected,) = without_cache(run.to_xarray())
    loads(tmp_path)
    (dataset,) = ud.compute(ud.run_udf(data(tmp_path), SumUDF()).to_xarray())
    assert dataset.identical(expected)
    ud.run_udf(data(tmp_path), SumUDF()).to_zarr(tmp_path / "out.zarr")
    array = xr.DataArray(data(tmp_path), dims=("y", "x", "ky", "kx"))
    array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))
    ud.compute(ud.run_udf(data(tmp_path), SumUDF())["intensity"].mean())
    assert not loads(tmp_path)
    run.compute(cache=tmp_path / "other")
    assert sum(loads(tmp_path).values()) == 12


def test_nothing_to_keep(cache, tmp_path):
    assert ud.compute(3, dask.array.ones(4).sum()) == (3, 4.0)
    assert_equal(
        ud.compute(ud.run_udf(data(tmp_path), SumUDF()).persist(scheduler="synchronous")),
        without_cache(ud.run_udf(data(tmp_path), SumUDF())),
    )
    empty = ud.run_udf(data(tmp_path), SumUDF(), roi=np.zeros((4, 5), dtype=bool))
    assert_equal(computed(empty), without_cache(empty))


def test_a_full_disk_is_a_warning(cache, tmp_path, monkeypatch):
    def full(self, record, superfluous=()):
        raise OSError(28, "No space left on device")

    run = ud.run_udf(data(tmp_path), [SumUDF(), SumSigUDF()])
    expected = without_cache(*run)
    monkeypatch.setattr(RecordFolder, "put", full)
    with pytest.warns(ud.UDFWarning, match="could not be kept in .*No space left"):
        assert_equal(computed(*run), expected)


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path, monkeypatch):
    run = ud.run_udf(dask.array.ones((4, 5, 3, 4), chunks=(1, 5, 3, 4)), SumUDF())
    expected = computed(run)

    def refused(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    with ud.cache(tmp_path / "cache"):
        monkeypatch.setattr(Path, "touch", refused)  # the mark
        with pytest.warns(ud.UDFWarning, match="the cache cannot be used.*Permission denied"):
            found = computed(run)
        monkeypatch.undo()
    assert_equal(found, expected)


def test_a_read_only_folder_is_read(cache, tmp_path, monkeypatch):
    run = ud.run_udf(data(tmp_path), SumUDF())
    computed(run)

    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    loads(tmp_path)
    monkeypatch.setattr(os, "utime", refused)
    computed(run)
    assert not loads(tmp_path)


def test_the_command_keeps_results(tmp_path, monkeypatch):
    from commands import call

    np.save(tmp_path / "a.npy", np.arange(960, dtype="u2").reshape(8, 10, 3, 4))
    run_chunk, n_runs = run_chunk_module.run_chunk, Counter()

    def counted(*args, **kwargs):
        n_runs["chunks"] += 1
        return run_chunk(*args, **kwargs)

    monkeypatch.setattr(run_chunk_module, "run_chunk", counted)
    command = ["run", tmp_path / "a.npy", "--chunks", "2,5,3,4", "--cache", tmp_path / "cache"]
    call(*command, "--udf", "sum", "--scheduler", "threads")
    assert n_runs["chunks"] == 8
    call(*command, "--udf", "sum", "--scheduler", "threads", "--roi", "0:4,:")
    assert n_runs["chunks"] == 8
    assert "--cache does not work" in call(*command, "--udf", "sum", "--live", code=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    command[-1] = tmp_path / "other"
    assert "cannot be a cache" in call(*command, "--udf", "sum", code=1)
