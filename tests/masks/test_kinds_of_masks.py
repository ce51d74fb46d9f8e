"""Masks that only an accessor can read, of long doubles, and of different shapes."""

from collections import OrderedDict
from types import MappingProxyType

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC
from sparse_data import sparse_chunks
from udfdask.udfs import ApplyMasksUDF

DATA = (np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5) % 7).astype("u2")
X = da.from_array(DATA, chunks=(1, 3, 4, 5))
MASK = np.linspace(0, 1, 20).reshape(4, 5)


@pytest.mark.parametrize("mapping", [dict, OrderedDict, lambda m: MappingProxyType(dict(m)), None])
def test_masks_with_labels_need_an_accessor(mapping):
    """A Dataset is not taken for a mapping of masks."""
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    array = xr.DataArray(MASK, dims=("ky", "kx"))
    named = mapping({"a": array}) if mapping else array.to_dataset(name="a")
    kind = "DataArray" if mapping else "a mask that is a Dataset"
    with pytest.raises(ud.ArgumentTypeError, match=f"{kind} needs the axes of the data"):
        ud.run_udf(X, ApplyMasksUDF(named))


@pytest.mark.parametrize("form", ["COO", "GCXS"])
@pytest.mark.parametrize(("masks", "wanted"), [("g", None), ("G", None), ("f8", "g")])
def test_long_doubles_on_sparse_chunks(form, masks, wanted):
    x = sparse_chunks(DATA, (1, 3, 4, 5), form, 2)
    stack = np.stack([MASK, MASK**2]).astype(masks) * (1 + 1j if masks == "G" else 1)
    found = ud.run_udf(x, ApplyMasksUDF(stack, mask_dtype=wanted))["intensity"].compute(**SYNC)
    assert found.dtype.char == wanted or found.dtype.char == masks
    np.testing.assert_allclose(found, np.einsum("abyx,myx->abm", DATA, stack), rtol=1e-15)
