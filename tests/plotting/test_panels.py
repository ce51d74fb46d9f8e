"""Which panels come out of results."""

import numpy as np
import pytest

from udfdask.geometry.axes import Axis
from udfdask.plotting import result_panels
from udfdask.plotting.labels import label
from udfdask.plotting.panels import panels_of

YX = Axis(name="component", labels=("y", "x"))
AXES = tuple(Axis(name=name) for name in ("t", "y", "x", "ky", "kx"))


class Buffer:
    def __init__(self, kind):
        self.kind = kind


class Result(dict):
    """A computed result with one buffer."""

    def __init__(self, kind, values):
        super().__init__(r=np.asarray(values))
        self.buffers = {"r": Buffer(kind)}
        mask = getattr(values, "mask", False)
        self.valid_mask = {"r": ~np.broadcast_to(mask, np.shape(values))}


def panels(kind, values, *, nav=2, sig=2):
    axes = AXES[3 - nav : 3 + sig]
    return [
        (panel.title, panel.values.shape, tuple(axis.name for axis in panel.axes))
        for panel in result_panels({"u": Result(kind, values)}, axes, sig)
    ]


def test_a_scan_image():
    assert panels("nav", np.ones((3, 4))) == [("u: r", (3, 4), ("y", "x"))]


def test_a_time_series():
    assert panels("nav", np.ones(5), nav=1) == [("u: r", (5,), ("x",))]


def test_a_pattern_and_a_spectrum():
    assert panels("sig", np.ones((6, 7))) == [("u: r", (6, 7), ("ky", "kx"))]
    assert panels("sig", np.ones(6), sig=1) == [("u: r", (6,), ("ky",))]


def test_of_further_scan_axes_the_middle_is_drawn():
    values = np.arange(5 * 3 * 4).reshape(5, 3, 4)
    assert panels("nav", values, nav=3) == [("u: r [2]", (3, 4), ("y", "x"))]
    (panel,) = result_panels({"u": Result("nav", values)}, AXES, 2)
    np.testing.assert_array_equal(panel.values, values[2])


def test_of_extra_dimensions_the_first_few_are_drawn():
    titles = [title for title, _, _ in panels("nav", np.ones((3, 4, 2)))]
    assert titles == ["u: r [0]", "u: r [1]"]
    assert len(panels("nav", np.ones((3, 4, 20)))) == 4


def test_axes_of_one_position_are_left_out():
    assert panels("nav", np.ones((1, 9))) == [("u: r [0]", (9,), ("x",))]


def test_single_results():
    assert panels("single", np.ones((5, 6))) == [("u: r", (5, 6), ("dim_0", "dim_1"))]
    assert [shape for _, shape, _ in panels("single", np.ones((7, 5, 6)))] == [(5, 6)] * 4


@pytest.mark.parametrize(
    "values", [3.0, np.zeros((0, 4)), np.array([[None, 1]]), np.array([["a", "b"]])]
)
def test_what_cannot_be_drawn(values):
    assert panels("single", values) == []


def test_colours_follow_the_values():
    def style(kind, values):
        (panel,) = result_panels({"u": Result(kind, values)}, AXES[1:], 2)
        return panel.style, panel.log

    counts = np.arange(12.0).reshape(3, 4)
    assert style("nav", counts) == ("scan", False)
    assert style("nav", counts - 6) == ("signed", False)
    assert style("nav", np.full((3, 4), np.nan)) == ("scan", False)
    assert style("sig", counts) == ("pattern", True)
    assert style("sig", counts - 6) == ("pattern", False)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.complex64])
def test_what_is_not_valid_is_missing(dtype):
    values = np.ma.MaskedArray(np.ones((3, 4), dtype), mask=np.eye(3, 4, dtype=bool))
    for panel in result_panels({"u": Result("nav", values)}, AXES[1:], 2):
        np.testing.assert_array_equal(np.isnan(panel.values), np.eye(3, 4))


def of(kind, values, *, extra=(), nav=2, log=None):
    """Panels of an array with named extra dimensions."""
    values = np.asarray(values)
    leading = {"nav": AXES[3 - nav : 3], "sig": AXES[3:]}.get(kind, ())
    return panels_of(label("r", kind, values.shape, values.dtype, leading, extra), values, log=log)


