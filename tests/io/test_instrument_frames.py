"""Frames in files of instruments that tasks read themselves: the values that HyperSpy reads."""

import itertools

import numpy as np
import pytest

from damaging import LEAVES_FILES_OPEN
from instrument_files import KINDS, write_blo, write_empad, write_mib
from udfdask.errors import FileFormatError
from udfdask.io import hyperspy_file, instrument_frames, open_file

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")

pytestmark = LEAVES_FILES_OPEN  # HyperSpy keeps TIFF files open


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_hyperspy(tmp_path, monkeypatch, kind):
    for number, nav in enumerate([(3, 4), (5, 1), (1, 3), (7,)]):
        values = np.random.default_rng(number).integers(0, 250, (*nav, 6, 8))
        path = write_mib(tmp_path / f"{number}.mib", values, kind=kind)
        expected = hs.load(path, lazy=True).data.compute(scheduler="synchronous")
        assert expected.size == values.size
        for step, part in itertools.product([1, 2, -1], [3, 5, -1]):
            chunks = (*[step] * (expected.ndim - 2), part, -1)
            array = open_file(path, chunks=chunks).array
            with monkeypatch.context() as patch:
                patch.setattr(hyperspy_file, "_loaded", None)  # tasks of HyperSpy call it
                found = array.compute(scheduler="synchronous")
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == array.dtype == expected.dtype
            index = (*[-1] * (expected.ndim - 3), slice(None, None, -2))
            np.testing.assert_array_equal(
                array[index].compute(scheduler="synchronous"), expected[index]
            )


def test_frames_in_another_order_are_left_to_hyperspy(tmp_path, monkeypatch):
    values = np.random.default_rng(1).integers(0, 250, (2, 3, 6, 8))
    path = write_mib(tmp_path / "a.mib", values, kind="U16")
    monkeypatch.setattr(
        instrument_frames, "_address", lambda values: 0
    )  # the place is wrong by a header
    found = open_file(path).array.compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, values[..., ::-1, :])


def without_hyperspy(array, monkeypatch):
    """The values, which tasks must read without HyperSpy."""
    with monkeypatch.context() as patch:
        patch.setattr(hyperspy_file, "_loaded", None)  # tasks of HyperSpy call it
        patch.setattr(hyperspy_file, "_load", None)
        return array.compute(scheduler="synchronous")


@pytest.mark.parametrize("chunks", [None, (2, 1, 5, 8)])
def test_a_block_file_is_mapped(tmp_path, monkeypatch, chunks):
    values = np.random.default_rng(5).integers(0, 250, (3, 4, 8, 8)).astype(np.uint8)
    write_blo(tmp_path / "a.blo", values)
    array = open_file(tmp_path / "a.blo", chunks=chunks).array
    np.testing.assert_array_equal(without_hyperspy(array, monkeypatch), values)


def test_frames_of_an_empad(tmp_path, monkeypatch):
    values = np.random.default_rng(6).random((2, 3, 128, 128)).astype(np.float32)
    path = write_empad(tmp_path, values)
    opened = open_file(path, chunks=(1, 2, 100, -1))
    assert (opened.reader, opened.sig_dims) == ("HyperSpy (EMPAD)", 2)
    np.testing.assert_array_equal(without_hyperspy(opened.array, monkeypatch), values)
    raw = tmp_path / "scan_x3_y2.raw"
    content = raw.read_bytes()
    raw.write_bytes(content[: -3 * 128 * 4])  # the last 2 rows are no pixels
    with pytest.raises(FileFormatError, match="has changed"):
        opened.array.compute(scheduler="synchronous")
    with pytest.raises(FileFormatError, match=rf"{raw} has .*Copy it again"):
        open_file(path).array.compute(scheduler="synchronous")
    raw.unlink()
    with pytest.raises(FileFormatError, match=r"scan_x3_y2\.raw"):
        open_file(path).array.compute(scheduler="synchronous")


STACK = np.random.default_rng(7).integers(0, 999, (6, 20, 30)).astype(np.uint16)

TIFFS = {
    "plain": {},
    "big-endian": {"byteorder": ">"},
    "deflated": {"compression": "zlib"},
    "deflated pages": {"compression": "zlib", "metadata": None},
    "one page, deflated": {"compression": "zlib", "volumetric": True, "tile": (1, 16, 16)},
    "ImageJ": {"imagej": True},
    "ImageJ, deflated": {"imagej": True, "compression": "zlib", "byteorder": "<"},
}


def write_tiff(path, values, options):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
    tifffile.imwrite(path, values, photometric="minisblack", **options)
    return path


@pytest.mark.parametrize("name", TIFFS)
def test_a_tiff_stack_is_read_by_page(tmp_path, monkeypatch, name):
    path = write_tiff(tmp_path / "a.tif", STACK, TIFFS[name])
    opened = open_file(path, chunks=(2, 13, -1))
    assert opened.sig_dims == 2
    assert "None" not in [axis.name for axis in opened.axes]
    if not name.startswith("one page"):
        np.testing.assert_array_equal(without_hyperspy(opened.array, monkeypatch), STACK)
    found = opened.array[::-2, 3:].compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, STACK[::-2, 3:])


def test_a_task_decodes_only_its_pages(tmp_path, monkeypatch):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
    values = STACK.reshape(2, 3, 20, 30)
    path = write_tiff(tmp_path / "a.tif", values, TIFFS["deflated"])
    array = open_file(path, chunks=(1, 2, -1, -1)).array
    read, keys = tifffile.imread, []

    def recorded(*args, key, **kwargs):
        keys.append(key)
        return read(*args, key=key, **kwargs)

    monkeypatch.setattr(tifffile, "imread", recorded)
    np.testing.assert_array_equal(array.compute(scheduler="synchronous"), values)
    assert sorted(keys) == [[0, 1], [2], [3, 4], [5]]
