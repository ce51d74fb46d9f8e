"""A missing device raises an error in the plan, or in the first task that needs it."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from device_udfs import Both
from udfdask.errors import DeviceError

X = da.ones((4, 4, 8, 8), chunks=(2, 4, 8, 8), dtype="float32")


class WithCuda(ud.UDF):
    def get_backends(self):
        return "cuda"

    def get_result_buffers(self):
        return {"total": self.buffer("nav", dtype="float64", where="device")}

    def process_tile(self, tile):
        self.results.total[:] += tile.sum(axis=(1, 2)) + self.meta.device_number


def test_cuda_without_a_device(no_device):
    result = ud.run_udf(X, WithCuda())
    for compute in (ud.compute, dask.compute):
        with pytest.raises(DeviceError, match=r"carry the resource tag CUDA=1.*offer 'numpy'"):
            compute(result)


def test_cuda_on_a_worker_that_carries_the_tag(no_device):
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            resources={"CUDA": 1},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        total = client.compute(ud.run_udf(X, WithCuda())["total"]).result()
    assert (total == 64).all()


def test_cupy_without_cupy(no_device):
    result = ud.run_udf(X, Both(), backends="cupy")
    with pytest.raises(DeviceError, match=r"pip install 'udfdask\[cupy\]'"):
        dask.compute(result["rows"])


@pytest.mark.parametrize("dtype", ["datetime64[s]", "longdouble"])
def test_dtypes_that_cupy_does_not_have_are_refused_in_the_plan(dtype):
    x = da.zeros((2, 2, 4, 4), dtype=dtype)
    with pytest.raises(
        DeviceError, match=rf"no arrays of dtype {np.dtype(dtype)}".replace("[", r"\[")
    ):
        ud.run_udf(x, Both(("cupy",), native=True))
