"""Recordings of real instruments: loaded lazily by HyperSpy, processed, saved and read back."""

import os
from pathlib import Path

import numpy as np
import pytest

import udfdask as ud
from signal_cases import axis_facts
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

FOLDER = os.environ.get("UDFDASK_TEST_DATA")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(FOLDER is None, reason="UDFDASK_TEST_DATA names no folder of recordings"),
]

RECORDINGS = [
    "001_4x2_6bit.mib",
    "002_merlin_test_roi_sig256x128_nav4x2_hot_pixel_52x_39y.mib",
    "bcf_v2_50x50px.bcf",
    "test1.blo",
]


def load(name):
    """The signal of a file that has navigation axes."""
    loaded = hs.load(Path(FOLDER) / name, lazy=True)
    signals = loaded if isinstance(loaded, list) else [loaded]
    (found,) = [s for s in signals if s.axes_manager.navigation_dimension]
    return found


def same_axes(made, source):
    pairs = zip(made, source, strict=True)
    ours = [{**axis_facts(axis), "navigate": None} for axis, _ in pairs]
    assert ours == [{**axis_facts(axis), "navigate": None} for axis in source]


@pytest.mark.parametrize("name", RECORDINGS, ids=lambda name: Path(name).suffix + name[2])
def test_from_the_file_to_a_file(name, tmp_path):
    signal = load(name)
    axes, n_nav = signal.axes_manager, signal.axes_manager.navigation_dimension
    lazy = signal.udf.run_udf([SumUDF(), SumSigUDF(), StdDevUDF()])
    assert all(found._lazy for result in lazy for found in result.values())
    total, image, spread = ud.compute(*lazy, scheduler="synchronous")
    total, image, spread = total["intensity"], image["intensity"], spread["std"]
    data = signal.data.compute(scheduler="synchronous").astype("uint64")
    np.testing.assert_array_equal(total.data, data.sum(axis=tuple(range(n_nav))))
    np.testing.assert_array_equal(image.data, data.sum(axis=tuple(range(n_nav, data.ndim))))
    signal_type = signal.metadata.Signal.signal_type
    for found, kept, kind in [
        (total, "signal_axes", signal_type),
        (image, "navigation_axes", ""),
        (spread, "signal_axes", signal_type),
    ]:
        same_axes(getattr(found.axes_manager, kept), getattr(axes, kept))
        assert found.metadata.Signal.signal_type == kind
        assert found.metadata.General.original_filename == Path(name).name
        path = tmp_path / "saved.hspy"
        found.save(path, overwrite=True)
        back = hs.load(path)
        np.testing.assert_array_equal(back.data, found.data)
        same_axes(back.axes_manager._axes, found.axes_manager._axes)
        instrument = found.metadata.Acquisition_instrument.as_dictionary()
        assert back.metadata.Acquisition_instrument.as_dictionary() == instrument
