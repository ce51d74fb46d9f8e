"""
Single side band: the phase beside the truth
============================================

Waves that a thin object scatters interfere with each other in the bright field.
``single_side_band`` finds the phase from that, although the beam is 10 nm out of focus. The
recording is simulated with 2000 electrons per position: its phase is known.

See also: :doc:`Phases </user-guide/analysis/phase>`, :class:`~udfdask.analyses.SideBandUDF`.
"""

from udfdask.analyses import single_side_band
from udfdask.demo import PhaseObject
from udfdask.plotting import Panel, draw

lens = {"defocus": 10, "scan_rotation": 30, "flip_y": True}
thin = PhaseObject(nav_shape=(64, 64), dose=2000, **lens)
result = single_side_band(thin, semiangle="20 mrad", voltage=thin.voltage, **lens).compute()

# A strong phase appears smaller: both panels have their own scale.
scan = {"axes": thin.axes[:2], "label": "rad"}
panels = [
    Panel(title="single side band", values=result["phase"], **scan),
    Panel(title="truth", values=thin.phase, **scan),
]
figure = draw(panels, title="Phase of a thin object")
