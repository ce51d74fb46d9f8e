"""A cache knows the files that a run reads, also those that only a UDF or its code names."""

import errno
import importlib
import os
import sys

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from cache_cases import assert_equal
from making import run_python
from udf_zoo import Rows
from udfdask.corrections import CorrectionSet
from udfdask.io import open_file
from udfdask.scheduling.records.folder import SUFFIX
from udfdask.udfs import ApplyMasksUDF, SumSigUDF, SumUDF

VALUES = np.arange(240.0).reshape(4, 5, 3, 4)


class Weighted(Rows):
    def process_frame(self, frame):
        weights = self.params.weights
        if isinstance(weights, (str, os.PathLike)):
            weights = np.load(weights)
        elif callable(weights):
            weights = weights()
        self.results.sums[:] = (frame * weights).sum()


def x(values=VALUES):
    return da.from_array(values, chunks=(1, 5, 3, 4))


def captured(path):
    mapped = np.load(path, mmap_mode="r")
    return Weighted(weights=lambda: mapped)


def constant(path):
    space = {"np": np}
    exec(f"def load():\n    return np.load({str(path)!r})[None]", space)
    return space["load"]


def of_global(path):
    space = {"np": np, "PATHS": [[path]]}
    exec("def load(block=1):\n    return block * np.load(PATHS[0][0])", space)
    return space["load"]


def many_objects(path):
    more = [type(path)(f"/nowhere/{n}") for n in range(21_000)]
    parts = [dask.delayed(lambda path, _: np.load(path))(path, more)]
    weights = da.stack([da.from_delayed(part, (3, 4), "f8") for part in parts])
    return ud.run_udf(x() * weights, SumSigUDF())


MADE = {
    "mapped parameter": lambda p: ud.run_udf(x(), Weighted(weights=np.load(p, mmap_mode="r"))),
    "mapped closure": lambda p: ud.run_udf(x(), captured(p)),
    "mapped correction": lambda p: ud.run_udf(
        x(), SumUDF(), corrections=CorrectionSet(dark=np.load(p, mmap_mode="r"))
    ),
    "text parameter": lambda p: ud.run_udf(x(), Weighted(weights=str(p))),
    "path parameter": lambda p: ud.run_udf(x(), Weighted(weights=p)),
    "path in the code": lambda p: ud.run_udf(x(), Weighted(weights=constant(p))),
    "global path": lambda p: ud.run_udf(x(), Weighted(weights=of_global(p))),
    "many objects": many_objects,
    "masks": lambda p: ud.run_udf(x(), ApplyMasksUDF(mask_factories=constant(p))),
    "opened": lambda p: ud.run_udf(open_file(p).array, SumSigUDF(), sig_dims=1),
    "blocks": lambda p: ud.run_udf(x().map_blocks(of_global(p), dtype="f8"), SumSigUDF()),
}


@pytest.mark.parametrize("case", MADE)
def test_a_cache_does_not_use_results_from_a_file_that_is_written_again(case, tmp_path):
    path = tmp_path / "weights.npy"
    for weight in (1.0, 2.0):
        np.save(path, np.full((3, 4), weight))
        expected = MADE[case](path).compute()
        with ud.cache(tmp_path / "cache"):
            assert_equal([MADE[case](path).compute()], [expected])


def assert_kept_once(run, tmp_path):
    """A run finds nothing in the cache, and keeps its own results."""
    cache = tmp_path / "cache"
    before = len(list(cache.rglob(f"*{SUFFIX}")))
    expected = run().compute()
    for _ in range(2):
        assert_equal([run().compute(cache=cache)], [expected])
        assert len(list(cache.rglob(f"*{SUFFIX}"))) == before + 4


def test_a_file_that_a_udf_names_counts_for_that_udf_alone(tmp_path):
    path = tmp_path / "weights.npy"
    new = []
    for weight in (1.0, 2.0):
        np.save(path, np.full((3, 4), weight))
        with ud.cache(tmp_path / "cache"):
            ud.compute(*ud.run_udf(x(), [Weighted(weights=str(path)), SumSigUDF()]))
        new.append(len(list((tmp_path / "cache").rglob(f"*{SUFFIX}"))) - sum(new))
    assert new == [8, 4]


