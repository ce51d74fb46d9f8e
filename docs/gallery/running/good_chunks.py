"""
Chunks before and after
=======================

A task takes one chunk. Very small chunks cost more time to schedule than to process, and UDFs that
need whole frames must join chunks that cut frames. In ``rechunk``, ``-1`` keeps frames whole, and
``"auto"`` chooses chunks that are large enough and still fit into memory. Each colored area is one
chunk.

See also: :doc:`Files and chunks </user-guide/data/files>`, :func:`~udfdask.explain`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

# Nothing is loaded or computed here: a dask array knows its chunks without its data.
before = da.zeros((64, 64, 256, 256), chunks=(4, 4, 128, 128), dtype="uint16")
after = before.rechunk(("auto", "auto", -1, -1))

figure, axes = plt.subplots(2, 2, figsize=(7.4, 7.2), layout="constrained")
for row, array, name in zip(axes, (before, after), ("before", "after"), strict=True):
    size = np.prod(array.chunksize) * array.dtype.itemsize / 2**20
    for panel, dims in zip(row, ((0, 1), (2, 3)), strict=True):
        rows, columns = (np.repeat(np.arange(len(array.chunks[d])), array.chunks[d]) for d in dims)
        number = (7 * rows[:, None] + 5 * columns) % 12  # neighbors get different colors
        panel.imshow(number, cmap="Set3", vmin=0, vmax=11, interpolation="none")
        panel.set(xlabel="x (px)", ylabel="y (px)")
    row[0].set_title(f"Scan {name}: {array.npartitions:,} chunks of {size:.3g} MiB")
    row[1].set_title(f"Chunks of a frame {name}: {np.prod(array.numblocks[2:])}")
