"""The suffix of `--out` says what is written: read back by other programs, or refused."""

import matplotlib.image
import numpy as np
import pytest

from commands import call, write_with_axes
from udfdask.geometry.axes import Axis
from udfdask.io import open_file
from udfdask.results.saving import FORMATS
from udfdask.testing import raise_if_dask_computes

AXES = (
    Axis(name="y", unit="nm", scale=0.5, offset=2.0),
    Axis(name="x", unit="nm", scale=0.5),
    Axis(name="ky", unit="mrad", scale=0.1, offset=-0.5),
    Axis(name="kx", unit="mrad", scale=-0.1, offset=0.6),
)
RADIUS = Axis(name="radius", unit="mrad", scale=0.1, offset=0.05)


@pytest.fixture
def file(tmp_path, values):
    pytest.importorskip("h5py", reason="h5py is in the io extra")
    return write_with_axes(tmp_path / "scan.h5", values, AXES)


@pytest.mark.parametrize(
    ("udf", "nav", "sig"),
    [
        ("sumsig", AXES[:2], ()),
        ("sum", (), AXES[2:]),
        ("radialprofile", AXES[:2], (RADIUS,)),
    ],
)
def test_one_signal(file, tmp_path, udf, nav, sig):
    """The axes of outputs are those of the file."""
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
    outputs = [tmp_path / f"a.{suffix}" for suffix in ("hspy", "npz", "nc")]
    call("run", file, "--udf", udf, *(word for out in outputs for word in ("--out", out)))
    signal = hs.load(outputs[0])
    with np.load(outputs[1]) as arrays:
        ((name, expected),) = ((n, a) for n, a in arrays.items() if n.startswith(udf))
    np.testing.assert_array_equal(signal.data, expected)
    assert signal.metadata.General.title == name
    manager, opened = signal.axes_manager, open_file(outputs[2], dataset=name, sig_dims=1)
    assert opened.unit == "counts"
    for found, wanted in (
        (manager.navigation_axes[::-1], nav),
        (manager.signal_axes[::-1], sig),
        (opened.axes, nav + sig),
    ):
        for one, axis in zip(found, wanted, strict=True):
            assert one.name == axis.name
            assert getattr(one, "units", getattr(one, "unit", None)) == axis.unit
            assert (one.scale, one.offset) == pytest.approx((axis.scale, axis.offset))


def test_several_signals(file, values, tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
    options = ["--udf", "sum", "--udf", "sum", "--udf", "stddev", "--udf", "disk:r=2"]
    call("run", file, *options, "--roi", "0:2", "--out", tmp_path / "a.hspy")
    signals = {signal.metadata.General.title: signal for signal in hs.load(tmp_path / "a.hspy")}
    assert {"sum_intensity", "sum_2_intensity", "disk_intensity"} < set(signals)
    np.testing.assert_array_equal(signals["sum_2_intensity"].data, values[:2].sum((0, 1)))
    assert signals["stddev_num_frames"].data.tolist() == [16]
    assert open_file(tmp_path / "a.hspy", dataset="sum_intensity").array.shape == (10, 12)


def test_an_image(file, values, tmp_path):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
    path = tmp_path / "a.tif"
    call("run", file, "--udf", "sumsig", "--out", path)
    image = tifffile.imread(path)
    np.testing.assert_array_equal(image, values.sum((2, 3)))
    assert image.dtype == np.float64  # image programs do not read integers of 64 bits
    with tifffile.TiffFile(path) as opened:
        assert opened.imagej_metadata["unit"] == "nm"
        assert opened.pages[0].tags["XResolution"].value == (2, 1)


REFUSED = [
    ("--out a.hspy --udf noop", "there is no result to write"),
    ("--out a.tif", "holds one result, but there are 2: sum_intensity, sumsig_intensity"),
    ("--out a.tif --udf radialfourier", "radialfourier_coefficients contains complex64 values"),
    ("--out a.tif --udf auto:f=mine.py:squares", "three, and auto_result has 4"),
    (
        "--out a.hspy --udf auto:f=mine.py:nothing,output_shape=(0,),output_dtype=float64",
        "auto_result is empty",
    ),
    ("--plot a.png --udf noop", "there is nothing to draw"),
    ("--plot a.png --udf auto:f=mine.py:texts", "there is nothing to draw"),
    ("--out a.zarr --udf auto:f=mine.py:texts", "auto_result contains <U3 values"),
    ("--out a.hspy --udf auto:f=mine.py:times", "auto_result contains datetime64[s]"),
    ("--out a.npz --udf auto:f=mine.py:lists,ragged=true", "auto_result contains object"),
]
FUNCTIONS = """
import numpy as np
def texts(frame):
    return np.array("abc")
def times(frame):
    return np.array("2026-01-01", "M8[s]")
def nothing(frame):
    return np.zeros(0)
def squares(frame):
    return np.eye(2)
def lists(frame):
    return np.array([1, None], object)
"""


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_results_that_do_not_fit(file, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    before = {path.name for path in tmp_path.iterdir()}
    with raise_if_dask_computes():
        assert words in call("run", file, *options.split(), code=1)
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == before


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_an_output_is_replaced_only_if_asked(file, tmp_path, suffix):
    out = tmp_path / f"a{suffix}"
    command = ["run", file, "--udf", "sumsig", "--out", out]
    call(*command)
    assert "already exists" in call(*command, code=1)
    call(*command, "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", "scan.h5"]


PICTURES = {"png": b"\x89PNG", "pdf": b"%PDF-", "svg": b"<?xml"}


@pytest.mark.parametrize("suffix", PICTURES)
def test_pictures(file, tmp_path, suffix):
    picture = tmp_path / f"a.{suffix}"
    command = ["run", file, "--plot", picture]
    call(*command)
    assert picture.read_bytes().startswith(PICTURES[suffix])
    if suffix == "png":
        assert matplotlib.image.imread(picture).ndim == 3
    if suffix == "svg":
        assert b"<svg" in picture.read_bytes()
