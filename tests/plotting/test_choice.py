"""What a user may ask to be drawn, and what the errors say."""

import re

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from picture_udfs import ManyUDF
from suites import without_address
from udfdask.plotting.choose import choose
from udfdask.udfs import ApplyMasksUDF, SumSigUDF, SumUDF

X = da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8))


@pytest.fixture(scope="module")
def many():
    return ud.run_udf(X, ManyUDF())


@pytest.fixture(scope="module")
def sums():
    return ud.run_udf(X, [SumUDF(), SumSigUDF()])


def titles(asked, results):
    return [choice.labels.title for choice in choose(asked, [one._info for one in results])]


def test_all_that_can_be_drawn(many):
    assert titles(True, [many]) == ["image", "vector", "wave", "pattern"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("image", ["image"]),
        (["wave", "image"], ["wave", "image"]),
        (("wave", "image"), ["wave", "image"]),
        (("image", np.log1p), ["log1p(image)"]),
        (("image", lambda a: a), ["image"]),
        ([("image", np.sqrt), "image"], ["sqrt(image)", "image"]),
        (("vector", lambda a: a[..., 0]), ["vector"]),
    ],
)
def test_names_and_functions(many, asked, expected):
    assert titles(asked, [many]) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (True, ["SumUDF: intensity", "SumSigUDF: intensity"]),
        ("intensity", ["SumUDF: intensity", "SumSigUDF: intensity"]),
        ([("intensity", np.log1p)], ["SumUDF: log1p(intensity)", "SumSigUDF: log1p(intensity)"]),
    ],
)
def test_several_udfs(sums, asked, expected):
    assert titles(asked, sums) == expected


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("imag", ValueError, "'imag', which is not one of the results ['image', "),
        (1, TypeError, "plots must be True, a name"),
        (np.abs, TypeError, "plots must be True, a name"),
        ([], ValueError, "plots is empty"),
        (("image", 3), TypeError, "a pair (name, function)"),
        ("thing", ValueError, "'thing' of ManyUDF, which cannot be drawn: it contains object"),
        ("number", ValueError, "cannot be drawn: it is empty or one number"),
    ],
    ids=without_address,
)
def test_what_cannot_be(many, asked, error, message):
    with pytest.raises(ud.UDFError, match=re.escape(message)) as caught:
        choose(asked, [many._info])
    assert isinstance(caught.value, error)


def test_functions_make_drawable_what_is_none(many):
    (choice,) = choose(("text", lambda a: (a == "text") + 0), [many._info])
    (panel,) = choice.panels(np.full((4, 6), "text"), np.ones((4, 6), bool))
    np.testing.assert_array_equal(panel.values, np.ones((4, 6)))


DISKS = ApplyMasksUDF({"BF": np.eye(8), "dark/field µ": np.ones((8, 8))})


def test_labels_are_names():
    images = ud.run_udf(X, DISKS).compute()
    asked = ["dark/field µ", ("BF", np.sqrt), "intensity"]
    assert titles(asked, [images]) == ["dark/field µ", "sqrt(BF)", "intensity"]
    (dark,), (bright,), both = (
        choice.panels(images[choice.name], images.valid_mask[choice.name])
        for choice in choose(asked, [images._info])
    )
    np.testing.assert_array_equal(dark.values, images["dark/field µ"])
    np.testing.assert_array_equal(bright.values, np.sqrt(images["BF"]))
    assert [panel.title for panel in both] == ["intensity [BF]", "intensity [dark/field µ]"]
    assert titles(True, [images]) == ["intensity"]


def test_similar_names():
    with pytest.raises(ud.UDFError, match="did you mean 'BF'"):
        choose("bF", [ud.run_udf(X, DISKS)._info])
