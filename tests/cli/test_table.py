"""The table of results: what each line says."""

from types import SimpleNamespace

import numpy as np
import pytest

from udfdask import Axis
from udfdask.cli.terminal import summary_table


class Result(dict):
    """A computed result, all of one kind, nothing of it masked unless it is a masked array."""

    def __init__(self, kind="nav", **arrays):
        super().__init__({name: np.asarray(values) for name, values in arrays.items()})
        self.buffers = {name: SimpleNamespace(kind=kind) for name in arrays}
        self.units = {}
        self.extra_axes = {}
        self.valid_mask = {
            name: ~np.broadcast_to(getattr(values, "mask", False), np.shape(values))
            for name, values in arrays.items()
        }


def cells(values):
    _, line = summary_table({"u": Result(r=values)}).splitlines()
    return line.split()[-3:]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, 2, 6], np.uint8), ["1", "3", "6"]),
        (np.array([True, False, True, True]), ["0", "0.75", "1"]),
        (np.array([3 + 4j, 0]), ["0", "2.5", "5"]),
        (np.array([np.nan, 1.0, 2.0]), ["1", "1.5", "2"]),
        (np.array([np.nan, np.nan]), ["-", "-", "-"]),
        (np.ma.MaskedArray([0, 3, 5], mask=[True, False, False]), ["3", "4", "5"]),
        (np.full(1000, 60000.0, np.float16), ["60000", "60000", "60000"]),
        (np.array([1e-7, 1 / 3]), ["1e-07", "0.166667", "0.333333"]),
        (np.array(["a"]), ["-", "-", "-"]),
        (np.zeros((0, 3)), ["-", "-", "-"]),
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


def test_units_are_the_last_column():
    result = Result(intensity=[2.0, 3.0])
    result.units["intensity"] = "counts"
    header, line = summary_table({"sum": result}).splitlines()
    assert (header.split()[-1], line.split()[-1]) == ("unit", "counts")
