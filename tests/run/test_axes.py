"""Axes and units go through a run: from the data to all results, and to parameters in units."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from commands import write_with_axes
from making import make
from udfdask import Axis
from udfdask.io import open_file
from udfdask.masks import DiskTemplate
from udfdask.udfs import (
    FEMUDF,
    CoMUDF,
    CorrelationUDF,
    CrystallinityUDF,
    RadialFourierUDF,
    RadialProfileUDF,
    SumUDF,
    VirtualDetectorUDF,
)

FRAMES = np.random.default_rng(0).integers(0, 100, (4, 5, 16, 18)).astype("uint16")


def scan(chunks=(2, 5, 16, 18)):
    return da.from_array(FRAMES, chunks=chunks)


def calibrated(unit="mrad", scale=0.1, nav_unit="nm"):
    return (
        Axis(name="y", unit=nav_unit, scale=2.0),
        Axis(name="x", unit=nav_unit, scale=-3.0, offset=5.0),
        Axis(name="ky", unit=unit, scale=scale, offset=-8 * scale),
        Axis(name="kx", unit=unit, scale=scale, offset=-9 * scale),
    )


def test_an_opened_file_brings_its_axes(tmp_path):
    pytest.importorskip("h5py", reason="h5py is in the io extra")
    opened = open_file(write_with_axes(tmp_path / "scan.h5", FRAMES, calibrated("mrad", 0.5)))
    result = ud.run_udf(opened, VirtualDetectorUDF("disk", cy="0 mrad", cx=(0, "mrad"), r="2 mrad"))
    assert [axis.unit for axis in result.axes["intensity"]] == ["nm", "nm"]
    expected = ud.run_udf(scan(), VirtualDetectorUDF("disk", cy=8, cx=9, r=4))
    np.testing.assert_array_equal(result["intensity"].compute(), expected["intensity"].compute())
    assert ud.explain(opened, SumUDF()).n_chunks >= 1
    (last,) = list(ud.run_udf_iter(opened, SumUDF()))[-1:]
    assert last.buffers[0].axes["intensity"] == opened.axes[2:]
    mapped = ud.map_frames(opened, np.max)
    np.testing.assert_array_equal(mapped.compute(), FRAMES.max((2, 3)))
    plain = ud.run_udf(opened.array, SumUDF(), axes=opened)
    assert plain.axes["intensity"] == opened.axes[2:]


SAME = {
    "ring": (
        lambda ri, ro, cy, cx: VirtualDetectorUDF("ring", ri=ri, ro=ro, cy=cy, cx=cx),
        "intensity",
    ),
    "com": (lambda ri, ro, cy, cx: CoMUDF(r=ro, ri=ri, cy=cy, cx=cx), "raw_com"),
    "radial fourier": (
        lambda ri, ro, cy, cx: RadialFourierUDF(r=ro, ri=ri, cy=cy, cx=cx, n_bins=2),
        "coefficients",
    ),
    "fem": (lambda ri, ro, cy, cx: FEMUDF(center=(cy, cx), rad_in=ri, rad_out=ro), "intensity"),
}


@pytest.mark.parametrize("case", SAME)
@pytest.mark.parametrize(
    ("unit", "given_unit", "scale", "per_scale"),
    [("mrad", "mrad", 0.1, 1.0), ("1/nm", "nm^-1", 0.3, 1.0), ("mrad", "rad", 0.1, 1e-3)],
)
def test_the_same_ring_in_pixels_and_in_units(case, unit, given_unit, scale, per_scale):
    make, name = SAME[case]
    # 0.3 / 0.1 is 2.9999999999999996
    lengths = [f"{3 * scale * per_scale!r} {given_unit}", (6 * scale * per_scale, given_unit)]
    center = [
        f"{(position - middle) * scale * per_scale!r} {given_unit}"
        for position, middle in ((7, 8), (9.5, 9))
    ]
    in_units = ud.run_udf(scan(), make(*lengths, *center), axes=calibrated(unit, scale))
    in_pixels = ud.run_udf(scan(), make(3, 6, 7, 9.5))
    np.testing.assert_array_equal(in_units[name].compute(), in_pixels[name].compute())


def test_rectangles_and_windows_in_units():
    axes = calibrated("mrad", 0.1)
    rectangle = VirtualDetectorUDF(
        "rect", x="-0.6 mrad", y="-0.5 mrad", width="0.3 mrad", height="0.2 mrad"
    )
    found = ud.run_udf(scan(), rectangle, axes=axes)["intensity"].compute()
    np.testing.assert_array_equal(found, FRAMES[:, :, 3:5, 3:6].sum((2, 3)))
    spectra = scan()[:, :, 0]
    energy = (*axes[:2], Axis(name="E", unit="keV", scale=0.1))
    window = VirtualDetectorUDF("window", start="300 eV", stop="0.7 keV")
    found = ud.run_udf(spectra, window, sig_dims=1, axes=energy)["intensity"].compute()
    np.testing.assert_array_equal(found, FRAMES[:, :, 0, 3:7].sum(2))


@pytest.mark.parametrize(
    ("in_units", "in_pixels"),
    [
        (
            CorrelationUDF(
                peaks=([(-0.3, 0.5), (0.2, -0.1)], "mrad"),
                template=DiskTemplate(radius="0.2 mrad", radius_outer=(0.0003, "rad")),
                steps="0.21 mrad",
                zero_shift=("0.1 mrad", "-0.2 mrad"),
            ),
            CorrelationUDF(
                peaks=[(5, 4), (10, 10)],
                template=DiskTemplate(radius=2, radius_outer=3),
                steps=3,
                zero_shift=(1, 2),
            ),
        ),
        (
            CrystallinityUDF(2, 6, real_center=("0 mrad", "0.1 mrad"), real_rad="0.3 mrad"),
            CrystallinityUDF(2, 6, real_center=(8, 8), real_rad=3),
        ),
    ],
    ids=["disks", "zero-order peak"],
)
def test_templates_and_peaks_in_units(in_units, in_pixels):
    """One axis is descending: a shift along it changes its sign."""
    kx = Axis(name="kx", unit="mrad", scale=-0.1, offset=0.9)
    found = ud.run_udf(scan(), in_units, axes=(*calibrated("mrad", 0.1)[:3], kx)).compute()
    wanted = ud.run_udf(scan(), in_pixels).compute()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize(
    "udf",
    [
        VirtualDetectorUDF("rect", x="0 mrad", y=3, width="0.4 mrad", height="0.4 mrad"),
        VirtualDetectorUDF("window", start="0 mrad", stop="0.4 mrad"),
    ],
)
def test_ranges_in_units_need_rising_axes(udf):
    kx = Axis(name="kx", unit="mrad", scale=-0.1, offset=0.9)
    sig_dims = 1 if "start" in udf.params else 2
    x = scan() if sig_dims == 2 else scan()[0]
    axes = (*calibrated("mrad", 0.1)[:3], kx)[-x.ndim :]
    with pytest.raises(ud.ArgumentValueError, match=r"the axis 'kx' decrease: give pixels"):
        ud.run_udf(x, udf, axes=axes, sig_dims=sig_dims)


@pytest.mark.parametrize(
    "udf",
    [
        VirtualDetectorUDF("ring", ri=2, ro="0.9 mrad"),
        VirtualDetectorUDF("rect", x=0, y=0, width=3, height="0.9 mrad"),
        CoMUDF(ri=2, r="0.9 mrad"),
        CoMUDF(ri=np.array(2), r="0.9 mrad"),
        CoMUDF(ri=da.ones(()), r="0.9 mrad"),
    ],
)
@pytest.mark.parametrize("kx", [0.1, 0.05])
def test_one_length_in_a_unit_and_one_in_pixels(udf, kx):
    axes = [Axis(name=name, unit="mrad", scale=0.1) for name in ("y", "x", "ky")]
    axes.append(Axis(name="kx", unit="mrad", scale=kx))
    with pytest.raises(ud.ArgumentValueError):
        ud.run_udf(da.ones((2, 2, 18, 18)), udf, axes=axes)


@pytest.mark.parametrize("nav_unit", ["nm", None])
def test_the_field_is_in_the_units_of_the_axes(nav_unit):
    axes = calibrated("mrad", 0.1, nav_unit)
    udf = CoMUDF(r=7, scan_rotation=30, flip_y=True)
    found = ud.run_udf(scan(), udf, axes=axes).compute()
    plain = ud.run_udf(scan(), udf).compute()
    for name in ("raw_com", "raw_shifts"):
        np.testing.assert_array_equal(found[name], plain[name])
        assert found.units[name] == "px"
    for name in ("field", "field_y", "field_x", "magnitude"):
        np.testing.assert_allclose(found[name], 0.1 * plain[name], rtol=1e-12)
        assert (found.units[name], plain.units[name]) == ("mrad", "px")
    steps = (2.0, -3.0) if nav_unit else (1.0, 1.0)
    fy, fx = found["field_y"], found["field_x"]
    divergence = np.gradient(fy, steps[0], axis=0) + np.gradient(fx, steps[1], axis=1)
    curl = np.gradient(fy, steps[1], axis=1) - np.gradient(fx, steps[0], axis=0)
    np.testing.assert_array_equal(found["divergence"], divergence)
    np.testing.assert_array_equal(found["curl"], curl)
    assert found.units["curl"] == ("mrad/nm" if nav_unit else "mrad/position")
    assert plain.units["divergence"] == "px/position"


def test_the_rings_of_a_profile_are_in_the_unit_of_the_frame():
    profile = ud.run_udf(scan(), RadialProfileUDF(r=4, ri=1), axes=calibrated("1/nm", 0.5))
    (radius,) = profile.extra_axes["intensity"]
    assert (radius.unit, radius.scale, radius.offset) == ("1/nm", 0.5, 0.75)
    uneven = (*calibrated()[:3], Axis(name="kx", unit="mrad", scale=0.2))
    (radius,) = ud.run_udf(scan(), RadialProfileUDF(r=4), axes=uneven).extra_axes["intensity"]
    assert (radius.unit, radius.scale) == ("px", 1.0)


class WidestUDF(ud.UDF):
    calibrated = {"width": "length"}

    def __init__(self, width):
        super().__init__(width=width)

    def get_result_buffers(self):
        return {"width": self.buffer(kind="nav", dtype="float64")}

    def get_result_units(self):
        return {"width": self.meta.axes[-1].unit}

    def process_frame(self, frame):
        self.results.width[:] = self.params.width


def test_a_udf_of_a_user_gets_pixels():
    found = ud.run_udf(scan(), WidestUDF("0.4 mrad"), axes=calibrated())
    assert found.units == {"width": "mrad"}
    np.testing.assert_array_equal(found["width"].compute(), 4.0)


def test_tasks_of_other_udfs_do_not_know_the_axes():
    curious = make({"width": {"kind": "nav"}}, process_frame=lambda self, frame: self.meta.axes)()
    with pytest.raises(ud.errors.NotAvailableError, match="get_result_units"):
        ud.run_udf(scan(), curious, axes=calibrated()).compute(scheduler="synchronous")
    # the same tasks, so that both are computed once
    plain, labeled = ud.run_udf(scan(), SumUDF()), ud.run_udf(scan(), SumUDF(), axes=calibrated())
    assert plain["intensity"].name == labeled["intensity"].name


class RoundUDF(WidestUDF):
    calibrated = {"r": "length"}

    def __init__(self, r):
        ud.UDF.__init__(self, r=r)


NO_UNIT = (*calibrated()[:2], Axis(name="ky"), Axis(name="kx"))
UNEVEN = (*calibrated()[:3], Axis(name="kx", unit="mrad", values=tuple(np.arange(18.0) ** 2)))
OBLONG = (*calibrated()[:3], Axis(name="kx", unit="mrad", scale=0.2))


@pytest.mark.parametrize(
    ("axes", "udf"),
    [
        (None, CoMUDF(r="1 mrad")),
        (NO_UNIT, CoMUDF(r="1 mrad")),
        (calibrated(), CoMUDF(r="1 1/nm")),
        (calibrated(), CoMUDF(r="3 bananas")),
        (UNEVEN, CoMUDF(cx="1 mrad")),
        (OBLONG, RoundUDF(r="1 mrad")),
        (calibrated(), VirtualDetectorUDF("disk", cy="3 mrad", r=1)),
        (None, CoMUDF(cy=500)),
        (calibrated()[:3], SumUDF()),
        ((*calibrated()[:3], "kx"), SumUDF()),
        ("yx", SumUDF()),
        ((*calibrated()[:3], Axis(name="y")), SumUDF()),
        ((*calibrated()[:3], Axis(name="k", values=(1.0,))), SumUDF()),
    ],
)
def test_axes_and_units_that_do_not_fit(axes, udf):
    def fail(block):
        raise AssertionError("something was computed")

    data = scan().map_blocks(fail, dtype="uint16", meta=np.empty((0,) * 4, "uint16"))
    with pytest.raises((TypeError, ValueError)):
        ud.run_udf(data, udf, axes=axes)


def test_over_uneven_axes_a_field_is_in_pixels():
    assert ud.run_udf(scan(), CoMUDF(), axes=UNEVEN).units["field"] == "px"
