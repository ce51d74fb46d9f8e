"""
Save results and read them back
===============================

``to_zarr`` writes results chunk by chunk, so they can be larger than memory. Names, axes and units
go with them. Every program that reads zarr reads the store, such as xarray.

See also: :doc:`Labeled data </user-guide/libraries/xarray>`, :meth:`Result.to_zarr
<udfdask.Result.to_zarr>`, :func:`udfdask.save_results`.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import CoMUDF

scan = make_recording(nav_shape=(36, 48), sig_shape=(64, 64))
axes = [
    ud.Axis(name="y", unit="nm", scale=0.5),
    ud.Axis(name="x", unit="nm", scale=0.5),
    ud.Axis(name="ky", unit="mrad", scale=0.8),
    ud.Axis(name="kx", unit="mrad", scale=0.8),
]
com = ud.run_udf(scan, CoMUDF(r="7 mrad"), axes=axes)

with tempfile.TemporaryDirectory() as folder:  # use a folder of your own instead
    com.to_zarr(Path(folder) / "com.zarr")  # the only run over the data
    saved = xr.open_zarr(Path(folder) / "com.zarr").load()

figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.6), layout="constrained")
look = {"cmap": "RdBu_r", "robust": True, "yincrease": False, "cbar_kwargs": {"shrink": 0.75}}
saved["field_x"].plot(ax=left, **look)
saved["field_y"].plot(ax=right, **look)
left.set(title="field_x, read from com.zarr", aspect="equal")
right.set(title="field_y, read from com.zarr", aspect="equal")
