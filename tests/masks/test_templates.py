"""Descriptions of what a diffraction disc looks like."""

import dataclasses

import numpy as np
import pytest
from dask.base import tokenize

from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.masks import DiskTemplate, background_subtraction, circular
from udfdask.masks.templates import shifted_templates


@pytest.mark.parametrize("radius", [0.3, 0.5, 1, 2.5, 3.2, 4])
@pytest.mark.parametrize("ring", [None, 0.5, 2])
def test_it_holds_all_of_the_disc_and_no_more(radius, ring):
    outer = None if ring is None else radius + ring
    array = DiskTemplate(radius=radius, radius_outer=outer).array()
    size = {"centerX": 10, "centerY": 10, "imageSizeX": 21, "imageSizeY": 21, "antialiased": True}
    if outer is None:
        large = circular(**size, radius=radius)
    else:
        large = background_subtraction(**size, radius=outer, radius_inner=radius)
    n = 10 - len(array) // 2
    np.testing.assert_allclose(array, large[n : 21 - n, n : 21 - n], rtol=1e-12)
    np.testing.assert_allclose(np.abs(large).sum(), np.abs(array).sum())
    assert array[0].any()


def test_every_field_reaches_the_token():
    some = DiskTemplate(radius=3, radius_outer=5)
    changes = {"radius": 2, "radius_outer": None}
    assert changes.keys() == {field.name for field in dataclasses.fields(some)}
    others = [dataclasses.replace(some, **{name: value}) for name, value in changes.items()]
    assert len({tokenize(t) for t in (some, *others)}) == 3
    assert tokenize(some) == tokenize(DiskTemplate(radius=3, radius_outer=5))


def test_a_template_at_all_places_of_a_window():
    stack = shifted_templates(np.arange(1, 7).reshape(2, 3), 2)
    assert stack.shape == (25, 6, 7)
    for k, mask in enumerate(stack):
        y, x = divmod(k, 5)
        np.testing.assert_array_equal(mask[y : y + 2, x : x + 3], [[1, 2, 3], [4, 5, 6]])
        assert np.count_nonzero(mask) == 6


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"radius": 0}, ArgumentValueError, "radius must be positive, not 0"),
        ({"radius": -2.5}, ArgumentValueError, "radius must be positive, not -2.5"),
        ({"radius": np.inf}, ArgumentValueError, "radius must be a finite number of pixels"),
        ({"radius": "large"}, ArgumentTypeError, "radius must be a number of pixels, not 'large'"),
        ({"radius": 3, "radius_outer": 3}, ArgumentValueError, "larger than radius, but 3 <= 3"),
        ({"radius": 3, "radius_outer": "x"}, ArgumentTypeError, "radius_outer must be a number of"),
    ],
)
def test_wrong_radii(fields, error, message):
    with pytest.raises(error, match=message):
        DiskTemplate(**fields)
