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

# name, navigation shape and signal shape as in HyperSpy, units
RECORDINGS = [
    ("001_4x2_6bit.mib", (4, 2), (256, 256), ["", "", "", ""]),
    (
        "002_merlin_test_roi_sig256x128_nav4x2_hot_pixel_52x_39y.mib",
        (4, 2),
        (256, 128),
        ["", "", "", ""],
    ),
    ("bcf_v2_50x50px.bcf", (50, 50), (2048,), ["µm", "µm", "keV"]),
    ("test1.blo", (2, 3), (144, 144), ["nm", "nm", "cm", "cm"]),
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


@pytest.mark.parametrize(
    ("name", "nav", "sig", "units"),
    RECORDINGS,
    ids=[Path(r[0]).suffix + r[0][2] for r in RECORDINGS],
)
def test_from_the_file_to_a_file(name, nav, sig, units, tmp_path):
    signal = load(name)
    manager = signal.axes_manager
    assert [axis.units for axis in manager._axes] == units
    lazy = signal.udf.run_udf([SumUDF(), SumSigUDF(), StdDevUDF()])
    assert all(found._lazy for result in lazy for found in result.values())
    total, image, spread = ud.compute(*lazy, scheduler="synchronous")
    data = signal.data.compute(scheduler="synchronous")
    n_nav = len(nav)
    np.testing.assert_array_equal(
        total["intensity"].data, data.sum(axis=tuple(range(n_nav)), dtype="uint64")
    )
    np.testing.assert_array_equal(
        image["intensity"].data, data.sum(axis=tuple(range(n_nav, data.ndim)), dtype="uint64")
    )
    assert total["intensity"].axes_manager.signal_shape == sig
    assert image["intensity"].axes_manager.navigation_shape == nav
    same_axes(total["intensity"].axes_manager.signal_axes, manager.signal_axes)
    same_axes(spread["std"].axes_manager.signal_axes, manager.signal_axes)
    same_axes(image["intensity"].axes_manager.navigation_axes, manager.navigation_axes)
    for signal_type, found in [
        (signal.metadata.Signal.signal_type, total["intensity"]),
        ("", image["intensity"]),
        (signal.metadata.Signal.signal_type, spread["std"]),
    ]:
        assert found.metadata.Signal.signal_type == signal_type
        assert found.metadata.General.original_filename == Path(name).name
        path = tmp_path / "saved.hspy"
        found.save(path, overwrite=True)
        back = hs.load(path)
        np.testing.assert_array_equal(back.data, found.data)
        same_axes(back.axes_manager._axes, found.axes_manager._axes)
        instrument = found.metadata.Acquisition_instrument.as_dictionary()
        assert back.metadata.Acquisition_instrument.as_dictionary() == instrument
