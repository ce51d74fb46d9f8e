"""A run reads the data of a signal without a copy, and with their own chunks."""

import math

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.udfs import SumSigUDF, SumUDF

pytestmark = pytest.mark.full

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402
from udfdask.hyperspy.data import arrange, memory_chunks  # noqa: E402


class SharesUDF(ud.UDF):
    """Return whether the frames are between the first and the last byte of an array."""

    def __init__(self, where):
        super().__init__(where=where)

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self):
        return {"shares": self.buffer("nav", dtype=bool)}

    def process_frame(self, frame):
        self.results.shares[:] = np.shares_memory(frame, self.params.where())


@pytest.mark.parametrize("order", ["C", "F", "backwards"])
def test_frames_in_memory_are_the_users_own(order):
    data = np.arange(4 * 5 * 6 * 7.0).reshape(4, 5, 6, 7)
    data = {"C": data, "F": np.asfortranarray(data), "backwards": data[::-1]}[order]
    signal = hs.signals.Signal2D(data)
    array = arrange(signal, None, named=True).array
    assert all(np.shares_memory(block, data) for block in dict(array.dask).values())
    found = signal.udf.run_udf(SharesUDF(lambda: data), show_progressbar=False)
    if order == "C":
        assert found["shares"].data.all()
    np.testing.assert_array_equal(array.compute(scheduler="synchronous"), data)


@pytest.mark.parametrize("lazy", [True, False])
def test_equal_data_get_equal_names(lazy):
    data = np.arange(24.0).reshape(2, 3, 4)
    names = []
    for _ in range(2):
        signal = hs.signals.Signal1D(data.copy())
        if lazy:
            signal = hs.signals.Signal1D(da.from_array(data)).as_lazy()
        names.append(signal.udf.run_udf(SumUDF(), lazy_output=True)["intensity"].data.name)
    other = hs.signals.Signal1D(data + 1).udf.run_udf(SumUDF(), lazy_output=True)
    assert names[0] == names[1] != other["intensity"].data.name


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=5), st.integers(1, 3))
def test_chunks_of_data_in_memory(shape, sig_dims):
    sig_dims = min(sig_dims, len(shape))
    n_nav = len(shape) - sig_dims
    chunks = memory_chunks(tuple(shape), 8, sig_dims)
    assert tuple(map(sum, chunks)) == tuple(shape)
    assert all(len(sizes) == 1 for sizes in chunks[n_nav:])
    # each chunk is contiguous: full axes, one cut axis, then single positions
    cut = [axis for axis in range(n_nav) if len(chunks[axis]) > 1]
    for axis in range(n_nav):
        if cut and axis < cut[-1]:
            assert set(chunks[axis]) <= {1, 0}
        assert max(chunks[axis]) - min(chunks[axis]) <= 1
    frame_bytes = max(1, 8 * math.prod(shape[n_nav:]))
    frames = math.prod(max(sizes) for sizes in chunks[:n_nav])
    assert frames == 1 or frames * frame_bytes <= 128 << 20
    if math.prod(shape[:n_nav]) >= 64:
        assert math.prod(map(len, chunks)) >= 32


def test_the_data_are_not_written_to():
    signal = hs.signals.Signal2D(np.ones((2, 3, 4, 5)))

    class Writes(SumSigUDF):
        def process_tile(self, tile):
            tile[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        signal.udf.run_udf(Writes(), show_progressbar=False)
    assert signal.data.all()