def test_complex_values_are_amplitude_and_phase():
    values = np.array([[3 + 4j, np.nan], [-2, 1j]])
    amplitude, phase = of("nav", values)
    assert (amplitude.title, phase.title) == ("r, amplitude", "r, phase")
    np.testing.assert_allclose(amplitude.values, [[5, np.nan], [2, 1]])
    np.testing.assert_allclose(phase.values, [[np.arctan2(4, 3), np.nan], [np.pi, np.pi / 2]])
    assert (amplitude.style, phase.style, phase.label) == ("scan", "phase", "radians")
    assert [panel.log for panel in of("sig", values)] == [True, False]
    assert [panel.log for panel in of("sig", values, log=False)] == [False, False]


def test_vectors_are_one_image():
    values = np.random.default_rng(1).normal(size=(3, 4, 2))
    (panel,) = of("nav", values, extra=(YX,))
    assert (panel.style, panel.values.shape, panel.axes) == ("vector", (3, 4, 2), (*AXES[1:3], YX))
    (middle,) = of("nav", np.stack([values] * 5), extra=(YX,), nav=3)
    assert (middle.style, middle.title) == ("vector", "r [2]")


@pytest.mark.parametrize("labels", [("x", "y"), None])
def test_two_numbers_of_other_names_are_no_vector(labels):
    values = np.random.default_rng(1).normal(size=(3, 4, 2))
    found = of("nav", values, extra=(Axis(name="component", labels=labels),))
    assert [panel.title for panel in found] == (
        ["r [x]", "r [y]"] if labels else ["r [0]", "r [1]"]
    )


def test_places_on_the_detector_are_no_directions():
    values = 48 + np.random.default_rng(1).normal(size=(3, 4, 2))
    assert [panel.title for panel in of("nav", values, extra=(YX,))] == ["r [y]", "r [x]"]


def test_a_scan_of_one_dimension_has_a_line_for_each_component():
    (panel,) = of("nav", np.zeros((5, 2)), extra=(YX,), nav=1)
    assert (panel.style, panel.values.shape) == ("lines", (5, 2))
    (panel,) = of("nav", np.zeros((1, 5, 2)), extra=(YX,))
    assert (panel.style, panel.title) == ("lines", "r [0]")


def test_many_numbers_along_a_line_are_an_image():
    index = Axis(name="number")
    (panel,) = of("nav", np.zeros((5, 20)), extra=(index,), nav=1)
    assert (panel.values.shape, panel.axes[0]) == ((5, 20), AXES[2])


def test_profiles_along_a_line_are_a_curve_and_an_image():
    radius = Axis(name="radius", unit="px", scale=0.5)
    curve, panel = of("nav", np.zeros((5, 20)), extra=(radius,), nav=1)
    assert (curve.style, curve.values.shape) == ("profile", (20, 2))
    assert (panel.values.shape, panel.axes) == ((5, 20), (AXES[2], radius))
    (curve,) = of("nav", np.zeros((1, 20)), extra=(radius,), nav=1)
    assert (curve.values.shape, curve.axes) == ((20,), (radius,))


@pytest.mark.parametrize(("low", "is_log"), [(1.0, True), (50.0, False), (-1.0, False)])
def test_images_of_steep_profiles_are_logarithmic(low, is_log):
    radius = Axis(name="radius", unit="px")
    profiles = np.full((3, 4, 20), low)
    profiles[..., :2] = 100.0
    image = of("nav", profiles, extra=(radius,))[1]
    assert image.log is is_log
    assert [of("nav", profiles, extra=(radius,), log=log)[1].log for log in (True, False)] == [
        True,
        False,
    ]


def test_positions_have_their_units():
    radius = Axis(name="radius", unit="px", scale=0.5, offset=1)
    titles = [panel.title for panel in of("nav", np.zeros((3, 4, 2)), extra=(radius,))]
    assert titles == ["r [1 px]", "r [1.5 px]"]


def test_a_logarithmic_scale_is_chosen():
    counts = np.arange(12.0).reshape(3, 4)
    assert [of("nav", counts, log=log)[0].log for log in (None, True, False)] == [
        False,
        True,
        False,
    ]
    assert [of("sig", counts, log=log)[0].log for log in (None, True, False)] == [True, True, False]
    assert not of("sig", counts > 3)[0].log
