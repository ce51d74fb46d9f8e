"""Frames in files of instruments, in any chunks: the values that HyperSpy reads."""

import itertools

import numpy as np
import pytest

from damaging import LEAVES_FILES_OPEN
from instrument_files import KINDS, write_empad, write_mib
from udfdask.errors import FileFormatError
from udfdask.io import hyperspy_file, open_file

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")

pytestmark = LEAVES_FILES_OPEN  # HyperSpy keeps TIFF files open

STACK = np.random.default_rng(7).integers(0, 999, (6, 20, 30)).astype(np.uint16)


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_hyperspy(tmp_path, kind):
    for number, nav in enumerate([(3, 4), (5, 1), (1, 3), (7,)]):
        values = np.random.default_rng(number).integers(0, 250, (*nav, 6, 8))
        path = write_mib(tmp_path / f"{number}.mib", values, kind=kind)
        expected = hs.load(path, lazy=True).data.compute(scheduler="synchronous")
        assert expected.size == values.size
        for step, part in itertools.product([1, -1], [5, -1]):
            chunks = (*[step] * (expected.ndim - 2), part, -1)
            array = open_file(path, chunks=chunks).array
            assert max(array.chunks[0]) == (1 if step == 1 else array.shape[0])
            found = array.compute(scheduler="synchronous")
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == array.dtype == expected.dtype
            index = (*[-1] * (expected.ndim - 3), slice(None, None, -2))
            np.testing.assert_array_equal(
                array[index].compute(scheduler="synchronous"), expected[index]
            )


def test_frames_of_an_empad(tmp_path):
    values = np.random.default_rng(6).random((2, 3, 128, 128)).astype(np.float32)
    path = write_empad(tmp_path, values)
    opened = open_file(path, chunks=(1, 2, 100, -1))
    assert (opened.reader, opened.sig_dims) == ("HyperSpy (empad)", 2)
    np.testing.assert_array_equal(opened.array.compute(scheduler="synchronous"), values)
    raw = tmp_path / "scan_x3_y2.raw"
    raw.write_bytes(raw.read_bytes()[: -3 * 128 * 4])  # the last 2 rows are no pixels
    with pytest.raises(FileFormatError, match="has changed"):
        opened.array.compute(scheduler="synchronous")


TIFFS = {
    "plain": {},
    "big-endian": {"byteorder": ">"},
    "deflated": {"compression": "zlib"},
    "deflated pages": {"compression": "zlib", "metadata": None},
    "ImageJ": {"imagej": True},
}


@pytest.mark.parametrize("name", TIFFS)
def test_a_tiff_stack(tmp_path, monkeypatch, name):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, STACK, photometric="minisblack", **TIFFS[name])
    opened = open_file(path, chunks=(2, 13, -1))
    assert opened.sig_dims == 2
    assert "None" not in [axis.name for axis in opened.axes]
    assert opened.array.chunks == ((2, 2, 2), (13, 7), (30,))
    monkeypatch.setattr(hyperspy_file, "_loaded", None)  # tasks of HyperSpy call it
    found = opened.array[::-2, 3:].compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, STACK[::-2, 3:])


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_tiff_of_two_stacks(tmp_path, compression):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for stack in (STACK, STACK[::-1]):
            file.write(stack, compression=compression, metadata={"axes": "ZYX"})
    for number, stack in enumerate((STACK, STACK[::-1])):
        array = open_file(tmp_path / "a.tif", dataset=number).array
        np.testing.assert_array_equal(array.compute(scheduler="synchronous"), stack)
