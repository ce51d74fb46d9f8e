"""Names of data and runs: equal in every process, different for different data."""

import os
import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import run_python
from udfdask.base.names.naming import UnnamedError
from udfdask.io import from_raw, open_file
from udfdask.scheduling.records.data_names import DataNames
from udfdask.scheduling.records.runs import find_runs, names_of
from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumUDF

MODULE = """
import udfdask as ud

SCALE = {scale}

def doubled(frame):
    return frame * SCALE

class Own(ud.UDF):
    def get_result_buffers(self):
        return {{"total": self.buffer("nav", dtype="float64")}}

    def process_frame(self, frame):
        self.results.total[:] = doubled(frame).sum()
"""


def scaled(block, by=3):
    return block * by


@dask.delayed
def made(number):
    return np.full((2, 3, 4), float(number))


def arrays_in(folder):
    """Arrays by name; the files in the folder stay as they are."""
    path = Path(folder, "scan.npy")
    if not path.exists():
        np.save(path, np.arange(4 * 4 * 3 * 4, dtype="u2").reshape(4, 4, 3, 4))
        path.with_suffix(".raw").write_bytes(bytes(range(192)))
    x = open_file(path, chunks=(2, 2, -1, -1)).array
    mapped = np.load(path, mmap_mode="r")
    return {
        "file": x,
        "other chunks": open_file(path, chunks=(1, 2, -1, -1)).array,
        "raw": from_raw(path.with_suffix(".raw"), nav_shape=(4, 4), sig_shape=(3, 4), dtype="u1"),
        "sliced": x[1:, ::2],
        "rechunked": x.rechunk((1, 1, 3, 2)),
        "function": x.map_blocks(scaled, dtype="u2"),
        "argument": x.map_blocks(scaled, by=4, dtype="u2"),
        "lambda": x.map_blocks(lambda block: block * 5, dtype="u2"),
        "ones": da.ones((4, 4, 3, 4), chunks=2),
        "zeros": da.zeros((4, 4, 3, 4), chunks=2),
        "in memory": da.from_array(np.arange(192.0).reshape(4, 4, 3, 4), chunks=2),
        "turned": da.from_array(np.arange(192.0).reshape(4, 3, 4, 4).swapaxes(1, 3), chunks=2),
        "no name": da.from_array(np.arange(192).reshape(4, 4, 3, 4), chunks=2, name=False),
        "mapped": da.from_array(mapped, chunks=2, name=False),
        "mapped part": da.from_array(mapped[1:], chunks=2, name=False),
        "random": da.random.default_rng(3).random((4, 4, 3, 4), chunks=2),
        "other random": da.random.default_rng(4).random((4, 4, 3, 4), chunks=2),
        "delayed": da.stack([da.from_delayed(made(k), (2, 3, 4), float) for k in range(3)]),
        "other delayed": da.stack([da.from_delayed(made(1), (2, 3, 4), float) for k in range(3)]),
        "chain": da.ones((3000, 1, 1), chunks=1).cumsum(axis=0),
        "persisted": x.persist(scheduler="synchronous"),
        "result": ud.run_udf(x, SumUDF(), roi=(0, 1))["intensity"],
    }


def runs_in(folder):
    """Results by name; `own_udf` is a module in the folder."""
    x = arrays_in(folder)["file"]
    sys.path.insert(0, str(folder))
    import own_udf

    roi = np.zeros((4, 4), dtype=bool)
    roi[1, :3] = True
    return {
        "sum": ud.run_udf(x, SumUDF()),
        "roi": ud.run_udf(x, SumUDF(), roi=roi),
        "com": ud.run_udf(x, CoMUDF(cy=1.5)),
        "masks": ud.run_udf(x, ApplyMasksUDF(mask_factories=[lambda: np.eye(3, 4)])),
        "own": ud.run_udf(x, own_udf.Own()),
        "split": ud.run_udf(x, SumUDF(), split_every=2),
    }


def described(result):
    """The names of a run."""
    (run,) = find_runs([result])
    return names_of(run, DataNames())


def show_names(folder):
    for name, array in arrays_in(folder).items():
        print(name, DataNames().name(array))  # noqa: T201
    for name, result in runs_in(folder).items():
        print(name, described(result))  # noqa: T201


def printed(folder, seed):
    """What another process prints."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    code = "import sys, test_data_names; test_data_names.show_names(sys.argv[1])"
    return run_python("-c", code, folder, env={"PYTHONHASHSEED": seed, "PYTHONPATH": path}).stdout


def test_names_are_equal_in_every_process(tmp_path):
    (tmp_path / "own_udf.py").write_text(MODULE.format(scale=2))
    first, second = (printed(tmp_path, seed) for seed in ("1", "2"))
    assert first == second
    (tmp_path / "own_udf.py").write_text(MODULE.format(scale=3))
    third = printed(tmp_path, "1")
    changed = [
        one.partition(" ")[0]
        for one, other in zip(first.splitlines(), third.splitlines(), strict=True)
        if one != other
    ]
    assert changed == ["own"]  # a global variable that a function of the UDF uses


def test_different_data_have_different_names(tmp_path):
    arrays = arrays_in(tmp_path)
    names = {name: DataNames().name(array) for name, array in arrays.items()}
    assert len(set(names.values())) == len(names)
    together = DataNames()
    assert {name: together.name(array) for name, array in arrays.items()} == names


def test_a_file_counts_by_path_size_and_time(tmp_path):
    path = tmp_path / "scan.npy"
    np.save(path, np.zeros((4, 4, 3)))

    def name():
        return DataNames().name(open_file(path, sig_dims=1).array)

    before, status = name(), path.stat()
    path.chmod(0o600)
    assert name() == before
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1000))
    assert name() != before
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert name() == before


def test_a_mapped_array_that_can_be_written_counts_by_its_values(tmp_path):
    mapped = np.memmap(tmp_path / "map.raw", "f4", "w+", shape=(4, 3))
    x, names = da.ones((2, 4, 3), chunks=1), set()
    for value in (1, 2):
        mapped[:] = value  # the file has its old time
        names.add(DataNames().name(x.map_blocks(np.multiply, mapped)))
    assert len(names) == 2


def test_data_that_only_a_cluster_has_are_refused(client):
    array = client.persist(da.ones((4, 3, 3), chunks=1) + 1)
    with pytest.raises(UnnamedError):
        DataNames().name(array)


PROCESSORS = {
    "this one": {},
    "numba's generic": {"NUMBA_CPU_NAME": "generic"},
    "BLAS without AVX-512": {"OPENBLAS_CORETYPE": "Haswell"},
    "BLAS without AVX": {"OPENBLAS_CORETYPE": "Prescott"},
    "NumPy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
}


@pytest.mark.full
def test_the_vectors_of_the_processor_count():
    """They decide the last bits of sums."""
    program = "from udfdask.base.names.origins import processor; print(processor())"
    found = {
        name: run_python("-c", program, env=variables).stdout
        for name, variables in PROCESSORS.items()
    }
    own = found.pop("this one")
    same = {name for name, processor in found.items() if processor == own}
    # a processor may be one of these
    assert same <= {"BLAS without AVX-512", "NumPy without AVX-512"}, found


def test_many_blocks_are_named_as_one_layer(monkeypatch):
    """Names of blockwise layers need no tasks."""
    from dask.blockwise import Blockwise

    def fail(self):
        raise AssertionError("tasks were made")

    monkeypatch.setattr(Blockwise, "_dict", property(fail))
    assert DataNames().name(da.ones((10**5, 2, 2), chunks=(1, 2, 2)) + 1)
