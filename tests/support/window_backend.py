"""A matplotlib backend that only pretends to open windows, and counts what is asked of them."""

from matplotlib.backend_bases import CloseEvent, FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg


class FigureManager(FigureManagerBase):
    def __init__(self, canvas, num):
        super().__init__(canvas, num)
        self.n_shown = 0

    def show(self):
        self.n_shown += 1

    def destroy(self):
        CloseEvent("close_event", self.canvas)._process()


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager

    def __init__(self, figure=None):
        super().__init__(figure)
        self.n_drawn = 0
        self.n_flushed = 0
        self.while_flushing = None

    def draw(self):
        self.n_drawn += 1
        super().draw()

    def flush_events(self):
        self.n_flushed += 1
        if self.while_flushing is not None:
            self.while_flushing()
