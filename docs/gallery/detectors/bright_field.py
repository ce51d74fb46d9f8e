"""
Bright field
============

A virtual bright-field detector adds up the pixels of each frame inside a disk around the direct
beam. The result has one number for each scan position: it is an image of the sample. Particles are
dark, because they scatter electrons out of the disk.

See also: :doc:`Axes and units </user-guide/concepts/units>`,
:class:`~udfdask.udfs.VirtualDetectorUDF`, :meth:`Result.plot <udfdask.Result.plot>`.
"""

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import VirtualDetectorUDF

scan = make_recording(nav_shape=(48, 64), sig_shape=(64, 64))
axes = [
    ud.Axis(name="y", unit="nm", scale=0.5),
    ud.Axis(name="x", unit="nm", scale=0.5),
    ud.Axis(name="ky", unit="mrad", scale=0.8),
    ud.Axis(name="kx", unit="mrad", scale=0.8),
]

# The radius is in the unit of the detector axes, so it stays right for other camera lengths.
detector = VirtualDetectorUDF("disk", r="4 mrad")
result = ud.run_udf(scan, detector, axes=axes, unit="counts")
figure = result.plot(title="Bright field, 0 to 4 mrad")
