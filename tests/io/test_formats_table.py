"""Formats of instruments: equal to HyperSpy's own reading, and the table of them in the docs.

`UDFDASK_TEST_DATA` is the folder of recordings, which are not part of the repository.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from damaging import LEAVES_FILES_OPEN
from instrument_files import write_blo, write_empad, write_mib
from udfdask.errors import FileFormatError
from udfdask.geometry.labels import read_axis
from udfdask.io import open_file
from udfdask.io.hdf5 import HDF5Dataset
from udfdask.io.hyperspy_file import HyperSpyArray, TiffSeries
from udfdask.io.memmap import MappedArray

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
pytestmark = [
    *LEAVES_FILES_OPEN,  # HyperSpy keeps files open that it reads lazily
    pytest.mark.filterwarnings("ignore::UserWarning:rsciio"),  # units that a format cannot hold
]

FOLDER = os.environ.get("UDFDASK_TEST_DATA")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "user-guide" / "data" / "files.md"
FRAMES = np.random.default_rng(8).integers(0, 250, (2, 3, 8, 8))
RECORDINGS = {"001_4x2_6bit.mib": None, "bcf_v2_50x50px.bcf": 20e3, "test1.blo": 200e3}
"""Files and their voltage."""


def signal(values, sig_dims=2):
    made = (hs.signals.Signal2D if sig_dims == 2 else hs.signals.Signal1D)(values)
    for number, axis in enumerate(made.axes_manager.navigation_axes):
        axis.scale, axis.units = 0.5 + number, "nm"
    for axis in made.axes_manager.signal_axes:
        axis.scale, axis.units = 0.25, "1/nm" if sig_dims == 2 else "eV"
    return made


def saved(values, sig_dims=2):
    return lambda path: signal(values, sig_dims).save(path)


def tiff(**options):
    return lambda path: tifffile.imwrite(path, FRAMES[0].astype(np.uint16), **options)


MADE = {
    "a.blo": lambda path: write_blo(path, FRAMES.astype(np.uint8)),
    "a.hspy": saved(FRAMES.astype(np.uint16)),
    "a.mib": lambda path: write_mib(path, FRAMES, kind="U16"),
    "a.msa": saved(np.arange(16.0), 1),
    "a.prz": saved(FRAMES[0].astype(np.uint16)),
    "a.rpl": saved(FRAMES[0].astype(np.uint16)),
    "a.sur": saved(FRAMES[0].astype(float), 1),
    "a.tif": tiff(photometric="minisblack"),
    "b.tif": tiff(photometric="minisblack", compression="zlib"),
    "c.tif": lambda path: tifffile.imwrite(path, np.zeros((8, 8, 3), "u1"), photometric="rgb"),
    "a.unf": saved(FRAMES[0, 0].astype(np.float32)),
    "scan.xml": lambda path: write_empad(path.parent, np.ones((2, 3, 128, 128))),
}
NOTES = {"b.tif": ", compressed", "c.tif": ", colors"}


def how_it_is_read(opened):
    if "read at once" in opened.reader:
        return "at once"
    tasks = dict(opened.array.dask).values()
    sources = [getattr(a, "value", a) for task in tasks for a in getattr(task, "args", ())]
    kinds = {
        HDF5Dataset: "lazily, by stored chunks",
        HyperSpyArray: "lazily, by HyperSpy",
        MappedArray: "lazily, mapped",
        TiffSeries: "lazily, by page",
    }
    return next(kinds[type(each)] for each in sources if type(each) in kinds)


def line_of(path, origin):
    """The line of a file in the table, after it has been compared with HyperSpy's own reading."""
    what = f"`{path.suffix}`{NOTES.get(path.name, '')}"
    try:
        opened = open_file(path)
    except FileFormatError:
        return f"| {what} | HyperSpy | refused: not numbers | {origin} |"
    file_format = {"file_format": "EMPAD"} if path.suffix == ".xml" else {}
    loaded = hs.load(path, signal_type="", **file_format)
    loaded = loaded if isinstance(loaded, list) else [loaded]
    number = int(opened.reader.partition(", signal ")[2] or 0)
    assert_like_hyperspy(opened, loaded[number])
    name = opened.reader.removeprefix("HyperSpy (").partition(")")[0].partition(",")[0]
    return f"| {what} | {name} | {how_it_is_read(opened)} | {origin} |"


def assert_like_hyperspy(opened, loaded):
    """Equal values, sums, shapes, positions and units."""
    manager = loaded.axes_manager
    axes = (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])
    expected = loaded.data.transpose([axis.index_in_array for axis in axes])
    values = opened.array.compute(scheduler="synchronous")
    np.testing.assert_array_equal(values, expected)
    assert values.sum() == expected.sum()
    assert opened.sig_dims == manager.signal_dimension
    for ours, axis, size in zip(opened.axes, axes, expected.shape, strict=True):
        assert ours.unit == read_axis(axis).unit
        np.testing.assert_allclose(ours.positions(size), axis.axis)


@pytest.mark.parametrize("name", MADE)
def test_formats_that_hyperspy_writes(tmp_path, name):
    MADE[name](tmp_path / name)
    assert line_of(tmp_path / name, "a test") in PAGE.read_text("utf-8").splitlines()


@pytest.mark.skipif(FOLDER is None, reason="UDFDASK_TEST_DATA names no folder of recordings")
@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_of_instruments(name):
    assert line_of(Path(FOLDER) / name, "an instrument") in PAGE.read_text("utf-8").splitlines()
    assert open_file(Path(FOLDER) / name).voltage == RECORDINGS[name]
