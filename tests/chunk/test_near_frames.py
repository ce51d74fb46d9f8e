"""Blocks in which frames are nearer in memory than pixels, as in arrays whose scan comes last."""

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udfdask.testing import run_reference


class TilesUDF(ud.UDF):
    """Copies the frames, and says whether their pixels are neighbors in memory."""

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self):
        sig = self.meta.dataset_shape.sig.to_tuple()
        return {
            "frames": self.buffer("nav", extra_shape=sig, dtype=self.meta.input_dtype),
            "together": self.buffer("nav", dtype=bool),
        }

    def process_tile(self, tile):
        self.results.frames[(slice(None), *self.meta.sig_slice.get())] = tile
        self.results.together[:] = tile.strides[-1] == tile.itemsize
        assert not tile.flags.writeable


@pytest.mark.parametrize(
    ("shape", "sig_dims", "order"),
    [
        ((4, 6, 20, 30), 2, (2, 3, 0, 1)),
        ((4, 6, 20, 30), 2, (2, 0, 3, 1)),
        ((24, 300), 1, (1, 0)),
        ((4, 6, 5, 9, 30), 3, (4, 3, 2, 1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", ">u2", "f4", "c8"])
@pytest.mark.parametrize("with_roi", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_tiles_have_the_values_and_pixels_in_order(shape, sig_dims, order, dtype, with_roi, cut):
    rng = np.random.default_rng(3)
    data = rng.integers(0, 200, shape).astype(dtype)
    stored = np.ascontiguousarray(data.transpose(order))
    chunks = tuple(-(-n // 2) if cut else n for n in stored.shape)
    array = da.from_array(stored, chunks=chunks).transpose(*map(order.index, range(data.ndim)))
    nav = shape[:-sig_dims]
    roi = rng.random(nav) < 0.7 if with_roi else np.ones(nav, bool)
    result = ud.run_udf(array, TilesUDF(), sig_dims=sig_dims, roi=roi if with_roi else None)
    found = result.compute(scheduler="sync")
    np.testing.assert_array_equal(found["frames"][roi], data[roi])
    assert found["together"][roi].all()


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
@pytest.mark.parametrize("udf", [cls() for cls in udf_zoo.ZOO], ids=lambda udf: type(udf).__name__)
def test_results_are_those_of_other_arrays(udf):
    data = np.random.default_rng(5).integers(0, 90, (3, 4, 9, 15)).astype("int32")
    array = da.from_array(data.transpose(2, 3, 0, 1).copy(), chunks=(5, 15, 2, 4))
    found = ud.run_udf(array.transpose(2, 3, 0, 1), udf).compute(scheduler="sync")
    for name, wanted in run_reference(data, udf).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-3, err_msg=name)
