"""The default center of UDFs: 0 of calibrated axes in every entry point, or else the middle."""

import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner

import udfdask as ud
from making import SYNC
from udfdask.cli import main
from udfdask.io import open_file
from udfdask.plan.plan import make_plan
from udfdask.udfs import CoMUDF, RadialFourierUDF, RadialProfileUDF, VirtualDetectorUDF

NAV, SIG, ZERO = (2, 3), (20, 24), (8.0, 13.0)
Y, X = np.indices(SIG)
BEAM = (np.hypot(Y - ZERO[0], X - ZERO[1]) <= 3) * np.uint16(100)
DATA = np.tile(BEAM, (*NAV, 1, 1))
ARRAY = da.from_array(DATA, chunks=(1, 3, *SIG))
DARK = {"ri": "4 mrad", "ro": "8 mrad"}
SAMPLES = {
    "ring": lambda **center: VirtualDetectorUDF("ring", ri=2, ro=5, **center),
    "com": lambda **center: CoMUDF(r=4, **center),
    "whole": CoMUDF,
    "profile": RadialProfileUDF,
    "fourier": lambda **center: RadialFourierUDF(r=6, max_order=2, **center),
}


def axes_of(*sig, nav=("y", "x")):
    """Axes of a scan without units, and of a frame: (unit, scale, offset) of each."""
    named = zip(("ky", "kx"), sig, strict=True)
    frame = [ud.Axis(name=n, unit=u, scale=s, offset=o) for n, (u, s, o) in named]
    return [*(ud.Axis(name=name) for name in nav), *frame]


MRAD = axes_of(("mrad", 0.5, -4.0), ("mrad", 0.5, -6.5))


def names(result):
    return {key[0] for key in result.__dask_keys__()}


def center_of(axes, udf=None):
    """The center of the run of a disk."""
    chosen = VirtualDetectorUDF("disk", r=3) if udf is None else udf
    (kwargs,) = make_plan(ARRAY, [chosen], axes=axes).parameters
    return kwargs.get("cy"), kwargs.get("cx")


@pytest.mark.parametrize("name", SAMPLES)
def test_zero_of_the_axes_is_the_default(name):
    """It is as if the center had been given: values and names of tasks."""
    make = SAMPLES[name]
    same = [ud.run_udf(ARRAY, make(), axes=MRAD), ud.run_udf(ARRAY, make(center="zero"), axes=MRAD)]
    there = ud.run_udf(ARRAY, make(cy=ZERO[0], cx=ZERO[1]), axes=MRAD)
    assert [names(one) for one in same] == [names(there)] * 2
    middle = ud.run_udf(ARRAY, make(center="middle"), axes=MRAD)
    plain = ud.run_udf(ARRAY, make(cy=10, cx=12), axes=MRAD)
    assert names(plain) == names(middle) != names(there)
    assert names(ud.run_udf(ARRAY, make(center=ZERO), axes=MRAD)) == names(there)


@pytest.mark.parametrize(
    ("sig", "center"),
    [
        ([("mrad", 0.5, -4.0), ("mrad", 0.5, -6.5)], (8.0, 13.0)),
        ([("mrad", -0.5, 4.0), ("1/nm", 0.25, -1.05)], (8.0, 4.2)),  # falling; between two pixels
        ([(None, 1.0, -8.0), (None, 1.0, -13.0)], (8.0, 13.0)),  # a coordinate with 0 in it
        ([("mrad", 1.0, -1.0), ("mrad", 1.0, -22.0)], (1.0, 22.0)),
        ([("mrad", 1.0, -0.9), ("mrad", 1.0, -22.0)], (None, None)),  # less than a pixel inside
        ([("nm", 0.5, 0.0), ("nm", 0.5, 0.0)], (None, None)),  # an image, from its corner
        ([(None, 1.0, 0.0), (None, 1.0, 0.0)], (None, None)),  # numbers of pixels
        ([("mrad", 0.5, -4.0), (None, 1.0, 0.0)], (None, None)),  # one axis only
        ([("px", 1.0, 5.0), ("px", 1.0, 7.0)], (None, None)),  # pixels of a cutout
    ],
)
def test_which_axes_say_where_zero_is(sig, center):
    assert center_of(axes_of(*sig)) == center


def test_a_given_coordinate_wins():
    def disk(**center):
        return VirtualDetectorUDF("disk", r=3, **center)

    assert center_of(MRAD, disk(cy=5, cx=6)) == (5, 6)
    assert center_of(MRAD, disk(cy="1 mrad", cx=6)) == (10.0, 6)
    assert center_of(MRAD, disk(cy=5)) == (5, 13.0)
    assert center_of(MRAD, disk(cx="middle")) == (8.0, 12)
    assert center_of(None, disk(cx=5)) == (None, 5)
    assert center_of(MRAD, VirtualDetectorUDF("point", x=1, y=2)) == (None, None)
    own = VirtualDetectorUDF("disk", r=3, centers=np.full((*NAV, 2), 7.0))
    assert center_of(MRAD, own) == (None, None)
    assert center_of(MRAD, CoMUDF(r=3, centers=np.full((*NAV, 2), 7.0))) == (None, None)


