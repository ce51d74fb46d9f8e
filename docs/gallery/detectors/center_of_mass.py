"""
Center of mass: the direction of the deflection
===============================================

``CoMUDF`` computes the center of mass of each frame inside a disk. Its deflection is a vector: the
color is the direction, and the brightness is the length. The divergence of this field is
proportional to the charge density in thin samples.

See also: :doc:`Axes and units </user-guide/concepts/units>`, :class:`~udfdask.udfs.CoMUDF`,
:func:`~udfdask.udfs.guess_corrections`.
"""

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import CoMUDF

scan = make_recording(nav_shape=(48, 64), sig_shape=(64, 64))
axes = [
    ud.Axis(name="y", unit="nm", scale=0.5),
    ud.Axis(name="x", unit="nm", scale=0.5),
    ud.Axis(name="ky", unit="mrad", scale=0.8),
    ud.Axis(name="kx", unit="mrad", scale=0.8),
]

# The disk leaves out the diffracted disks, whose brightness would pull the center to their side.
# regression=0 subtracts the mean deflection, which is a property of the microscope.
com = ud.run_udf(scan, CoMUDF(r="7 mrad", regression=0), axes=axes)
figure = com.plot(["field", "divergence"], title="Deflection of the beam")