def test_a_chunk_of_a_store_that_is_replaced_by_an_older_one_counts(tmp_path):
    zarr = pytest.importorskip("zarr")
    store = tmp_path / "scan.zarr"
    array = zarr.create_array(
        str(store), shape=VALUES.shape, chunks=(1, 5, 3, 4), dtype="f8", compressors=None
    )
    array[:] = VALUES

    def run():
        return ud.run_udf(da.from_zarr(str(store)), SumSigUDF())

    assert_kept_once(run, tmp_path)
    one, other, *_ = (store / "c").rglob("0/0/0")
    one.rename(tmp_path / "one")
    other.rename(one)
    (tmp_path / "one").rename(other)
    assert_kept_once(run, tmp_path)


def test_a_link_to_another_file_of_equal_size_and_time_counts(tmp_path):
    link = tmp_path / "now.npy"
    for k in (1, 2):
        np.save(tmp_path / f"{k}.npy", VALUES * k)
        os.utime(tmp_path / f"{k}.npy", ns=(10**18, 10**18))

    def run():
        return ud.run_udf(x(np.load(link, mmap_mode="r")), SumSigUDF())

    link.symlink_to("1.npy")
    assert_kept_once(run, tmp_path)
    link.unlink()
    link.symlink_to("2.npy")
    assert_kept_once(run, tmp_path)


def test_changes_in_memory_to_a_copy_of_a_file_count(tmp_path):
    np.save(tmp_path / "weights.npy", np.ones((3, 4)))
    weights = np.load(tmp_path / "weights.npy", mmap_mode="c")
    for k in range(3):
        weights[0, 0] = k
        assert_kept_once(lambda: ud.run_udf(x(), Weighted(weights=weights)), tmp_path)


def test_a_record_in_a_bad_place_of_the_disk_is_computed_again(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    run = ud.run_udf(x(), SumSigUDF())
    expected = run.compute(cache=cache)
    bad = min((cache / "records").iterdir())
    load = np.load

    def failing(file, **options):
        if file.name == str(bad):
            raise OSError(errno.EIO, "Input/output error")
        return load(file, **options)

    monkeypatch.setattr(np, "load", failing)
    found = run.compute(cache=cache, scheduler="synchronous")
    np.testing.assert_array_equal(found["intensity"], expected["intensity"])


INSTALLED = """
import udfdask as ud

__version__ = "{version}"

def scaled(block):
    return block * {scale}

class Lab(ud.UDF):
    def get_result_buffers(self):
        return {{"sum": self.buffer("nav", dtype="float64")}}

    def process_frame(self, frame):
        self.results.sum[:] = frame.sum() * {scale}
"""


@pytest.mark.parametrize(("version", "scale"), [("1", 2), ("2", 1), ("2", 2)])
def test_a_library_that_is_installed_again_counts(version, scale, tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "ownlab"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def runs(version, scale):
        (package / "__init__.py").write_text(INSTALLED.format(version=version, scale=scale))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "ownlab", raising=False)
        lab = importlib.import_module("ownlab")
        data = x().map_blocks(lab.scaled, dtype="f8")
        return {"udf": ud.run_udf(x(), lab.Lab()), "data": ud.run_udf(data, SumSigUDF())}

    for name in ("udf", "data"):
        for version_, scale_ in (("1", 1), (version, scale)):
            assert_kept_once(lambda n=name, v=version_, s=scale_: runs(v, s)[n], tmp_path)
    monkeypatch.delitem(sys.modules, "ownlab")


LATE = """
import sys
sys.path.insert(0, {support!r})
import scipy
import dask.array as da
import udfdask as ud

class Late(ud.UDF):
    def get_result_buffers(self):
        return {{"sum": self.buffer("nav", dtype="float64")}}

    def process_frame(self, frame):
        import wsgiref.util
        from colorsys import rgb_to_hls
        from scipy import ndimage
        from scipy.special import erf
        blurred = ndimage.gaussian_filter(frame, 1) + scipy.signal.detrend(frame) + erf(frame)
        self.results.sum[:] = blurred.sum()

if __name__ == "__main__":
    for _ in range(2):
        x = da.ones((2, 4, 4), chunks=(1, 4, 4))
        run = ud.run_udf(x, Late())
        run.compute(cache={cache!r}, scheduler="synchronous")
        if not _:
            assert "scipy.ndimage" in sys.modules
"""


def test_a_library_that_a_udf_loads_late_does_not_change_its_name(tmp_path):
    """The first call loads it: a second call in the same process finds its results."""
    pytest.importorskip("scipy")
    program = LATE.format(support=str(tmp_path), cache=str(tmp_path / "cache"))
    (tmp_path / "late.py").write_text(program)
    for _ in range(2):
        run_python(tmp_path / "late.py")
    assert len(list((tmp_path / "cache").rglob(f"*{SUFFIX}"))) == 2
