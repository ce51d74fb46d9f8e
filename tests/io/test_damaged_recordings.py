"""Damaged files of instruments, read through HyperSpy: Merlin, blocks, TIFF and its own."""

import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaging import FUZZ, LEAVES_FILES_OPEN, assert_same, damaged, outcome
from udfdask.errors import FileFormatError
from udfdask.io import open_file

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
pytestmark = [pytest.mark.full, *LEAVES_FILES_OPEN]

FOLDER = os.environ.get("UDFDASK_TEST_DATA")
needs_recordings = pytest.mark.skipif(
    FOLDER is None, reason="UDFDASK_TEST_DATA names no folder of recordings"
)

HEADER = 384
HDR = """HDR,\t
Frames in Acquisition (Number):\t{frames}
Frames per Trigger (Number):\t{line}
End\t
"""


def mib_frame(number, values):
    """A frame of 4 x 6 pixels as Merlin writes it."""
    stamp = f"2024-07-02T11:46:43.{number:09}Z"
    head = f"MQ1,{number:06},00384,01,0006,0004,U08,   1x1,01,2024-07-02 11:46:43.0,0.001,0,"
    head += f"{stamp},100000ns,6,"
    return head.encode().ljust(HEADER, b"\0") + values.tobytes()


FRAMES = np.random.default_rng(2).integers(0, 60, (6, 4, 6)).astype(np.uint8)


@pytest.fixture
def mib(tmp_path):
    """A scan of 2 lines of 3 frames."""
    path = tmp_path / "scan.mib"
    path.write_bytes(b"".join(mib_frame(n, frame) for n, frame in enumerate(FRAMES)))
    path.with_suffix(".hdr").write_text(HDR.format(frames=6, line=3))
    return path


def test_a_whole_mib(mib):
    assert_same(outcome(mib), np.flip(FRAMES.reshape(2, 3, 4, 6), axis=-2))


def test_a_hdr_that_knows_no_number(mib):
    """As of a continuous acquisition: all frames, one after another."""
    mib.with_suffix(".hdr").write_text(HDR.format(frames=0, line=0))
    assert_same(outcome(mib), np.flip(FRAMES, axis=-2))


def write_blo(path):
    """A scan of 2 x 3 frames of 4 x 4 pixels."""
    numbers = (b"IMGBLO", 0x0102, 256, 262, 0, 4, 0, 3, 2, 0, 1.0, 1.0, 200_000, 50, 8, 45_000.0)
    header = struct.pack("<6sHIIIHHHHHddIHId", *numbers)
    frames = np.arange(2 * 3 * 16, dtype=np.uint8).reshape(6, 16)
    blocks = b"".join(
        b"\xaa\x55" + struct.pack("<I", n) + f.tobytes() for n, f in enumerate(frames)
    )
    path.write_bytes(header.ljust(262, b"\0") + blocks)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of each format."""
    folder = tmp_path_factory.mktemp("whole")
    write_blo(folder / "a.blo")
    signal = hs.signals.Signal2D(np.arange(2 * 3 * 64, dtype=np.uint16).reshape(2, 3, 8, 8))
    signal.save(folder / "a.hspy")
    hs.signals.Signal2D(np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8)).save(folder / "a.tif")
    import tifffile

    tifffile.imwrite(
        folder / "b.tif",
        np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8),
        compression="zlib",
        photometric="minisblack",
    )
    return folder


def check_blo(path):
    values = outcome(path)
    if values is not None:
        content = path.read_bytes()
        offset = int.from_bytes(content[12:16], "little")
        size = int.from_bytes(content[20:22], "little")
        count = values.size // size**2
        frame = [("head", "V6"), ("data", "u1", (size, size))]
        stored = np.frombuffer(content, frame, count, offset)["data"]
        np.testing.assert_array_equal(values.reshape(stored.shape), stored)
    return values


def test_a_blo_of_each_length(whole, tmp_path):
    content = (whole / "a.blo").read_bytes()
    path = tmp_path / "a.blo"
    path.write_bytes(content)
    assert check_blo(path) is not None
    for length in [*range(0, 300, 13), *range(300, len(content) - 1, 211), len(content) - 1]:
        path.write_bytes(content[:length])
        assert outcome(path) is None, length


@FUZZ
@given(data=st.data())
def test_a_damaged_blo(whole, tmp_path, data):
    path = tmp_path / "a.blo"
    path.write_bytes(data.draw(damaged((whole / "a.blo").read_bytes(), front=60)))
    check_blo(path)


def test_a_chunk_of_a_hspy_that_cannot_be_inflated(whole, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
    path = tmp_path / "a.hspy"
    shutil.copy(whole / "a.hspy", path)
    with h5py.File(path) as file:
        chunk = file["Experiments/__unnamed__/data"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 4 : chunk.byte_offset + 12] = bytes(8)
    path.write_bytes(content)
    array = open_file(path).array
    with pytest.raises(FileFormatError, match=rf"{path}, dataset .* at .* as HDF5: .*complete"):
        array.compute(scheduler="synchronous")


def test_values_of_the_whole_are_right(whole):
    assert_same(outcome(whole / "a.hspy"), np.arange(2 * 3 * 64, dtype="u2").reshape(2, 3, 8, 8))
    for name in ("a.tif", "b.tif"):
        assert_same(outcome(whole / name), np.arange(4 * 64, dtype="u2").reshape(4, 8, 8))


@needs_recordings
def test_a_recording_cut_short(tmp_path):
    content = (Path(FOLDER) / "test1.blo").read_bytes()
    path = tmp_path / "test1.blo"
    for size in [1, 7, 8, 9, 100, 384, 5000, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:size])
        assert outcome(path) is None, size
