"""`to_zarr(resume=True)` and `udfdask run --resume` go on where they were."""

import threading

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from cache_cases import data, loads, stop_after
from commands import call
from saved import read_saved
from udfdask.udfs import CoMUDF, StdDevUDF

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")


def content(store):
    """All files of a store but its metadata, in which a resumed run has a name."""
    files = (p for p in sorted(store.rglob("*")) if p.is_file() and p.name != "zarr.json")
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


@pytest.mark.parametrize("udf", [CoMUDF, StdDevUDF])
def test_an_interrupted_store_is_absent_and_then_complete(udf, tmp_path):
    def run():
        return ud.run_udf(data(tmp_path), udf())

    expected = run().to_zarr(tmp_path / "expected.zarr")
    loads(tmp_path)
    store, cache = tmp_path / "out.zarr", tmp_path / "out.zarr.cache"
    for done in (0, 5, 3):
        stop_after(tmp_path, done)
        with pytest.raises(RuntimeError, match="power failure") as failed:
            run().to_zarr(store, resume=True, scheduler="synchronous")
        # nothing is saved of the first run, which fails at its first chunk
        notes = getattr(failed.value, "__notes__", ())
        assert any(note.startswith("partial results are saved in") for note in notes) == (done > 0)
        assert not store.exists()
        assert cache.is_dir()
        assert sum(loads(tmp_path).values()) == done
    stop_after(tmp_path, None)
    run().to_zarr(store, resume=True, scheduler="synchronous")
    assert sum(loads(tmp_path).values()) == 12 - 8
    assert content(store) == content(expected)
    assert not cache.exists()
    run().to_zarr(store, resume=True, overwrite=True)
    assert not cache.exists()
    assert sum(loads(tmp_path).values()) == 12


def test_a_finished_store_is_not_replaced(tmp_path):
    result = ud.run_udf(data(tmp_path), CoMUDF())
    store = result.to_zarr(tmp_path / "out.zarr", resume=True)
    loads(tmp_path)
    before = content(store)
    for again in (result, result.compute()):
        with pytest.raises(FileExistsError):
            again.to_zarr(store, resume=True)
    assert content(store) == before
    plain = result.to_zarr(tmp_path / "plain.zarr")
    assert read_saved(store).attrs == read_saved(plain).attrs


def test_a_computed_result_needs_no_cache(tmp_path):
    done = ud.run_udf(data(tmp_path), CoMUDF()).compute()
    done.to_zarr(tmp_path / "out.zarr", resume=True)
    assert not (tmp_path / "out.zarr.cache").exists()


def test_partial_results_of_another_run_are_not_used(tmp_path):
    stop_after(tmp_path, 5)
    store = tmp_path / "out.zarr"
    with pytest.raises(RuntimeError, match="power failure"):
        ud.run_udf(data(tmp_path), CoMUDF()).to_zarr(store, resume=True, scheduler="synchronous")
    stop_after(tmp_path, None)
    expected = ud.run_udf(data(tmp_path), CoMUDF(cy=2)).to_zarr(tmp_path / "expected.zarr")
    with pytest.warns(ud.UDFWarning, match="partial results of another run only"):
        ud.run_udf(data(tmp_path), CoMUDF(cy=2)).to_zarr(store, resume=True)
    assert content(store) == content(expected)
    assert not (tmp_path / "out.zarr.cache").exists()


def test_data_without_a_name_are_computed_each_time(tmp_path):
    x = da.from_array(np.ones((2, 3, 4, 4)), chunks=1).map_blocks(
        lambda block, _: block, threading.local(), dtype="f8"
    )
    for k in range(2):
        with pytest.warns(ud.UDFWarning, match="cannot recognize the data"):
            ud.run_udf(x, CoMUDF()).to_zarr(tmp_path / f"{k}.zarr", resume=True)


def test_the_command_needs_an_output_to_go_on(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(960, dtype="u2").reshape(8, 10, 3, 4))
    command = ["run", tmp_path / "a.npy", "--udf", "sum", "--resume"]
    assert "--resume needs --out" in call(*command, code=2)
    assert "--live" in call(*command, "--out", tmp_path / "a.zarr", "--live", code=2)
