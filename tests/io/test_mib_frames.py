"""Frames of .mib files that tasks map: the values that HyperSpy reads."""

import itertools

import numpy as np
import pytest

from udfdask.io import hyperspy_file, mib_frames, open_file

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")

KINDS = {"U08": ">u1", "U16": ">u2", "U32": ">u4"}


def write(path, values, *, kind):
    """Write frames of the shape (*nav, rows, columns) as Merlin does."""
    *nav, rows, columns = values.shape
    frames = values.reshape(-1, rows, columns).astype(KINDS[kind])
    content = b""
    for number, frame in enumerate(frames):
        head = f"MQ1,{number + 1:06},00384,01,{columns:04},{rows:04},{kind},   1x1,01,"
        head += f"2024-07-02 11:46:43.0,0.001,0,2024-07-02T11:46:43.{number:09}Z,100000ns,6,"
        content += head.encode().ljust(384, b"\0") + frame.tobytes()
    path.write_bytes(content)
    described = f"HDR,\t\nFrames in Acquisition (Number):\t{len(frames)}\n"
    described += f"Frames per Trigger (Number):\t{nav[-1]}\nEnd\t\n"
    path.with_suffix(".hdr").write_text(described)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_hyperspy(tmp_path, monkeypatch, kind):
    for number, nav in enumerate([(3, 4), (5, 1), (1, 3), (7,)]):
        values = np.random.default_rng(number).integers(0, 250, (*nav, 6, 8))
        path = write(tmp_path / f"{number}.mib", values, kind=kind)
        expected = hs.load(path, lazy=True).data.compute(scheduler="synchronous")
        assert expected.size == values.size
        for step, part in itertools.product([1, 2, -1], [3, 5, -1]):
            chunks = (*[step] * (expected.ndim - 2), part, -1)
            array = open_file(path, chunks=chunks).array
            with monkeypatch.context() as patch:
                patch.setattr(hyperspy_file, "compute_here", None)  # tasks of HyperSpy call it
                found = array.compute(scheduler="synchronous")
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == array.dtype == expected.dtype
            index = (*[-1] * (expected.ndim - 3), slice(None, None, -2))
            np.testing.assert_array_equal(
                array[index].compute(scheduler="synchronous"), expected[index]
            )


def test_frames_in_another_order_are_left_to_hyperspy(tmp_path, monkeypatch):
    values = np.random.default_rng(1).integers(0, 250, (2, 3, 6, 8))
    path = write(tmp_path / "a.mib", values, kind="U16")
    monkeypatch.setattr(mib_frames, "_address", lambda values: 0)  # the place is wrong by a header
    found = open_file(path).array.compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, values[..., ::-1, :])
