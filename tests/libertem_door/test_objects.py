"""LiberTEM's own UDF objects, run here on any grid: the numbers of LiberTEM itself."""

import dask.array as da
import numpy as np
import pytest

pytest.importorskip("libertem", reason="libertem is in the extra of that name")
pytest.importorskip("libertem_blobfinder", reason="libertem-blobfinder is in the extra libertem")

import libertem.api as lt

import udfdask as ud
from counting import CountedData, counts
from libertem_objects import GRIDS, OBJECTS, ONE_FRAME, ROI, make_data

pytestmark = pytest.mark.filterwarnings(
    "ignore::udfdask.UDFWarning",
    "ignore:'where' used without 'out':UserWarning",  # LiberTEM's CoMUDF about its own code
)
SYNC = {"scheduler": "synchronous"}


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def theirs(data):
    """What LiberTEM gives for a UDF."""
    with lt.Context.make_with("inline") as context:
        dataset = context.load("memory", data=data, sig_dims=2, num_partitions=3)
        yield lambda udf, roi: context.run_udf(dataset=dataset, udf=udf, roi=roi)


def region(name, roi):
    """A region for a UDF: one frame for the one that holds all frames in memory."""
    return ONE_FRAME if name == "PickUDF" else roi


def assert_like_theirs(result, expected):
    """Equal up to the rounding of other orders of summing, in LiberTEM's shape and dtype."""
    assert set(result) == set(expected)
    for name, buffer in expected.items():
        values = np.asarray(buffer.data)
        ours = np.asarray(result[name]).reshape(values.shape)
        assert ours.dtype == buffer.dtype  # as declared; LiberTEM keeps what get_results returns
        if values.dtype.kind in "iub":
            np.testing.assert_array_equal(ours, values)
        else:
            np.testing.assert_allclose(ours, values, rtol=1e-5, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "region"])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", OBJECTS)
def test_on_any_grid(data, theirs, name, grid, roi, tmp_path):
    roi = region(name, roi)
    counted = CountedData(data, tmp_path)
    x = da.from_array(counted, chunks=GRIDS[grid], asarray=True, meta=np.empty((0,) * 4, "u2"))
    result = ud.run_udf(x, OBJECTS[name](), roi=roi).compute(**SYNC)
    assert set(counts(tmp_path).values()) == {1}
    assert_like_theirs(result, theirs(OBJECTS[name](), roi))
