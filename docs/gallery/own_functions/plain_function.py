"""
Map a plain function: the background of an EELS edge
====================================================

``map_frames`` calls a function with each frame, here with each spectrum. The function fits a power
law to the energies before an edge and adds up the counts above the fit. No class is needed.

See also: :doc:`Writing a UDF </user-guide/writing/basics>`, :func:`~udfdask.map_frames`.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import udfdask as ud

# Carbon in a support film, with vacuum on the right: 400 channels of 0.5 eV.
energy = 220 + 0.5 * np.arange(400)
y, x = np.mgrid[:48, :64]
film = 1 / (1 + np.exp((x - 42 - 8 * np.sin(y / 7)) / 2))
carbon = film * (1 - 0.8 * np.exp(-((y - 22) ** 2 + (x - 18) ** 2) / 60))
background = 200 * (0.2 + film)[..., None] * (energy / 220) ** -3
edge = (energy > 284) * (1.4 * np.exp(-(energy - 284) / 60) + np.exp(-(((energy - 292) / 5) ** 2)))
spectra = np.random.default_rng(0).poisson(background + 40 * carbon[..., None] * edge)
scan = da.from_array(spectra.astype("uint16"), chunks=(12, 64, 400))


def power_law(spectrum):
    """Fit A * energy**-r to the energies before the edge, and return the curve."""
    before = (energy > 235) & (energy < 280)
    slope, start = np.polyfit(np.log(energy[before]), np.log(spectrum[before] + 0.5), 1)
    return np.exp(start + slope * np.log(energy))


def counts_above(spectrum):
    """Return the counts above the background, up to 40 eV after the edge."""
    after = (energy > 284) & (energy < 324)
    return (spectrum - power_law(spectrum))[after].sum()


# A lazy dask array with the chunks of the scan, so the map can be part of a longer calculation.
carbon_map = ud.map_frames(scan, counts_above, sig_dims=1).compute()

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
image = left.imshow(carbon_map, cmap="magma", vmin=0, extent=(0, 64, 48, 0))
left.set(title="Carbon K", xlabel="x (nm)", ylabel="y (nm)")
figure.colorbar(image, label="counts above background", shrink=0.8)
spectrum = scan[10:14, 4:8].mean(axis=(0, 1)).compute()
right.plot(energy, spectrum, "k", lw=0.8, label="spectrum")
right.plot(energy, power_law(spectrum), "--", color="crimson", label="power law")
right.fill_between(
    energy, power_law(spectrum), spectrum, where=(energy > 284) & (energy < 324), alpha=0.3
)
right.set(title="Mean of 16 spectra", xlabel="energy loss (eV)", ylabel="counts")
right.legend()
