"""
xarray: labels and units in, labels and units out
=================================================

A DataArray has named dimensions with coordinates and units. ``import udfdask.xarray`` gives it the
accessor ``udf``: radii are in the unit of the coordinates, and the results are DataArrays that
xarray plots with their names and units.

See also: :doc:`Labeled data </user-guide/libraries/xarray>`,
:class:`~udfdask.xarray.DataArrayUDF`.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import udfdask as ud
import udfdask.xarray
from udfdask.demo import make_recording
from udfdask.udfs import CoMUDF, VirtualDetectorUDF

scan = xr.DataArray(
    make_recording(nav_shape=(48, 64), sig_shape=(64, 64)),
    dims=("y", "x", "ky", "kx"),
    coords={
        "y": ("y", 0.5 * np.arange(48), {"units": "nm"}),
        "x": ("x", 0.5 * np.arange(64), {"units": "nm"}),
        "ky": ("ky", 0.8 * np.arange(64) - 25.6, {"units": "mrad"}),
        "kx": ("kx", 0.8 * np.arange(64) - 25.6, {"units": "mrad"}),
    },
    attrs={"units": "counts"},
)

udfs = [VirtualDetectorUDF("disk", r="4 mrad"), CoMUDF(r="7 mrad")]
image, com = ud.compute(*scan.udf.run_udf(udfs, sig_dims=("ky", "kx")))

# Selecting by position in nanometers, and plotting, are xarray's own methods.
particle = {"x": slice(18, 32), "y": slice(10, 24)}
bright = image["intensity"]
field = com["field"].sel(particle)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.7), layout="constrained")
bright.plot(ax=left, cmap="gray", yincrease=False)
left.set(title="Bright field, 4 mrad", aspect="equal")
bright.sel(particle).plot(ax=right, cmap="gray", yincrease=False, add_colorbar=False)
arrows = field[::2, ::2]  # every second position
right.quiver(
    arrows["x"],
    arrows["y"],
    arrows.sel(component="x"),
    arrows.sel(component="y"),
    color="orange",
    angles="xy",
)
right.set(title="Deflection of the beam", aspect="equal")
