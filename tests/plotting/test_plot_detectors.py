"""Outlines of detectors over a pattern."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import Axis
from udfdask.errors import ArgumentValueError
from udfdask.results.detectors import detector_masks
from udfdask.udfs import (
    FEMUDF,
    ApplyMasksUDF,
    CoMUDF,
    StdDevUDF,
    SumSigUDF,
    SumUDF,
    VirtualDetectorUDF,
)

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
    """The result of a UDF that adds up the pixels of its detector."""
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
    assert len(figure.axes[0].collections) == len(names)
    assert legend(total().plot_detectors(CoMUDF())) == ["center of mass"]


@pytest.mark.parametrize(
    ("result", "detectors", "options", "message"),
    [
        (SumSigUDF(), STRIPE, {}, "SumSigUDF has no result of kind sig"),
        (StdDevUDF(), STRIPE, {"name": "num_frames"}, "'num_frames' of StdDevUDF is not of kind"),
        (SumUDF(), STRIPE, {"name": "mean"}, "'mean'"),
        (SumUDF(), [], {}, "there is no detector to draw"),
        (SumUDF(), SumUDF(), {}, "SumUDF uses all pixels of a frame"),
        (SumUDF(), STRIPE.T, {}, r"the mask has the shape \(18, 16\), but frames"),
        (SumUDF(), "ring", {}, "a detector is a UDF such as VirtualDetectorUDF or a mask"),
        (SumUDF(), VirtualDetectorUDF(r="1 nm"), {}, "is in mrad: nm and mrad measure"),
    ],
)
def test_what_cannot_be_drawn(result, detectors, options, message):
    def fail(block):
        raise AssertionError("something was computed")

    data = DATA.map_blocks(fail, dtype="int64", meta=np.empty((0,) * 4, "int64"))
    lazy = ud.run_udf(data, result, axes=AXES)
    with pytest.raises((TypeError, ValueError, LookupError), match=message):
        lazy.plot_detectors(detectors, **options)


def test_spectra_have_no_outlines():
    spectra = ud.run_udf(DATA[..., 0], SumUDF(), sig_dims=1)
    with pytest.raises(ud.ArgumentValueError, match="frames of two axes"):
        spectra.plot_detectors(VirtualDetectorUDF("window", start=1, stop=3))


def test_a_pattern_is_not_the_image_of_a_mask():
    images = ud.run_udf(DATA, ApplyMasksUDF({"BF": STRIPE}), axes=AXES)
    for name in ("intensity", "BF"):
        with pytest.raises(ArgumentValueError, match="is not of kind sig: detectors are drawn"):
            images.plot_detectors(STRIPE, name)
    with pytest.raises(ArgumentValueError, match="did you mean 'intensity'"):
        ud.run_udf(DATA, SumUDF(), axes=AXES).plot_detectors(STRIPE, "intensitiy")
