"""
HyperSpy: a signal in, signals out
==================================

``import udfdask.hyperspy`` gives each HyperSpy signal the accessor ``udf``. A HyperSpy ROI is a
detector, in the units of the axes. The results are signals with the axes and units of the input, so
that HyperSpy can plot, slice and save them.

See also: :doc:`HyperSpy </user-guide/libraries/hyperspy>`,
:class:`~udfdask.hyperspy.UDFAccessor`.
"""

import hyperspy.api as hs
import matplotlib.pyplot as plt

import udfdask.hyperspy  # noqa: F401 - adds the accessor
from udfdask.demo import make_recording
from udfdask.udfs import ApplyMasksUDF

hs.preferences.General.show_progressbar = False
signal = hs.signals.Signal2D(make_recording(nav_shape=(36, 48), sig_shape=(64, 64))).as_lazy()
for axis, name in zip(signal.axes_manager.navigation_axes, ("x", "y"), strict=True):
    axis.name, axis.units, axis.scale = name, "nm", 0.5
for axis, name in zip(signal.axes_manager.signal_axes, ("kx", "ky"), strict=True):
    axis.name, axis.units, axis.scale, axis.offset = name, "mrad", 0.8, -25.6

# The regions that one draws with the mouse on a HyperSpy plot work here, too.
disk = hs.roi.CircleROI(cx=0, cy=0, r=4)
spot = hs.roi.CircleROI(cx=-1.5, cy=-10.5, r=4)
images = signal.udf.run_udf(ApplyMasksUDF({"BF": disk, "DF": spot})).compute()

panels = hs.plot.plot_images(
    [images["BF"].T, images["DF"].T],
    label=["Bright field", "Dark field of one disk"],
    colorbar="multi",
    axes_decor="all",
    cmap="gray",
    tight_layout=True,
    fig=plt.figure(figsize=(8.6, 3.4)),
)
