"""Draw results: figures (`draw`) and live plots (`LivePlot`)."""

from udfdask.plotting.live import LivePlot
from udfdask.plotting.panels import Panel
from udfdask.plotting.static import draw

__all__ = ["LivePlot", "Panel", "draw"]
