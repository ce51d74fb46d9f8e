"""Draw results: figures (`draw`) and live plots (`LivePlot`)."""

from udfdask.plotting.live import LivePlot
from udfdask.plotting.panels import Panel, result_panels
from udfdask.plotting.static import draw

__all__ = ["LivePlot", "Panel", "draw", "result_panels"]
