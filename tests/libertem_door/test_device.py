"""UDFs of LiberTEM on a device: the module and the arrays of `merge` and `get_results`."""

import dask.array as da
import numpy as np
import pytest

pytest.importorskip("libertem", reason="libertem is in the extra of that name")

from libertem.udf import UDF as TheirUDF
from libertem.udf.logsum import LogsumUDF
from libertem.udf.stddev import StdDevUDF
from libertem.udf.sum import SumUDF
from libertem.udf.sumsigudf import SumSigUDF

import udfdask as ud
from device_udfs import MODULES, cupy_is, sent
from making import SYNC

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
DATA = np.random.default_rng(0).poisson(9, (4, 6, 8, 8)).astype("float32")


class SpectrumUDF(TheirUDF):
    """The spectrum of the sum of all frames, and the module that each method has computed with."""

    def get_backends(self):
        return self.params.backends

    def get_result_buffers(self):
        return {
            "total": self.buffer(kind="sig", dtype="float32", where="device"),
            "spectrum": self.buffer(kind="sig", dtype="float32", use="result_only"),
            "module": self.buffer(kind="single", dtype=object, extra_shape=(2,)),
        }

    def process_tile(self, tile):
        assert isinstance(tile, self.xp.ndarray)
        self.results.total[:] += tile.sum(axis=0)

    def merge(self, dest, src):
        assert type(dest.total) is type(src.total) is np.ndarray
        both = self.xp.asarray(dest.total) + self.xp.asarray(src.total)
        dest.total[:] = self.forbuf(both, dest.total)
        dest.module[0] = self.xp.__name__

    def get_results(self):
        assert type(self.results.total) is np.ndarray
        spectrum = self.xp.abs(self.xp.fft.fft2(self.xp.asarray(self.results.total)))
        self.results.module[1] = self.xp.__name__
        return {"spectrum": spectrum.astype("float32")}


@pytest.mark.parametrize("what", MODULES)
@pytest.mark.parametrize("backends", [("numpy", "cupy"), ("cupy",), ("numpy",)])
@pytest.mark.parametrize("on_device", [False, True])
def test_xp_is_that_of_the_chunks_and_arrays_are_numpy_s(what, backends, on_device):
    x, total = da.from_array(DATA, chunks=(2, 3, 8, 8)), DATA.sum(axis=(0, 1))
    module = "cupy" if on_device and "cupy" in backends else "numpy"
    with cupy_is(what) as cupy:
        array = sent(cupy, x) if on_device else x
        result = ud.run_udf(array, SpectrumUDF(backends=backends))
        assert isinstance(result["total"].compute(**SYNC), cupy.ndarray) == on_device
        *_, last = ud.run_udf_iter(array, SpectrumUDF(backends=backends))
        for found in (result.compute(**SYNC), last.buffers[0]):
            np.testing.assert_allclose(found["total"], total, rtol=1e-6)
            np.testing.assert_allclose(found["spectrum"], np.abs(np.fft.fft2(total)), rtol=1e-4)
            assert list(found["module"]) == [module, module]


@pytest.mark.parametrize("what", MODULES)
@pytest.mark.parametrize("make", [SumUDF, SumSigUDF, LogsumUDF, StdDevUDF])
def test_chunks_on_the_device_give_the_same_results(what, make):
    x = da.from_array(DATA, chunks=(2, 3, 8, 8))
    expected = ud.run_udf(x, make()).compute(**SYNC)
    with cupy_is(what) as cupy:
        found = ud.run_udf(sent(cupy, x), make()).compute(**SYNC)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)
