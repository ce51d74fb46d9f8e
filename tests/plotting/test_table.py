"""The table of results: what each line says."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfdask import Axis, run_udf
from udfdask.plotting import summary_table
from udfdask.plotting.table import MOST_PARTS
from udfdask.udfs import CoMUDF


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


def test_columns_are_aligned():
    table = summary_table(
        {"sum": Result("sig", intensity=np.zeros((4, 5))), "x": Result("nav", a=[1.5, -123456.0])}
    )
    assert table.splitlines() == [
        "udf  name       kind  shape  dtype        min      mean  max",
        "sum  intensity  sig   4 x 5  float64        0         0    0",
        "x    a          nav   2      float64  -123456  -61727.2  1.5",
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


def test_shapes_and_types_in_words():
    table = summary_table({"u": Result(r=np.float32(3), s=np.zeros((1, 2), [("a", "f4")]))})
    assert "one value  float32" in table
    assert "structured" in table


def test_a_udf_without_results():
    assert summary_table({"noop": Result()}).splitlines()[1].split() == ["noop", *"-------"]


def lines_of(kind, axes, values):
    """The last three columns of each line, by the name of the line."""
    result = Result(kind, v=values)
    result.extra_axes = {"v": tuple(axes)}
    header, *lines = summary_table({"u": result}).splitlines()
    names = slice(header.index("name"), header.index("kind"))
    return {line[names].strip(): line.split()[-3:] for line in lines}


VECTOR = Axis(name="component", labels=("y", "x"))


@pytest.mark.parametrize(("axis", "names"), [(VECTOR, "yx"), (Axis(name="peak"), "01")])
def test_components_of_vectors_have_lines_of_their_own(axis, names):
    values = np.ma.MaskedArray([[[1, 50], [3, 70]], [[9, 9], [9, 9]]])
    values[1] = np.ma.masked
    assert lines_of("nav", [axis], values) == {
        f"v[{names[0]}]": ["1", "2", "3"],
        f"v[{names[1]}]": ["50", "60", "70"],
    }


def test_labels_are_in_the_order_of_the_axes():
    term = Axis(name="term", labels=("a", "b"))
    assert lines_of("nav", [term, VECTOR], np.array([[[1, 2], [3, 4]]])) == {
        "v[a, y]": ["1"] * 3,
        "v[a, x]": ["2"] * 3,
        "v[b, y]": ["3"] * 3,
        "v[b, x]": ["4"] * 3,
    }


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    labeled=st.integers(0, 7),
    nav=st.sampled_from([(3,), (2, 2)]),
)
def test_all_lines_together_describe_all_values(sizes, labeled, nav):
    """No more lines than MOST_PARTS, and each value is in one of them."""
    axes = [
        Axis(name=f"a{k}", labels=tuple("abcde"[:n]) if labeled >> k & 1 else None)
        for k, n in enumerate(sizes)
    ]
    values = np.arange(np.prod([*nav, *sizes], dtype=int)).reshape(*nav, *sizes)
    lines = lines_of("nav", axes, values)
    assert 1 <= len(lines) <= MOST_PARTS
    means = [float(line[1]) for line in lines.values()]
    assert np.mean(means) == pytest.approx(values.mean(), rel=1e-3)
    parts = [n for n, axis in zip(sizes, axes, strict=True) if n > 1 or axis.labels]
    if np.prod(parts) <= MOST_PARTS:
        assert len(lines) == np.prod(parts)


@pytest.mark.parametrize(
    ("kind", "axis", "n"),
    [
        ("nav", Axis(name="radius", unit="px"), 2),
        ("nav", VECTOR, 0),
        ("nav", Axis(name="mask"), 1),
        ("nav", Axis(name="mask"), MOST_PARTS + 1),
        ("single", VECTOR, 2),
    ],
    ids=["curve", "empty", "one", "many", "one vector for the run"],
)
def test_what_has_one_line(kind, axis, n):
    assert list(lines_of(kind, [axis], np.zeros((3, n)))) == ["v"]


def names_of(kind, **arrays):
    """The names of the lines of a result whose `field` and `pair` are vectors."""
    result = Result(kind, **arrays)
    result.extra_axes = {name: (VECTOR,) for name in ("field", "pair") if name in arrays}
    header, *lines = summary_table({"u": result}).splitlines()
    names = slice(header.index("name"), header.index("kind"))
    return [line[names].strip() for line in lines]


def test_a_component_has_one_line():
    field = np.array([[1.0, 2.0], [3.0, np.nan]])
    y, x = field.T
    both = ["field[y]", "field[x]"]
    assert names_of("nav", field=field, field_y=y, field_x=x, size=y) == [*both, "size"]
    assert names_of("nav", field=field, field_y=x, field_x=x) == [*both, "field_y"]
    assert names_of("nav", field=field, field_z=y, pair_y=y) == [*both, "field_z", "pair_y"]
    masked = np.ma.MaskedArray(y, mask=[True, False])
    assert names_of("nav", field=field, field_y=masked) == [*both, "field_y"]
    # the components of one vector for the whole run have no lines of their own
    assert names_of("single", field=field[0], field_y=1.0) == ["field", "field_y"]


def test_a_regression_of_zeros_has_no_line():
    zeros = np.zeros((3, 2))
    assert names_of("single", regression=zeros, other=zeros) == ["other"]
    assert names_of("single", regression=zeros + 1) == ["regression"]
    assert names_of("nav", regression=zeros) == ["regression"]


def test_lines_of_a_center_of_mass():
    x = da.from_array(np.random.default_rng(1).random((4, 5, 6, 6)), chunks=3)
    lines = summary_table({"com": run_udf(x, CoMUDF()).compute()}).splitlines()
    vectors = ["raw_com[y]", "raw_com[x]", "raw_shifts[y]", "raw_shifts[x]", "field[y]", "field[x]"]
    names = [*vectors, "magnitude", "divergence", "curl"]
    assert [line.split()[1] for line in lines[1:]] == names
    fitted = summary_table({"com": run_udf(x, CoMUDF(regression=1)).compute()})
    assert [line.split()[1] for line in fitted.splitlines()[1:]] == [*names, "regression"]
