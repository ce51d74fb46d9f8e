"""Files that change after they were opened: an error with the path, never other numbers."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from dask.core import flatten

from udfdask.errors import FileFormatError
from udfdask.io import from_raw, from_raw_csr, open_file
from udfdask.io.file_identity import FileIdentity

SHAPE = (3, 4, 6, 6)
CHUNKS = (1, 4, 6, 6)


def scan(seed=1):
    """Frames that hold as many zeros whatever the seed, so that sparse files have equal sizes."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(1, 200, SHAPE, dtype=np.uint8)
    frames.reshape(12, -1)[:, rng.permutation(36)[:10]] = 0
    return frames


def write_raw(path, values):
    values.tofile(path)


def write_hdf5(path, values):
    h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
    with h5py.File(path, "w") as file:
        file.create_dataset("scan", data=values, chunks=(1, 1, *values.shape[2:]))


def write_signal(path, values):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
    signal = hs.signals.Signal2D(values)
    for axis in signal.axes_manager._axes:
        axis.units = "cm" if axis in signal.axes_manager.signal_axes else "nm"
    signal.save(path, overwrite=True)


def write_zarr(path, values):
    zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
    folder = path.parent
    array = zarr.open_array(
        str(folder), mode="w", shape=values.shape, chunks=CHUNKS, dtype=values.dtype
    )
    array[...] = values
    assert path.is_file()


def write_csr(path, values):
    sparse = pytest.importorskip("scipy.sparse", reason="scipy comes with sparse")
    pytest.importorskip("sparse", reason="sparse is an extra")
    matrix = sparse.csr_array(values.reshape(values.shape[0] * values.shape[1], -1))
    for name, dtype in (("indptr", "<i8"), ("indices", "<i4"), ("data", "<u1")):
        if name == path.name or not (path.parent / name).exists():
            getattr(matrix, name).astype(dtype).tofile(path.parent / name)


def open_csr(path):
    array = from_raw_csr(
        *(path.parent / name for name in ("indptr", "indices", "data")),
        nav_shape=SHAPE[:2],
        sig_shape=SHAPE[2:],
        indptr_dtype="<i8",
        indices_dtype="<i4",
        dtype="<u1",
        chunks=CHUNKS,
    )
    return array.map_blocks(lambda block: block.todense(), meta=np.empty((0,) * 4, "u1"))


def open_raw(path):
    return from_raw(path, nav_shape=SHAPE[:2], sig_shape=SHAPE[2:], dtype="u1", chunks=CHUNKS)


def open_any(path):
    return open_file(path, chunks=CHUNKS).array


def open_folder(path):
    return open_any(path.parent)


READERS = {
    "scan.raw": (write_raw, open_raw),
    "scan.npy": (np.save, open_any),
    "indptr": (write_csr, open_csr),
    "indices": (write_csr, open_csr),
    "data": (write_csr, open_csr),
    "scan.h5": (write_hdf5, open_any),
    "zarr.json": (write_zarr, open_folder),
    "scan.hspy": (write_signal, open_any),
    "scan.blo": (write_signal, open_any),
}


@pytest.fixture(params=READERS)
def recording(request, tmp_path):
    """A file, what writes it anew, and what opens it."""
    folder = tmp_path / "recording"
    folder.mkdir()
    write, open_it = READERS[request.param]
    path = folder / request.param
    write(path, scan())
    return path, write, open_it


def write_again(path, write):
    write(path, scan(2))
    state = path.stat()  # the clock of files is too slow for a test
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))


def put_in_place(path, write):
    """Another file of the same size and time."""
    state = path.stat()
    path.rename(path.with_name("before"))
    path.write_bytes(path.with_name("before").read_bytes())
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def cut(path, write):
    os.truncate(path, path.stat().st_size // 2)


def delete(path, write):
    path.unlink()


@pytest.mark.parametrize("change", [write_again, put_in_place, cut, delete])
def test_a_change_is_an_error_with_the_path(recording, change):
    path, write, open_it = recording
    array = open_it(path)
    np.testing.assert_array_equal(array.compute(scheduler="threads"), scan())
    change(path, write)
    with pytest.raises(FileFormatError, match=str(path)):
        array.compute(scheduler="threads")


def test_opened_again_it_is_read_anew_under_another_name(recording):
    path, write, open_it = recording
    before = open_it(path)
    assert open_it(path).name == before.name
    kept = before.persist(scheduler="threads")
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    write_again(path, write)
    after = open_it(path)
    assert not set(before.dask.layers) & set(after.dask.layers)
    assert not set(flatten(after.__dask_keys__())) & set(kept.dask)
    np.testing.assert_array_equal(after.compute(scheduler="threads"), scan(2))


def test_permissions_and_further_names_are_no_change(recording):
    path, _, open_it = recording
    array = open_it(path)
    path.chmod(0o444)
    os.link(path, path.with_name("further"))
    np.testing.assert_array_equal(array.compute(scheduler="threads"), scan())


def test_identities_elsewhere(tmp_path):
    """What another node sees of a shared file, and of a copy."""
    path = tmp_path / "scan.raw"
    write_raw(path, scan())
    here = FileIdentity.of(path)
    elsewhere = replace(here, machine="another", inode=here.inode + 1)
    good = [
        here,
        elsewhere,
        replace(elsewhere, ctime_ns=0),
        replace(here, inode=here.inode + 1),  # a FUSE file system that invents inodes
        replace(here, ctime_ns=0),  # chmod
    ]
    bad = [
        replace(here, inode=here.inode + 1, ctime_ns=0),
        replace(here, size=here.size + 1),
        replace(here, mtime_ns=here.mtime_ns + 1),
        replace(elsewhere, mtime_ns=here.mtime_ns + 1),
        replace(elsewhere, size=here.size + 1),
    ]
    for identity in good:
        os.close(identity.open())
    for identity in bad:
        with pytest.raises(FileFormatError, match=r"scan\.raw has changed since it was opened"):
            identity.open()
