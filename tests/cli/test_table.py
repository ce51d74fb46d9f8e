"""The table of results: what each line says."""

import numpy as np
import pytest

from udfdask import Axis
from udfdask.cli.table import summary_table


class Buffer:
    def __init__(self, kind):
        self.kind = kind


class Result(dict):
    """A computed result, all of one kind, nothing of it masked unless it is a masked array."""

    def __init__(self, kind="nav", **arrays):
        super().__init__({name: np.asarray(values) for name, values in arrays.items()})
        self.buffers = {name: Buffer(kind) for name in arrays}
        self.units = {}
        self.extra_axes = {}
        self.valid_mask = {
            name: ~np.broadcast_to(getattr(values, "mask", False), np.shape(values))
            for name, values in arrays.items()
        }


def cells(values):
    """The last three columns of the only line."""
    _, line = summary_table({"u": Result(r=values)}).splitlines()
    return line.split()[-3:]


@pytest.mark.parametrize("plain", [None, "px", "pixels", "px/position"])
def test_units_have_a_column_if_they_say_more_than_pixels(plain):
    first, second = Result("sig", intensity=[2.0, 3.0]), Result("nav", a=[1.5])
    second.units["a"] = plain
    assert "unit" not in summary_table({"sum": first, "x": second})
    first.units["intensity"] = "counts"
    assert summary_table({"sum": first, "x": second}).splitlines() == [
        "udf  name       kind  shape  dtype    min  mean  max  unit",
        "sum  intensity  sig   2      float64    2   2.5    3  counts",
        f"x    a          nav   1      float64  1.5   1.5  1.5  {plain or ''}".rstrip(),
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, 2, 6], np.uint8), ["1", "3", "6"]),
        (np.array([True, False, True, True]), ["False", "0.75", "True"]),
        (np.array([3 + 4j, 0]), ["0", "2.5", "5"]),
        (np.array([np.nan, 1.0, 2.0]), ["1", "1.5", "2"]),
        (np.array([np.nan, np.nan]), ["nan", "nan", "nan"]),
        (np.array([np.inf, 0.0]), ["0", "inf", "inf"]),
        (np.ma.MaskedArray([0, 3, 5], mask=[True, False, False]), ["3", "4", "5"]),
        (np.ma.MaskedArray([0, 3], mask=True), ["-", "-", "-"]),
        (np.full(1000, 60000.0, np.float16), ["60000", "60000", "60000"]),
        (np.array([1e-7, 1 / 3]), ["1e-07", "0.1667", "0.3333"]),
        (np.array([2**63], np.uint64), ["9.223e+18"] * 3),
        (np.array([123456789]), ["123456789"] * 3),
        (np.array([None, 1]), ["-", "-", "-"]),
        (np.array(["a"]), ["-", "-", "-"]),
        (np.zeros(2, [("a", "f4")]), ["-", "-", "-"]),
        (np.zeros((0, 3)), ["-", "-", "-"]),
        (np.array("2026-01-01", "M8[s]"), ["-", "-", "-"]),
    ],
    ids=lambda value: None if isinstance(value, np.ndarray) else " ".join(value),
)
def test_numbers(values, expected):
    assert cells(values) == expected


def lines_of(kind, axes, values):
    """The last three columns of each line, by the name of the line."""
    result = Result(kind, v=values)
    result.extra_axes = {"v": tuple(axes)}
    header, *lines = summary_table({"u": result}).splitlines()
    names = slice(header.index("name"), header.index("kind"))
    return {line[names].strip(): line.split()[-3:] for line in lines}


VECTOR = Axis(name="component", labels=("y", "x"))


def test_components_of_vectors_have_lines_of_their_own():
    values = np.ma.MaskedArray([[[1, 50], [3, 70]], [[9, 9], [9, 9]]])
    values[1] = np.ma.masked
    assert lines_of("nav", [VECTOR], values) == {
        "v[y]": ["1", "2", "3"],
        "v[x]": ["50", "60", "70"],
    }


@pytest.mark.parametrize(
    ("kind", "axis"), [("nav", Axis(name="radius", unit="px")), ("single", VECTOR)]
)
def test_what_has_one_line(kind, axis):
    assert list(lines_of(kind, [axis], np.zeros((3, 2)))) == ["v"]
