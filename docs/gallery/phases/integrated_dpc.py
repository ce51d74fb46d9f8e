"""
Integrated DPC: the phase of a thin object
==========================================

The beam is deflected along the gradient of the phase. ``ScanRotationUDF`` finds how the detector
is turned against the scan: there, the field has the smallest curl. ``integrated_dpc`` integrates
the field. The recording is simulated with 2000 electrons per position: its phase is known.

See also: :doc:`Phases </user-guide/analysis/phase>`, :class:`~udfdask.analyses.IntegratedDPCUDF`.
"""

import udfdask as ud
from udfdask.analyses import ScanRotationUDF, integrated_dpc
from udfdask.demo import PhaseObject
from udfdask.plotting import Panel, draw

thin = PhaseObject(nav_shape=(64, 64), dose=2000, scan_rotation=30, flip_y=True)
guess = ud.run_udf(thin, ScanRotationUDF()).compute()
turned = {"scan_rotation": guess["scan_rotation"], "flip_y": guess["flip_y"]}
phase = integrated_dpc(thin, **turned).compute()["phase"]

scan = {"axes": thin.axes[:2], "label": "rad"}
curl, angles = guess["curl_by_angle"], guess.axes["curl_by_angle"]
panels = [
    Panel(title="integrated DPC", values=phase, **scan),
    Panel(title="truth", values=thin.phase, **scan),
    Panel(title="curl of the field", values=curl, axes=angles, style="lines", label="px/position"),
]
figure = draw(panels, title="Phase of a thin object")
