"""
dask: calculate with results before anything runs
=================================================

Results are lazy dask arrays. NumPy functions and slices build on them, and one ``compute`` at the
end does everything in one pass over the frames. This script divides a dark-field image by a
bright-field image and counts the pixels of its histogram.

See also: :doc:`Files and chunks </user-guide/data/files>`, :func:`~udfdask.run_udf`,
:func:`~udfdask.compute`.
"""

import dask.array as da
import matplotlib.pyplot as plt

import udfdask as ud
import udfdask.dask
from udfdask.demo import make_recording
from udfdask.udfs import VirtualDetectorUDF

frames = make_recording(nav_shape=(48, 64), sig_shape=(64, 64))
scan = frames[:, 4:-4].astype("float32") / 40  # any dask array will do

disk, ring = VirtualDetectorUDF("disk", r=5), VirtualDetectorUDF("ring", ri=9, ro=18)
bright, dark = scan.udf.run_udf([disk, ring])
ratio = dark["intensity"] / bright["intensity"]  # lazy: still nothing has run
counts, edges = da.histogram(ratio, bins=40, range=(0.5, 2.5))
ratio, counts = ud.compute(ratio, counts)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
image = left.imshow(ratio, cmap="viridis", extent=(0, 28, 24, 0))
left.set(title="Dark field / bright field", xlabel="x (nm)", ylabel="y (nm)")
figure.colorbar(image, label="ratio", shrink=0.9)
right.stairs(counts, edges, fill=True, color="seagreen")
right.set(title="Histogram of the ratio", xlabel="ratio", ylabel="scan positions")
