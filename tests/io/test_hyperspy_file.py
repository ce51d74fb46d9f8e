"""Files of instruments: which signal, which axes, and what is said of those nobody can read."""

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io import open_file
from udfdask.udfs import SumUDF

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")


@pytest.mark.parametrize("chunks", [None, (1, 10, 6, 8)])
def test_signal_axes_that_are_not_the_last_ones(tmp_path, values, chunks):
    signal = hs.signals.Signal2D(values)
    for axis, name in zip(signal.axes_manager._axes, ["y", "ky", "kx", "x"], strict=True):
        axis.name, axis.units, axis.navigate = name, "nm", name in "yx"
    signal.save(tmp_path / "a.hspy")
    opened = open_file(tmp_path / "a.hspy", chunks=chunks)
    assert_eq(opened.array, values.transpose(0, 3, 1, 2))
    assert [axis.name for axis in opened.axes] == ["y", "x", "ky", "kx"]
    if chunks:
        assert opened.array.chunks == ((1, 1, 1, 1), (10,), (6,), (8,))
    total = ud.run_udf(opened, SumUDF())
    np.testing.assert_array_equal(total["intensity"].compute(), values.sum(axis=(0, 3)))


@pytest.fixture
def several(tmp_path, values):
    """A file with a scan, an image of the same name, and an image of another."""
    signals = [hs.signals.Signal2D(values), *(hs.signals.Signal2D(values[0, i]) for i in (1, 2))]
    for signal, title in zip(signals, ["map", "map", "survey"], strict=True):
        signal.metadata.General.title = title
    path = tmp_path / "all.hspy"
    for number, signal in enumerate(signals):
        signal.save(tmp_path / f"{number}.hspy")
    h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
    with h5py.File(tmp_path / "0.hspy") as first, h5py.File(path, "w") as f:
        f.attrs.update(first.attrs)
        for number in range(3):
            with h5py.File(tmp_path / f"{number}.hspy") as one:
                (name,) = one["Experiments"]
                one.copy(one[f"Experiments/{name}"], f, name=f"Experiments/{number}")
    return path


def test_the_signal_with_navigation_axes_is_meant(several, values):
    opened = open_file(several)
    assert_eq(opened.array, values)
    assert opened.reader == "HyperSpy (hspy), signal 0"


@pytest.mark.parametrize("dataset", [2, "2", "survey"])
def test_the_signal_asked_for(several, values, dataset):
    assert_eq(open_file(several, dataset=dataset).array, values[0, 2])


@pytest.mark.parametrize("dataset", [3, -1, "3", "nothing"])
def test_a_signal_that_is_not_there(several, dataset):
    match = rf"no signal {dataset!r} in all\.hspy: pass a number or title from 0 'map' \(4, 6"
    with pytest.raises(ArgumentValueError, match=match):
        open_file(several, dataset=dataset)


@pytest.mark.parametrize(("name", "content"), [("a.nc", b"CDF\x01"), ("a.foo", b"123")])
def test_a_suffix_that_nothing_reads(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"{name} cannot be read.*sig_shape.*xarray"):
        open_file(tmp_path / name)
    if name == "a.foo":
        with pytest.raises(FileFormatError, match="suffix"):
            open_file(tmp_path / name)