@pytest.fixture(scope="module")
def signal():
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    import udfdask.hyperspy  # noqa: F401

    made = hs.signals.Signal2D(DATA.copy())
    frame = zip(made.axes_manager.signal_axes, ("kx", "ky"), (-6.5, -4.0), strict=True)
    for axis, name, offset in frame:
        axis.name, axis.units, axis.scale, axis.offset = name, "mrad", 0.5, offset
    return made


def test_signals_in_memory_and_lazy_ones(signal):
    quiet = {"show_progressbar": False}
    detectors = [VirtualDetectorUDF("ring", **DARK), VirtualDetectorUDF(r="2 mrad")]
    dark, bright = signal.udf.run_udf(detectors, **quiet)
    assert (dark["intensity"].data == 0).all()
    assert (bright["intensity"].data == BEAM.sum()).all()
    lazy = signal.as_lazy().udf.run_udf(CoMUDF(r="3 mrad")).compute(**quiet, **SYNC)
    assert np.allclose(lazy["field"].data, 0)
    line, *_ = signal.udf.explain(VirtualDetectorUDF("ring", **DARK)).detectors
    assert "center y 8, x 13 px" in line


def test_files_and_the_command_line(signal, tmp_path):
    path = tmp_path / "scan.hspy"
    signal.save(path)
    assert (ud.run_udf(open_file(path), VirtualDetectorUDF("ring", **DARK))["intensity"] == 0).all()
    for center, y in {"": 8, ",cy=zero,cx=zero": 8, ",cy=middle,cx=middle": 10}.items():
        typed = ["--udf", f"ring:ri=4mrad,ro=8mrad{center}", "--no-progress"]
        done = CliRunner().invoke(main, ["run", str(path), *typed])
        assert done.exit_code == 0, done.output
        assert f", center y {y}, x " in done.output
        assert "is the middle" not in done.output


def test_data_arrays():
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    import udfdask.xarray  # noqa: F401

    coords = {"ky": np.arange(-8, 12.0), "kx": np.arange(-13, 11.0)}
    array = xr.DataArray(ARRAY, dims=("y", "x", "ky", "kx"), coords=coords)
    found = array.udf.run_udf(VirtualDetectorUDF("ring", ri=4, ro=8))
    assert (found["intensity"] == 0).all()
    assert "note" not in found.attrs
    plain = array.drop_vars(["ky", "kx"])
    assert "y 10, x 12 px" in plain.udf.run_udf(CoMUDF(r=3)).attrs["note"]
    assert "y 10, x 12 px" in plain.udf.run_udf(VirtualDetectorUDF(r=3)).attrs["note"]
    assert not plain.udf.run_udf(VirtualDetectorUDF(r=3, center="middle")).attrs


def test_progressive_runs_and_their_changes():
    def last(*changes, axes=MRAD):
        found = ud.run_udf_iter(ARRAY, CoMUDF(r=3), axes=axes)
        with found:
            for change in changes:
                found.update_parameters([change])
            return [snapshot.buffers[0]["raw_shifts"] for snapshot in found][-1]

    assert np.allclose(last(), 0)
    assert np.allclose(last({"cy": 5}, {"cy": None}), 0)
    assert np.allclose(last({"cy": 5, "cx": 9}, {"cy": "zero", "cx": "0 mrad"}), 0)
    at_middle = CoMUDF(r=3, cy=10, cx=12)
    expected = ud.run_udf(ARRAY, at_middle)["raw_shifts"]
    assert np.allclose(last({"cy": "middle", "cx": "middle"}), expected)


@pytest.mark.parametrize(
    ("center", "options", "word"),
    [
        ("find", {}, r"find_center\(pattern\)"),
        ((1, 2, 3), {}, "'zero' or 'middle'"),
        ("zero", {"cy": 3}, "leave out"),
    ],
)
def test_wrong_centers(center, options, word):
    for make in SAMPLES.values():
        with pytest.raises(ud.UDFError, match=word):
            make(center=center, **options)


@pytest.mark.parametrize("axes", [None, axes_of(("mrad", 1, -3), (None, 1, 0))])
def test_zero_needs_axes_that_have_one(axes):
    for make in SAMPLES.values():
        with pytest.raises(ud.ArgumentValueError, match="does not say where 0 is"):
            ud.run_udf(ARRAY, make(center="zero"), axes=axes)
    with pytest.raises(ud.ArgumentTypeError, match="center was given"):
        VirtualDetectorUDF("point", x=1, y=1, center="zero")
    with pytest.raises(ud.UDFError):
        CoMUDF(r="zero")


@pytest.mark.parametrize("r", [4, float("inf")])
def test_a_center_outside_is_refused_even_if_the_inner_radius_is_lazy(r):
    inner = da.from_array(np.array(2.0))
    with pytest.raises(ud.ArgumentValueError, match=r"\(cy, cx\) = \(500, 7\)"):
        ud.run_udf(ARRAY, CoMUDF(cy=500, cx=7, r=r, ri=inner))
    found = ud.run_udf(ARRAY, CoMUDF(cy=8, cx=13, r=4, ri=inner))
    np.testing.assert_allclose(found["raw_com"].compute(**SYNC)[0, 0], ZERO)
    far = np.full((*NAV, 2), 500.0)
    with pytest.raises(ud.ArgumentValueError, match="has a pixel between the radii"):
        ud.run_udf(ARRAY, CoMUDF(centers=far, r=4, ri=inner))
