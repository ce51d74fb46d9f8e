"""Signals of all shapes, chunkings and axes, and UDFs to run over them."""

from typing import NamedTuple

import dask.array as da
import numpy as np
from hypothesis import strategies as st

import udfdask as ud
from udfdask.testing.strategies import arrays, chunkings


class EveryKindUDF(ud.UDF):
    """A result of every kind, with and without extra dimensions; sums are exact."""

    def get_result_buffers(self):
        real = {"dtype": "float64"}
        return {
            "image": self.buffer("nav", **real),
            "spectra": self.buffer("nav", extra_shape=(3,), **real),
            "stack": self.buffer("nav", extra_shape=(2, 3), **real),
            "frame": self.buffer("sig", **real),
            "frames": self.buffer("sig", extra_shape=(2,), **real),
            "number": self.buffer("single", **real),
            "numbers": self.buffer("single", extra_shape=(3,), **real),
            "counts": self.buffer("single", extra_shape=(2, 3), dtype="int64"),
        }

    def get_result_axes(self):
        return {
            "spectra": (ud.Axis(name="order", unit="1/nm", scale=0.5, offset=-1.0),),
            "frames": (ud.Axis(name="part", labels=("sum", "twice")),),
        }

    def process_frame(self, frame):
        total = np.abs(frame).sum()
        r = self.results
        r.image[:] = total
        r.spectra[:] = total * np.arange(3)
        r.stack[:] = total * np.arange(6).reshape(2, 3)
        r.frame[:] += np.abs(frame)
        r.frames[:] += np.abs(frame)[..., np.newaxis] * [1, 2]
        r.number[:] += total
        r.numbers[:] += total * np.arange(3)
        r.counts[:] += 1

    def merge(self, dest, src):
        for name in ("image", "spectra", "stack"):
            getattr(dest, name)[:] = getattr(src, name)
        for name in ("frame", "frames", "number", "numbers", "counts"):
            getattr(dest, name)[:] += getattr(src, name)


class ListsUDF(ud.UDF):
    def get_result_buffers(self):
        return {
            "where": self.buffer("nav", dtype=object),
            "pairs": self.buffer("nav", extra_shape=(2,), dtype=object),
        }

    def process_frame(self, frame):
        found = np.flatnonzero(frame > 1)
        self.results.where[0] = found
        self.results.pairs[0] = found
        self.results.pairs[1] = found + 1


class Case(NamedTuple):
    signal: object
    array: da.Array
    sig_dims: int


names = st.one_of(st.none(), st.sampled_from(["x", "y", "Energy", "tilt angle"]))
units = st.one_of(st.none(), st.sampled_from(["nm", "keV", "µm", "1/nm"]))
numbers = st.sampled_from([-2.5, -1.0, 0.1, 0.25, 1.0, 3.0])


@st.composite
def axes(draw, size, navigate):
    axis = {
        "name": draw(names),
        "units": draw(units),
        "navigate": navigate,
        "is_binned": draw(st.booleans()),
    }
    kind = draw(st.sampled_from(["uniform", "functional", "values"]))
    if kind == "uniform":
        return {**axis, "size": size, "scale": draw(numbers), "offset": draw(numbers)}
    if kind == "functional":
        x = {"size": size, "scale": 0.5, "offset": 1.0}
        return {**axis, "expression": "a / x + b", "a": draw(numbers), "b": 2.0, "x": x}
    steps = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    return {**axis, "axis": np.cumsum(steps) * 0.5}


@st.composite
def cases(draw, *, min_nav=0, max_nav=3, max_sig=3, dtypes=("uint8", "int64", "float32")):
    """Signals, lazy ones in any chunks, with any axes and metadata."""
    import hyperspy.api as hs

    n_nav = draw(st.integers(min_nav, max_nav))
    n_sig = draw(st.integers(1, max_sig))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(n_nav + n_sig))
    data = draw(arrays(shape, dtype=np.dtype(draw(st.sampled_from(dtypes)))))
    array = da.from_array(data, chunks=draw(chunkings(shape)))
    cls = hs.signals.LazySignal if draw(st.booleans()) else hs.signals.BaseSignal
    signal = cls(
        array if cls is hs.signals.LazySignal else data,
        axes=[draw(axes(size, k < n_nav)) for k, size in enumerate(shape)],
        metadata={
            "General": {"title": draw(st.sampled_from(["", "A scan"])), "date": "2026-11-21"},
            "Sample": {"elements": ["Fe", "O"]},
            "Signal": {"quantity": "Counts"},
        },
        original_metadata={"gun": {"voltage": 200}},
    )
    signal.set_signal_type("")
    return Case(signal, array, n_sig)


def plain(text):
    return text if isinstance(text, str) else None


def axis_facts(axis):
    said = axis.get_axis_dictionary()
    said["axis"] = np.asarray(axis.axis).tolist()
    return {**said, "name": plain(axis.name), "units": plain(axis.units)}
