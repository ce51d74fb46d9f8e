"""The .npy files that numpy.save writes."""

import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.io import open_file


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint16", ">f4", "complex128"])
def test_reads_what_was_saved(tmp_path, order, dtype):
    values = np.asarray(np.arange(360).reshape(3, 4, 5, 6), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    opened = open_file(tmp_path / "a.npy", chunks=(2, 3, -1, 4))
    assert opened.array.dtype == values.dtype
    assert_eq(opened.array, values)
    assert (opened.reader, opened.title, opened.sig_dims) == ("NumPy", "a", 2)


@pytest.mark.parametrize(
    ("shape", "sig_dims", "names"),
    [
        ((8,), 1, ("sig_x",)),
        ((3, 8), 1, ("x", "sig_x")),
        ((3, 8, 8), 2, ("x", "sig_y", "sig_x")),
        ((2, 3, 4, 8, 8), 2, ("nav_0", "nav_1", "nav_2", "sig_y", "sig_x")),
    ],
)
def test_signal_dimensions_and_names_where_nobody_says(tmp_path, shape, sig_dims, names):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    opened = open_file(tmp_path / "a.npy")
    assert opened.sig_dims == sig_dims
    assert tuple(axis.name for axis in opened.axes) == names
