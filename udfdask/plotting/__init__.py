"""Draw and print results: figures (`draw`, `save_png`), live plots (`LivePlot`) and tables."""

from udfdask.plotting.live import LivePlot
from udfdask.plotting.panels import Panel, result_panels
from udfdask.plotting.static import draw, save_png
from udfdask.plotting.table import summary_table

__all__ = ["LivePlot", "Panel", "draw", "result_panels", "save_png", "summary_table"]
