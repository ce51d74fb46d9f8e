"""UDFs whose results are of all kinds that can and cannot be drawn."""

import numpy as np

import udfdask as ud


class ManyUDF(ud.UDF):
    """An image, vectors, complex values, a pattern, a number, and things that are no numbers."""

    def get_result_buffers(self):
        return {
            "image": self.buffer(kind="nav", dtype="float32"),
            "vector": self.buffer(kind="nav", extra_shape=(2,), dtype="float64"),
            "wave": self.buffer(kind="nav", dtype="complex64"),
            "pattern": self.buffer(kind="sig", dtype="float64"),
            "number": self.buffer(kind="single", dtype="float64"),
            "thing": self.buffer(kind="nav", dtype=object),
            "text": self.buffer(kind="nav", dtype="U4"),
        }

    def get_result_axes(self):
        return {"vector": (ud.Axis(name="component", labels=("y", "x")),)}

    def process_frame(self, frame):
        y, x = self.meta.coordinates[0] - 3
        self.results.image[:] = frame.sum()
        self.results.vector[:] = y, x
        self.results.wave[:] = complex(y, x)
        self.results.pattern += frame
        self.results.number += 1
        self.results.thing[...] = np.array({}, dtype=object)
        self.results.text[...] = "text"

    def merge(self, dest, src):
        for name in ("image", "vector", "wave", "thing", "text"):
            getattr(dest, name)[:] = getattr(src, name)
        dest.pattern += src.pattern
        dest.number += src.number


def drawn(figure):
    """Drawn values by title."""
    return {
        axes.get_title("left"): np.ma.filled(axes.images[0].get_array(), np.nan)
        for axes in figure.axes
        if axes.images
    }
