"""
Events: sparse frames
=====================

A detector that counts events stores a list of hits, because nearly all pixels of a frame are zero.
Chunks can be sparse arrays. Sums, masks and centers of mass then read only the hits, and the
results are ordinary dense images.

See also: :doc:`Sparse data </user-guide/data/events>`, :func:`udfdask.io.from_raw_csr`.
"""

import matplotlib.pyplot as plt
import numpy as np
import sparse

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import PickUDF, SumUDF, VirtualDetectorUDF


def to_events(block):
    """Keep one electron in thirty, and store the hits alone."""
    hits = np.random.default_rng(0).binomial(block, 1 / 30).astype("uint16")
    return sparse.COO.from_numpy(hits)


scan = make_recording(nav_shape=(36, 48), sig_shape=(64, 64))
events = scan.map_blocks(to_events, meta=sparse.COO.from_numpy(np.zeros((0,) * 4, "uint16")))
bright_field = VirtualDetectorUDF("disk", r=5)
total, image = ud.compute(*ud.run_udf(events, [SumUDF(), bright_field]))
(frame,) = ud.run_udf(events, PickUDF(), roi=(20, 4)).compute()["intensity"]  # dense
y, x = np.nonzero(frame)

figure, axes = plt.subplots(
    1, 3, figsize=(11, 3.5), width_ratios=(1.25, 1, 1), layout="constrained"
)
axes[0].imshow(image["intensity"], cmap="gray", extent=(0, 24, 18, 0))
axes[0].set(title="Bright field", xlabel="x (nm)", ylabel="y (nm)")
axes[1].scatter(0.8 * (x - 32), 0.8 * (y - 32), s=6 * frame[y, x], color="black")
axes[1].set(title=f"One frame: {frame.sum()} electrons", xlabel="kx (mrad)", ylabel="ky (mrad)")
axes[1].set(xlim=(-26, 26), ylim=(26, -26), aspect="equal")
extent = (-26, 26, 26, -26)
axes[2].imshow(total["intensity"], norm="log", cmap="inferno", extent=extent)
axes[2].set(title="Sum of 1728 frames", xlabel="kx (mrad)", ylabel="ky (mrad)")
