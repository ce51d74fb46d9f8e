"""An axis refuses what cannot be an axis, and says what to write."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from udfdask import ArgumentTypeError, ArgumentValueError, Axis


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "must be a text, such as name='y', not 3"),
        ({"name": None}, "must be a text"),
        ({"name": "y", "unit": 2}, "unit of the axis 'y' must be a text, such as unit='nm'"),
        ({"name": "y", "scale": "0.4"}, "a number, such as scale=0.4, not '0.4' of type str"),
        ({"name": "y", "scale": (0.4, "mrad")}, "scale of the axis 'y' must be a number"),
        ({"name": "y", "scale": None}, "scale of the axis 'y' must be a number"),
        ({"name": "y", "scale": True}, "scale of the axis 'y' must be a number"),
        ({"name": "y", "offset": "1 nm"}, "offset of the axis 'y' must be a number"),
    ],
)
def test_wrong_types(arguments, message):
    with pytest.raises(ArgumentTypeError, match=message):
        Axis(**arguments)


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"scale": math.nan}, {"offset": math.inf}])
def test_scales_that_give_no_positions(wrong):
    with pytest.raises(ArgumentValueError, match="a finite number other than 0"):
        Axis(name="y", unit="nm", **wrong)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int16, np.longdouble])
def test_numbers_of_any_kind(kind):
    axis = Axis(name="y", unit="nm", scale=kind(2), offset=kind(-3))
    assert axis.to_pixels(1) == 2
    assert replace(axis, name="x") == Axis(name="x", unit="nm", scale=2, offset=-3)
    assert pickle.loads(pickle.dumps(axis)) == axis
