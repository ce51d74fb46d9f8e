"""Signals of all shapes, chunkings and axes, and UDFs to run over them."""

from typing import NamedTuple

import dask.array as da
import numpy as np
from hypothesis import strategies as st

import udfdask as ud
from udfdask.testing.strategies import arrays, chunkings


class Kinds(ud.UDF):
    """A result of each kind, with and without extra dimensions; exact integers."""

    keeps_units = ("total",)

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self):
        return {
            "sums": self.buffer("nav", dtype="int64"),
            "ends": self.buffer("nav", extra_shape=(2,), dtype="int64"),
            "total": self.buffer("sig", dtype="int64"),
            "powers": self.buffer("sig", extra_shape=(3,), dtype="int64"),
            "count": self.buffer("single", dtype="int64"),
            "pair": self.buffer("single", extra_shape=(2, 1), dtype="int64"),
        }

    def get_result_axes(self):
        end = ud.Axis(name="end", labels=("min", "max"))
        return {
            "ends": (end,),
            "powers": (ud.Axis(name="power", unit="1", scale=2.0, offset=1.0),),
            "pair": (end, ud.Axis(name="rest")),
        }

    def process_frame(self, frame):
        frame = frame.astype("int64")
        self.results.sums[:] = frame.sum()
        self.results.ends[:] = frame.min(), frame.max()
        self.results.total += frame
        self.results.powers += np.stack([frame, frame**3, frame**5], axis=-1)
        self.results.count += 1
        self.results.pair += np.array([[1], [2]])

    def merge(self, dest, src):
        dest.sums[:] = src.sums
        dest.ends[:] = src.ends
        dest.total += src.total
        dest.powers += src.powers
        dest.count += src.count
        dest.pair += src.pair


class EveryKindUDF(Kinds):
    """Also a stack for each frame, and no units."""

    keeps_units = ()

    def get_result_buffers(self):
        stack = self.buffer("nav", extra_shape=(2, 3), dtype="int64")
        return {**super().get_result_buffers(), "stack": stack}

    def process_frame(self, frame):
        super().process_frame(frame)
        self.results.stack[:] = self.results.sums[0] * np.arange(6).reshape(2, 3)

    def merge(self, dest, src):
        super().merge(dest, src)
        dest.stack[:] = src.stack


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


def facts_of_axes(signal):
    return [axis_facts(axis) for axis in signal.axes_manager._axes]
