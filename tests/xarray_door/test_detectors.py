"""Images of virtual detectors of DataArrays; masks that are DataArrays."""

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import VirtualDetectorUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")

SIG = ("ky", "kx")


@pytest.fixture
def mask(array):
    """A mask with the coordinates of kx, which is not symmetric."""
    values = np.random.default_rng(1).random((8, 10)) < 0.3
    return xr.DataArray(values, dims=SIG, coords={"kx": array["kx"]})


def image_of(array, mask):
    """What xarray itself sums."""
    return array.where(mask).sum(SIG)


def virtual_image(array, mask):
    return array.udf.run_udf(VirtualDetectorUDF(mask), sig_dims=SIG)["intensity"]


CHANGES = {
    "as it is": lambda mask: mask,
    "without coordinates": lambda mask: mask.drop_vars("kx"),
    "numbers": lambda mask: mask.astype("float32"),
    "array": lambda mask: mask.values,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moved", [False, True])
def test_a_mask_is_aligned(array, mask, change, moved):
    data = array.transpose("kx", "y", "ky", "x") if moved else array
    with raise_if_dask_computes():
        image = virtual_image(data, CHANGES[change](mask))
        assert image.dims == ("y", "x")
    np.testing.assert_array_equal(image, image_of(array, mask))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: m.chunk(), ArgumentTypeError),
        (lambda m: m.to_dataset(name="a"), ArgumentTypeError),
        (lambda m: m.rename(kx="qx"), ArgumentValueError),
        (lambda m: m[0], ArgumentValueError),
        (lambda m: m[:, 1:], ArgumentValueError),
        (lambda m: m.assign_coords(kx=m["kx"] + 1), ArgumentValueError),
        (lambda m: m * 2, ArgumentValueError),
        (lambda m: [m], ArgumentTypeError),
    ],
    ids="lazy dataset renamed row cropped shifted weights list".split(),
)
def test_masks_that_do_not_fit(array, mask, change, error):
    with raise_if_dask_computes(), pytest.raises(error):
        virtual_image(array, change(mask))
