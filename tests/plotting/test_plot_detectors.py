"""Outlines of detectors over a pattern."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import Axis
from udfdask.errors import ArgumentValueError
from udfdask.results.detectors import detector_masks
from udfdask.udfs import FEMUDF, ApplyMasksUDF, CoMUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

pytest.importorskip("matplotlib", reason="matplotlib is an extra")

AXES = tuple(
    Axis(name=name, unit=unit, scale=0.5)
    for name, unit in (("y", "nm"), ("x", "nm"), ("ky", "mrad"), ("kx", "mrad"))
)
DATA = da.from_array(np.random.default_rng(0).poisson(3, (3, 4, 16, 18)), chunks=(1, 4, 16, 18))
STRIPE = np.zeros((16, 18), bool)
STRIPE[:, 4:6] = True


def total():
    return ud.run_udf(DATA, SumUDF(), axes=AXES, unit="counts")


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def sums(udf):
    return ud.run_udf(DATA, udf, axes=AXES)["intensity"].compute()


def test_the_pixels_are_those_of_the_udf():
    ring = VirtualDetectorUDF("ring", ri="1 mrad", ro=(3, "mrad"))
    masks = detector_masks(total()._info, [ring, ring, {"a": STRIPE}["a"]])
    assert list(masks) == ["ring", "ring 2", "mask"]
    data = DATA.compute()
    np.testing.assert_array_equal((data * masks["ring"]).sum((2, 3)), sums(ring))
    np.testing.assert_array_equal(masks["mask"], STRIPE)
    named = ApplyMasksUDF({"left": STRIPE, "rest": ~STRIPE})
    masks = detector_masks(total()._info, named)
    np.testing.assert_array_equal(masks["rest"], ~STRIPE)
    both = np.stack([(data * masks[name]).sum((2, 3)) for name in masks], axis=-1)
    np.testing.assert_array_equal(both, sums(named))


def test_a_picture_with_a_legend():
    detectors = {
        "BF": VirtualDetectorUDF(r="1 mrad"),
        "com": CoMUDF(r=5),
        "fem": FEMUDF(center=(8, 9), rad_in=2, rad_out=4),
        "masks": ApplyMasksUDF([lambda: STRIPE, lambda: ~STRIPE]),
        "stripe": STRIPE,
    }
    figure = total().plot_detectors(detectors, title="detectors")
    names = ["BF", "com", "fem", "masks mask 0", "masks mask 1", "stripe"]
    assert legend(figure) == names
    assert figure.axes[0].get_xlabel() == "kx (mrad)"
    assert figure.axes[0].get_xlim() == (-0.25, 8.75)
    assert figure.axes[0].get_ylim() == (7.75, -0.25)
    assert len(figure.axes[0].collections) == 2 * len(names)  # a tint and an outline
    assert legend(total().plot_detectors(CoMUDF())) == ["center of mass"]


@pytest.mark.parametrize(
    ("result", "detectors", "name", "message"),
    [
        (SumSigUDF(), STRIPE, None, "a result of kind sig: SumSigUDF has"),
        (ApplyMasksUDF({"BF": STRIPE}), STRIPE, "intensity", "a result of kind sig"),
        (ApplyMasksUDF({"BF": STRIPE}), STRIPE, "BF", "a result of kind sig"),
        (SumUDF(), [], None, "there is no detector to draw"),
        (SumUDF(), SumUDF(), None, "SumUDF uses all pixels of a frame"),
        (SumUDF(), STRIPE.T, None, r"the detector \'mask\' has the shape \(18, 16\), but frames"),
        (SumUDF(), "ring", None, "a detector is a UDF such as VirtualDetectorUDF or a mask"),
        (SumUDF(), VirtualDetectorUDF(r="1 nm"), None, "is in mrad: nm and mrad measure"),
    ],
)
def test_what_cannot_be_drawn(result, detectors, name, message):
    def fail(block):
        raise AssertionError("something was computed")

    data = DATA.map_blocks(fail, dtype="int64", meta=np.empty((0,) * 4, "int64"))
    lazy = ud.run_udf(data, result, axes=AXES)
    with pytest.raises((TypeError, ValueError, LookupError), match=message):
        lazy.plot_detectors(detectors, name)


ENERGY = Axis(name="energy", unit="eV", scale=2.0, offset=100.0)
SPECTRA = DATA[..., 0]  # 3 x 4 positions, 16 channels from 100 to 130 eV


def spectrum(energy=ENERGY):
    axes = (*AXES[:2], energy)
    return ud.run_udf(SPECTRA, SumUDF(), sig_dims=1, axes=axes, unit="counts")


def window(start, stop):
    return VirtualDetectorUDF("window", start=start, stop=stop)


def spans(figure):
    """The left and right end of each shaded span, by the name in the legend."""
    found = [
        (patch.get_label(), *patch.get_extents().intervalx) for patch in figure.axes[0].patches
    ]
    inverse = figure.axes[0].transData.inverted()
    ends = {}
    for name, *pixels in found:
        left, right = (inverse.transform((pixel, 0))[0] for pixel in pixels)
        ends.setdefault(name, []).append((round(left, 6), round(right, 6)))
    return ends


@pytest.mark.parametrize(
    ("start", "stop"), [(3, 7), ("106 eV", "114 eV"), ("0.106 keV", "0.114 keV")]
)
def test_a_window_is_a_span_of_the_spectrum(start, stop):
    udf = window(start, stop)
    mask = detector_masks(spectrum()._info, udf)["window"]
    summed = ud.run_udf(SPECTRA, udf, sig_dims=1, axes=(*AXES[:2], ENERGY))["intensity"].compute()
    np.testing.assert_array_equal(SPECTRA.compute()[..., mask].sum(-1), summed)
    figure = spectrum().plot_detectors({"edge": udf})
    # from half a channel before the first one to half a channel after the last one
    assert spans(figure) == {"edge": [(105.0, 113.0)]}
    assert legend(figure) == ["edge"]
    assert figure.axes[0].get_xlim() == (99.0, 131.0)
    (line,) = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), SPECTRA.compute().sum((0, 1)))


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (VirtualDetectorUDF("ring", ri=40, ro=50), r"no pixel of a frame .* ring, ri=40, ro=50: n"),
        (
            VirtualDetectorUDF("ring", ri="40 mrad", ro="50 mrad"),
            r"no pixel of a frame .* ring, ri=80.0, ro=100.0: n",
        ),
        (ApplyMasksUDF({"a": STRIPE, "b": STRIPE & ~STRIPE}), "has no pixel"),
    ],
)
def test_a_detector_beyond_the_frame(detector, message):
    with pytest.raises(ArgumentValueError, match=message):
        total().plot_detectors({"it": detector})
