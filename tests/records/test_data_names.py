"""Names of data and runs: equal in every process, different for different data."""

import os
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import named_data
from making import LATE
from udfdask.io import open_file
from udfdask.names.naming import UnnamedError
from udfdask.records.data_names import DataNames

SUPPORT = Path(named_data.__file__).parent


def printed(folder, seed):
    """What another process prints."""
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    program = subprocess.run(
        [sys.executable, SUPPORT / "named_data.py", folder],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
    )
    assert not program.returncode, program.stderr
    return program.stdout


def test_names_are_equal_in_every_process(tmp_path):
    (tmp_path / "own_udf.py").write_text(named_data.MODULE.format(scale=2))
    first, second = (printed(tmp_path, seed) for seed in ("1", "2"))
    assert first == second
    (tmp_path / "own_udf.py").write_text(named_data.MODULE.format(scale=3))
    third = printed(tmp_path, "1")
    changed = [
        one.partition(" ")[0]
        for one, other in zip(first.splitlines(), third.splitlines(), strict=True)
        if one != other
    ]
    assert changed == ["own"]  # a global variable that a function of the UDF uses


def test_different_data_have_different_names(tmp_path):
    arrays = named_data.arrays(tmp_path)
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


def test_data_without_a_lasting_name_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", data=np.zeros((4, 3, 3)))
        array = da.from_array(dataset, chunks=1)
        with pytest.raises(UnnamedError):
            DataNames().name(array)


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
    program = "from udfdask.records.record_names import processor; print(processor())"
    found = {}
    for name, variables in PROCESSORS.items():
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found[name] = done.stdout
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
