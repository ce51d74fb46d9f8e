"""The axes of results are those of the data, through every door, whatever is done on the way.

The reference is plain: vectors of positions, cut and transposed as NumPy does.
"""

import tempfile
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.io import open_file
from udfdask.udfs import SumSigUDF, SumUDF

pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
pytest.importorskip("h5py", reason="h5py is in the io extra")
pytest.importorskip("zarr", minversion="3", reason="xarray writes zarr only with zarr 3")

from axes_doors import DOORS, N_NAV, Dim, Scan, read_axes, same_axes, to_axis
from signal_cases import Kinds

SHAPE = (4, 5, 3, 4)
NAMES = ("y", "x µ", "角度", "ky", "kx", "time")
UNITS = (None, "nm", "mrad", "1/Å", "µm", "keV")
SWAPPED = (1, 0, 3, 2)


@st.composite
def dims(draw, name, n):
    """A dimension with positions that rise or fall, evenly or not."""
    steps = draw(st.one_of(st.just([1] * (n - 1)), st.lists(st.integers(1, 5), min_size=n - 1)))
    scale = draw(st.sampled_from([1.0, 0.25, -0.5, -3.0]))
    offset = draw(st.sampled_from([0.0, -2.0, 1e3]))
    positions = offset + scale * np.cumsum([0, *steps[: n - 1]])
    return Dim(name, draw(st.sampled_from(UNITS)), positions)


@st.composite
def scans(draw):
    names = draw(st.permutations(NAMES))
    values = np.arange(np.prod(SHAPE), dtype="int32").reshape(SHAPE)
    each = tuple(draw(dims(name, n)) for name, n in zip(names, SHAPE, strict=False))
    return Scan(values, each, draw(st.sampled_from([None, "counts"])))


parts = st.tuples(
    *(
        st.builds(slice, st.integers(0, n - 3), st.sampled_from([None, n - 1 if n > 3 else n]))
        for n in SHAPE
    )
)
"""Slices that leave at least two positions: the step of a single one is not known."""

ROI = np.random.default_rng(0).random(SHAPE[:N_NAV]) > 0.4


@st.composite
def changes(draw):
    """What is done before the run, and options of the run."""
    kind = draw(st.sampled_from(["none", "mask", "slice", "cut", "transposed", "descan"]))
    return kind, draw(parts)


def expected_of(scan):
    """The axes and the unit of each result of `Kinds`."""
    of_dims = [(dim.name, dim.unit, dim.positions) for dim in scan.dims]
    nav, sig = of_dims[:N_NAV], of_dims[N_NAV:]
    end, rest = ("end", None, np.array(["min", "max"])), ("rest", None, np.arange(1))
    power = ("power", "1", np.array([1.0, 3.0, 5.0]))
    return {
        "sums": (nav, None),
        "ends": ([*nav, end], None),
        "total": (sig, scan.unit),
        "powers": ([*sig, power], None),
        "count": ([], None),
        "pair": ([end, rest], None),
    }


@pytest.mark.parametrize("name", DOORS)
@given(scan=scans(), change=changes())
@settings(max_examples=examples(60, 6))
def test_axes_come_out_as_they_went_in(name, scan, change):
    kind, cut = change
    options = {}
    if getattr(DOORS[name], "encoding", None) == "latin1":
        scan = scan.renamed({"角度": "é"})
    with tempfile.TemporaryDirectory() as folder:
        door = DOORS[name](scan, Path(folder))
        if kind == "cut":
            door.cut(cut)
            scan = scan.cut(cut)
        elif kind == "transposed":
            door.transpose(SWAPPED)
            scan = scan.transpose(SWAPPED)
        elif kind == "mask":
            options["roi"] = ROI
        elif kind == "slice":
            options["roi"] = cut[:N_NAV]
        elif kind == "descan":
            options["descan"] = np.ones((*SHAPE[:N_NAV], 2), dtype=int)
        found = door.found(Kinds(), **options)
    expected = expected_of(scan)
    assert found.keys() == expected.keys()
    for result, (axes, unit) in expected.items():
        same_axes(found[result][0], axes)
        assert found[result][1] == unit


@given(scan=scans())
@settings(max_examples=examples(60, 6))
def test_results_that_are_stored_and_opened_have_their_axes(scan):
    axes = [to_axis(dim) for dim in scan.dims]
    array = da.from_array(scan.values, chunks=(1, -1, -1, -1))
    result = ud.run_udf(array, Kinds(), axes=axes, unit=scan.unit)
    with tempfile.TemporaryDirectory() as folder:
        path = result.to_zarr(Path(folder) / "results.zarr")
        for name in ("sums", "total", "powers"):
            opened = open_file(path, dataset=name)
            expected, unit = expected_of(scan)[name]
            same_axes(read_axes(opened.axes, opened.array.shape), expected)
            assert opened.unit == unit


@given(scan=scans())
def test_a_result_is_the_data_of_another_run(scan):
    axes = [to_axis(dim) for dim in scan.dims]
    array = da.from_array(scan.values, chunks=(1, -1, -1, -1))
    image = ud.run_udf(array, SumSigUDF(), axes=axes, unit=scan.unit)
    again = ud.run_udf(
        image["intensity"],
        SumUDF(),
        sig_dims=1,
        axes=image.axes["intensity"],
        unit=image.units["intensity"],
    )
    (expected,) = [(dim.name, dim.unit, dim.positions) for dim in scan.dims[1:N_NAV]]
    same_axes(read_axes(again.axes["intensity"], again["intensity"].shape), [expected])
    assert again.units["intensity"] == scan.unit
