"""Draw and print results: figures (`draw`), live plots (`LivePlot`) and tables."""

from udfdask.plotting.live import LivePlot
from udfdask.plotting.panels import Panel, result_panels
from udfdask.plotting.static import draw
from udfdask.plotting.table import summary_table

__all__ = ["LivePlot", "Panel", "draw", "result_panels", "summary_table"]
