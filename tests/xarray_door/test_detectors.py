"""Images of virtual detectors of DataArrays and dask arrays; masks that are DataArrays."""

import numpy as np
import pytest

import udfdask.dask  # noqa: F401 - adds the accessor
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import assert_eq, raise_if_dask_computes
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
        image = data.udf.virtual_image(CHANGES[change](mask), sig_dims=SIG)
        assert image.dims == ("y", "x")
    np.testing.assert_array_equal(image, image_of(array, mask))


@pytest.mark.parametrize(
    ("detector", "numbers"),
    [
        ("disk", {"r": 3, "center": "middle"}),
        ("ring", {"ri": 1, "ro": 3, "cx": 4.5, "cy": 4}),
        ("point", {"x": 9, "y": 0}),
    ],
)
def test_shapes_are_those_of_virtual_detectors(array, detector, numbers):
    image = array.udf.virtual_image(detector, sig_dims=SIG, roi=np.s_[1:], **numbers)
    whole = array.udf.run_udf(VirtualDetectorUDF(detector, **numbers), sig_dims=SIG, roi=np.s_[1:])
    xr.testing.assert_identical(image, whole["intensity"].rename("scan"))
    plain = array.data.udf.virtual_image(detector, roi=np.s_[1:], **numbers)
    assert_eq(plain, image.data)
    assert image.attrs == {"beam": 200, "units": "counts", "long_name": "electrons"}
    assert not array.udf.virtual_image(detector, SIG, keep_attrs=False, **numbers).attrs


def test_a_coordinate_may_have_the_name_of_the_result(array):
    data = array.assign_coords(intensity=("y", np.arange(4)))
    assert data.udf.virtual_image(r=2).coords["intensity"].shape == (4,)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda m: m.chunk(), ArgumentTypeError, r"the mask is lazy: pass mask\.compute\(\)"),
        (lambda m: m.to_dataset(name="a"), ArgumentTypeError, "Dataset"),
        (
            lambda m: m.rename(kx="qx"),
            ArgumentValueError,
            r"dimensions \('ky', 'qx'\), but the sig",
        ),
        (lambda m: m[0], ArgumentValueError, r"dimensions \('kx',\), but the signal.*is one mask"),
        (
            lambda m: m[:, 1:],
            ArgumentValueError,
            "mask has 9 positions along 'kx', the data have 10",
        ),
        (lambda m: m.assign_coords(kx=m["kx"] + 1), ArgumentValueError, "different coordinates"),
        (lambda m: m * 2, ArgumentValueError, r"no weights: use ApplyMasksUDF\(mask\)"),
        (lambda m: [m], ArgumentTypeError, "one shape or mask, not a list of them"),
    ],
    ids="lazy dataset renamed row cropped shifted weights list".split(),
)
def test_masks_that_do_not_fit(array, mask, change, error, match):
    with raise_if_dask_computes(), pytest.raises(error, match=match):
        array.udf.virtual_image(change(mask), sig_dims=SIG)
