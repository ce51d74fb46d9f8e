"""LiberTEM's own UDF objects, run here on any grid: the numbers of LiberTEM itself."""

import os
import re
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

pytest.importorskip("libertem", reason="libertem is in the extra of that name")
pytest.importorskip("libertem_blobfinder", reason="libertem-blobfinder is in the extra libertem")

import udfdask as ud
from counting import CountedData, counts
from libertem_objects import (
    EXACT,
    GRIDS,
    NO_THIN_SCANS,
    OBJECTS,
    OF_TILES,
    ONE_FRAME,
    PARTITIONS,
    ROI,
    THIN,
)
from making import SYNC
from udfdask.libertem import adapt
from udfdask.testing import UDFCheckError, check_udf

pytestmark = pytest.mark.filterwarnings(
    "ignore::udfdask.UDFWarning",
    "ignore:'where' used without 'out':UserWarning",  # LiberTEM's CoMUDF about its own code
)
PAGE = (
    Path(__file__).resolve().parents[2] / "docs" / "user-guide" / "libraries" / "libertem-udfs.md"
)
MARK = "<!-- The tests write this table: tests/libertem_door/test_objects.py. -->\n"


def theirs(context, data, udf, roi=None, partitions=None):
    """What LiberTEM gives for a UDF."""
    n = partitions or min(3, len(data))
    dataset = context.load("memory", data=data, sig_dims=2, num_partitions=n)
    return context.run_udf(dataset=dataset, udf=udf, roi=roi)


def assert_like_theirs(result, expected, *, exact):
    """Equal, or up to the rounding of other orders of summing."""
    assert set(result) == set(expected)
    for name, buffer in expected.items():
        values = np.asarray(buffer.data)
        # PickUDF has an axis for the frames here
        ours = np.asarray(result[name]).reshape(values.shape)
        assert ours.dtype == buffer.dtype  # as declared; LiberTEM keeps what get_results returns
        if exact or values.dtype.kind in "iub":
            np.testing.assert_array_equal(ours, values)
        else:
            np.testing.assert_allclose(ours, values, rtol=1e-5, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "region"])
@pytest.mark.parametrize(
    ("name", "grid"),
    [(name, grid) for name in OBJECTS for grid in (PARTITIONS if name in OF_TILES else GRIDS)],
)
def test_on_any_grid(data, context, name, grid, roi, tmp_path):
    roi = ONE_FRAME if name == "PickUDF" else roi
    x = da.from_array(CountedData(data, tmp_path), chunks=GRIDS[grid], asarray=True)
    counts(tmp_path)
    result = ud.run_udf(x, OBJECTS[name](), roi=roi).compute(**SYNC)
    assert set(counts(tmp_path).values()) == {1}
    expected = theirs(context, data, OBJECTS[name](), roi, PARTITIONS.get(grid))
    assert_like_theirs(result, expected, exact=name in EXACT)


@pytest.mark.parametrize("name", OF_TILES)
def test_what_depends_on_tiles(data, context, name):
    """`check_udf` finds what changes in LiberTEM with the number of partitions."""
    one, three = (theirs(context, data, OBJECTS[name](), partitions=n) for n in (1, 3))
    with pytest.raises(AssertionError):
        assert_like_theirs({k: v.data for k, v in one.items()}, three, exact=False)
    with pytest.raises(UDFCheckError) as found:
        check_udf(adapt(OBJECTS[name]()), data[:2, :2])
    assert found.value.law == "tiles_do_not_show"


@pytest.mark.parametrize("thin", THIN)
@pytest.mark.parametrize("name", sorted(OBJECTS.keys() - NO_THIN_SCANS - OF_TILES))
def test_with_an_axis_of_size_one(data, context, name, thin):
    shape, chunks = THIN[thin]
    part = np.ascontiguousarray(data[: shape[0], : shape[1]])
    roi = np.arange(shape[0] * shape[1]).reshape(shape[:2]) == 4 if name == "PickUDF" else None
    result = ud.run_udf(da.from_array(part, chunks=chunks), OBJECTS[name](), roi=roi)
    expected = theirs(context, part, OBJECTS[name](), roi)
    assert_like_theirs(result.compute(**SYNC), expected, exact=name in EXACT)


@pytest.mark.full  # numba compiles it for seconds
@pytest.mark.parametrize("grid", ["rows", "all axes, ragged"])
@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "region"])
def test_ssb_in_its_own_threads(data, context, grid, roi):
    """For tasks of four threads, SSB_UDF has another method: a loop in numba's threads."""
    with dask.config.set({"udfdask.threads-per-task": 4}):
        result = ud.run_udf(da.from_array(data, chunks=GRIDS[grid]), OBJECTS["SSB_UDF"](), roi=roi)
        result = result.compute(**SYNC)
    assert_like_theirs(result, theirs(context, data, OBJECTS["SSB_UDF"](), roi), exact=False)


def test_the_table_in_the_documentation():
    """With ``UDFDASK_WRITE_TABLES=1``, the table is written first."""
    lines = ["| UDF | from | results | numbers |", "| --- | --- | --- | --- |"]
    for name, make in OBJECTS.items():
        udf = make()
        package = type(udf).__module__.partition(".")[0].replace("_", "-")
        if package == "libertem-objects":
            package = "the tests" if name.startswith("a UDF") else "libertem-blobfinder"
        x = da.zeros((6, 8, 32, 32), dtype=np.uint16, chunks=(2, 8, 32, 32))
        roi = ONE_FRAME if name == "PickUDF" else None
        results = ", ".join(f"`{each}`" for each in ud.run_udf(x, udf, roi=roi))
        title = name if name.startswith("a UDF") else re.sub(r"^\w+", r"`\g<0>`", name)
        numbers = "equal" if name in EXACT else "up to rounding"
        numbers += ", if chunks are LiberTEM's partitions" * (name in OF_TILES)
        lines.append(f"| {title} | {package} | {results or 'none'} | {numbers} |")
    table = "\n".join(lines) + "\n"
    text = PAGE.read_text("utf-8")
    before, mark, _ = text.partition(MARK)
    assert mark
    if os.environ.get("UDFDASK_WRITE_TABLES"):
        PAGE.write_text(f"{before}{MARK}\n{table}", "utf-8")
    assert PAGE.read_text("utf-8") == f"{before}{MARK}\n{table}"
