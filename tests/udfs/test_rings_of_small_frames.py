"""Rings of small frames: kernels read cache lines, so that such frames are copied with a margin."""

import dask
import dask.array as da
import numpy as np
import pytest

from making import compute
from udfdask.base.aligned import CACHE_LINE
from udfdask.kernels.cpu import ring_sums
from udfdask.kernels.cpu.ring_sums import PixelRuns
from udfdask.udfs import RadialFourierUDF, RadialProfileUDF


@pytest.mark.parametrize(
    ("udf", "module", "name"),
    [(RadialProfileUDF, ring_sums, "add_ring_sums"), (RadialFourierUDF, ring_sums, "add_runs")],
)
def test_parts_of_larger_frames_are_not_read_beyond_their_end(monkeypatch, udf, module, name):
    """Copies of small frames have the row step of a larger array, but not its end."""

    def checked(frames, *others):
        runs = next(other for other in others if isinstance(other, PixelRuns))
        assert runs.lines.max() + CACHE_LINE // frames.flat.itemsize <= frames.extent
        called.append(frames.row_step)
        return original(frames, *others)

    called = []
    original = getattr(module, name)
    monkeypatch.setattr(module, name, checked)
    larger = np.ones((7, 2, 3 + CACHE_LINE), "u1")
    blocks = [np.ones((7, 2, 3), "u1"), larger[:, :, :3]]
    parts = [da.from_delayed(dask.delayed(lambda b=b: b)(), b.shape, b.dtype) for b in blocks]
    for order in (1, -1):  # the first or the last chunk is processed first
        compute(da.concatenate(parts[::order]), udf(cy=1, cx=1, r=3))
    assert called == [3 + CACHE_LINE] * 4
