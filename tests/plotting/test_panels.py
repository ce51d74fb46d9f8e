"""Which panels come out of results."""

import numpy as np
import pytest

from udfdask.geometry.axes import Axis
from udfdask.plotting.panels import Labels, missing_as_nan, panels_of

YX = Axis(name="component", labels=("y", "x"))
VECTORS = ("y", "x", "component")
AXES = tuple(Axis(name=name) for name in ("t", "y", "x", "ky", "kx"))


def of(kind, values, *, extra=None, nav=2, sig=2, log=None, unit=None):
    """Panels of an array; extra dimensions are counted."""
    values = np.asarray(values)
    leading = {"nav": AXES[3 - nav : 3], "sig": AXES[3 : 3 + sig]}.get(kind, ())
    if extra is None:
        extra = [Axis(name=f"dim_{k}", unit="index") for k in range(values.ndim - len(leading))]
    labels = Labels(
        title="r",
        kind=kind,
        shape=values.shape,
        dtype=values.dtype,
        axes=(*leading, *extra),
        n_leading=len(leading),
        unit=unit,
    )
    return panels_of(labels, values, log=log)


@pytest.mark.parametrize(
    ("kind", "shape", "options", "expected"),
    [
        ("nav", (3, 4), {}, [("r", (3, 4), ("y", "x"))]),
        ("nav", (5,), {"nav": 1}, [("r", (5,), ("x",))]),
        ("sig", (6, 7), {}, [("r", (6, 7), ("ky", "kx"))]),
        ("sig", (6,), {"sig": 1}, [("r", (6,), ("ky",))]),
        ("nav", (5, 3, 4), {"nav": 3}, [("r [2]", (3, 4), ("y", "x"))]),  # the middle
        ("nav", (3, 4, 2), {}, [(f"r [{k}]", (3, 4), ("y", "x")) for k in range(2)]),
        ("nav", (3, 4, 2), {"extra": (YX,)}, [("r", (3, 4, 2), VECTORS)]),
        ("nav", (5, 3, 4, 2), {"nav": 3, "extra": (YX,)}, [("r [2]", (3, 4, 2), VECTORS)]),
        ("nav", (3, 4, 20), {}, [(f"r [{k}]", (3, 4), ("y", "x")) for k in range(4)]),
        ("nav", (1, 9), {}, [("r [0]", (9,), ("x",))]),
        ("single", (5, 6), {}, [("r", (5, 6), ("dim_0", "dim_1"))]),
        ("single", (7, 5, 6), {}, [(f"r [{k}]", (5, 6), ("dim_1", "dim_2")) for k in range(4)]),
    ],
)
def test_which_parts_are_drawn(kind, shape, options, expected):
    values = np.arange(float(np.prod(shape))).reshape(shape)
    panels = of(kind, values, **options)
    found = [(p.title, p.values.shape, tuple(axis.name for axis in p.axes)) for p in panels]
    assert found == expected
    if shape == (5, 3, 4):
        np.testing.assert_array_equal(panels[0].values, values[2])


def test_colors_follow_the_values():
    def style(kind, values):
        (panel,) = of(kind, values)
        return panel.style, panel.log

    counts = np.arange(12.0).reshape(3, 4)
    assert style("nav", counts) == ("scan", False)
    assert style("nav", counts - 6) == ("signed", False)
    assert style("nav", np.full((3, 4), np.nan)) == ("scan", False)
    assert style("sig", counts) == ("pattern", True)
    assert style("sig", counts - 6) == ("pattern", False)


@pytest.mark.parametrize(
    ("angles", "unit", "style"),
    [((-3.1, 3.1), "rad", "phase"), ((-1, 3.1), "rad", "signed"), ((-3.1, 3.1), "nm", "signed")],
)
def test_angles_that_fill_the_circle_are_cyclic(angles, unit, style):
    (panel,) = of("nav", np.linspace(*angles, 12).reshape(3, 4), unit=unit)
    assert panel.style == style


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.complex64])
def test_what_is_not_valid_is_missing(dtype):
    missing = np.eye(3, 4, dtype=bool)
    for panel in of("nav", missing_as_nan(np.ones((3, 4), dtype), ~missing)):
        np.testing.assert_array_equal(np.isnan(panel.values), missing)


def test_complex_values_are_amplitude_and_phase():
    values = np.array([[3 + 4j, np.nan], [-2, 1j]])
    amplitude, phase = of("nav", values)
    assert (amplitude.title, phase.title) == ("r, amplitude", "r, phase")
    np.testing.assert_allclose(amplitude.values, [[5, np.nan], [2, 1]])
    np.testing.assert_allclose(phase.values, [[np.arctan2(4, 3), np.nan], [np.pi, np.pi / 2]])
    assert (amplitude.style, phase.style, phase.label) == ("scan", "phase", "radians")
    assert [panel.log for panel in of("sig", values)] == [True, False]
    assert [panel.log for panel in of("sig", values, log=False)] == [False, False]


def test_a_scan_of_one_dimension_has_a_line_for_each_component():
    panels = of("nav", np.zeros((5, 2)), extra=(YX,), nav=1)
    assert [(panel.title, panel.values.shape) for panel in panels] == [
        ("r [y]", (5,)),
        ("r [x]", (5,)),
    ]


def test_profiles_are_a_mean_curve():
    radius = Axis(name="radius", unit="px", scale=0.5)
    values = np.arange(240.0).reshape(3, 4, 20)
    (curve,) = of("nav", values, extra=(radius,))
    assert (curve.axes, curve.log) == ((radius,), False)
    np.testing.assert_allclose(curve.values, values.mean(axis=(0, 1)))
    assert of("nav", values, extra=(radius,), log=True)[0].log


def test_labeled_curves_over_a_unit_are_lines():
    angle, flip = Axis(name="angle", unit="deg"), Axis(name="flip", labels=("no", "yes"))
    (panel,) = of("single", np.ones((36, 2)), extra=(angle, flip))
    assert (panel.style, panel.axes, panel.values.shape) == ("lines", (angle, flip), (36, 2))


@pytest.mark.parametrize("kind", ["nav", "single"])
def test_curves_over_two_decades_are_logarithmic(kind):
    radius, angle = Axis(name="radius", unit="px"), Axis(name="angle", unit="deg")
    shape = (3, 4) if kind == "nav" else ()
    curve = np.broadcast_to(np.logspace(0, 2.1, 20), (*shape, 20))
    image = np.broadcast_to(curve[..., None], (*shape, 20, 6))
    for values, extra in ((curve, (radius,)), (image, (radius, angle))):
        (panel,) = of(kind, values, extra=extra)
        assert (panel.log, panel.axes, panel.values.ndim) == (True, extra, len(extra))
        (panel,) = of(kind, values, extra=extra, log=False)
        assert not panel.log
        for change in (-1, -curve.max(), np.log):  # zero, negative values, or a short range
            less = change(values + 1) if callable(change) else values + change
            assert not of(kind, less, extra=extra)[0].log
    places = Axis(name="y", unit="nm"), Axis(name="x", unit="nm")
    assert not of("single", np.broadcast_to(np.logspace(0, 2.1, 20), (6, 20)), extra=places)[0].log
