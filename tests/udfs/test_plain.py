"""UDFs that have no test file of their own: PickUDF, NoOpUDF and AutoUDF."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC
from udfdask.udfs import PickUDF


@pytest.mark.parametrize("dtype", ["?", "u2", ">i4", "f2", "c8", "M8[s]", "m8[s]"])
@pytest.mark.parametrize("roi", [None, (1, 2), np.s_[1:, 1:3], np.zeros((3, 4), dtype=bool)])
@pytest.mark.parametrize("chunks", [(3, 4, 5, 6), (2, 3, 4, 6)])
def test_pick_gives_the_frames_of_the_region_as_they_are(dtype, roi, chunks):
    data = np.arange(3 * 4 * 5 * 6).reshape(3, 4, 5, 6).astype(dtype)
    found = ud.run_udf(da.from_array(data, chunks=chunks), PickUDF(), roi=roi)["intensity"]
    chosen = data if roi is None else data[roi]
    wanted = chosen.reshape((-1, 5, 6))
    assert found.dtype == data.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found.compute(**SYNC), wanted)


def test_pick_warns_of_more_than_256_mib():
    x = da.zeros((17, 16, 1024, 512), dtype="u2", chunks=(1, 16, 1024, 512))
    with pytest.warns(ud.UDFWarning, match=r"holds 272 frames, 272 MiB, in memory: select fewer"):
        ud.run_udf(x, PickUDF())
    ud.run_udf(x, PickUDF(), roi=np.s_[:16])
