"""
Results of any length: the peaks of each frame
==============================================

The number of reflections differs from frame to frame. With ``ragged=True``, a function may return
an array of any length, and the result holds one array for each scan position. Here the function
returns the positions of the local maxima.

See also: :doc:`Lists of any length </user-guide/writing/ragged-and-masked>`,
:func:`~udfdask.map_frames`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import udfdask as ud

# Crystals in an amorphous film: round islands with a lattice of spots, turned at random.
rng = np.random.default_rng(1)
y, x = np.mgrid[:40, :50]
ky, kx = np.mgrid[:64, :64] - 32
film = 20 * np.exp(-np.hypot(ky, kx) / 5) + 0.4
frames = np.broadcast_to(film, (40, 50, 64, 64)).copy()
for _ in range(7):
    island = np.hypot(y - rng.uniform(4, 36), x - rng.uniform(4, 46)) < rng.uniform(4, 9)
    turn, length = rng.uniform(0, np.pi), rng.uniform(10, 14)
    for h, k in [(h, k) for h in range(-3, 4) for k in range(-3, 4) if (h, k) != (0, 0)]:
        spot = length * (h + 1j * k) * np.exp(1j * turn)
        frames[island] += 12 * np.exp(-((ky - spot.imag) ** 2 + (kx - spot.real) ** 2) / 3)
scan = da.from_array(rng.poisson(frames).astype("uint16"), chunks=(10, 50, 64, 64))


def find_peaks(frame):
    """Return the local maxima of a frame outside of the direct beam, shape (n, 2), (y, x)."""
    smooth = ndimage.gaussian_filter(frame, 1.2)
    highest = smooth == ndimage.maximum_filter(smooth, 7)
    return np.argwhere(highest & (smooth > 2.5) & (np.hypot(ky, kx) > 7))


peaks = ud.map_frames(scan, find_peaks, ragged=True).compute()  # dtype object
number = np.vectorize(len)(peaks)
brightest = np.unravel_index(number.argmax(), number.shape)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.7), layout="constrained")
image = left.imshow(number, cmap="viridis", extent=(0, 100, 80, 0))
left.set(title="Number of reflections", xlabel="x (nm)", ylabel="y (nm)")
figure.colorbar(image, label="peaks in a frame", shrink=0.8)
right.imshow(scan[brightest].compute(), cmap="gray_r", extent=(-8, 8, 8, -8), vmax=20)
right.plot(*(0.25 * (peaks[brightest].T[::-1] - 31.5)), "o", mfc="none", ms=11, color="crimson")
right.set(title="The frame with most of them", xlabel="kx (1/nm)", ylabel="ky (1/nm)")
