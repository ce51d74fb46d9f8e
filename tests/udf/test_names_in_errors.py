"""Names in errors: buffers that a UDF returns or leaves out, parameters without a name."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import make

X = da.ones((4, 4, 6, 6), chunks=(2, 4, 6, 6))


def made(uses, **methods):
    """A UDF with single buffers of these names and uses, and some methods."""
    buffers = {name: {"kind": "single", "use": use} for name, use in uses.items()}
    others = {"process_frame": lambda self, frame: None, "merge": lambda self, dest, src: None}
    return make(buffers, **others | methods)()


def returning(method, uses, values):
    return made(uses, **{method: lambda self, *_: values})


ONE = np.zeros(1)
RETURNED = [
    ("get_results", {"mean": None}, {"meen": 1, "b": 2}, r"'meen' and 'b', not declared .*'mean'"),
    ("get_results", dict.fromkeys("ab", "result_only"), {"a": ONE, "b": None}, "left out 'b'"),
    ("get_results", {"mean": "private", "a": None}, {"mean": 1}, "'mean', declared use='private'"),
    ("merge_all", {"mean": None}, {"meen": 1}, r"returned 'meen', not declared .*\['mean'\]"),
    ("merge_all", {"a": None, "b": None}, {}, r"left out 'a' and 'b'.* split_every=False"),
]


@pytest.mark.parametrize(("method", "uses", "values", "text"), RETURNED)
def test_what_a_method_returns_and_leaves_out(method, uses, values, text):
    with pytest.raises(ud.UDFError, match=rf"Made.{method}\(\).*{text}"):
        ud.run_udf(X, returning(method, uses, values)).compute(scheduler="synchronous")


def test_a_misspelled_name():
    def process_frame(self, frame):
        self.results.meen += 1

    udf = made({"mean": None}, process_frame=process_frame)
    with pytest.raises(AttributeError, match=r"no buffer 'meen'; declared buffers: \['mean'\]"):
        ud.run_udf(X, udf).compute(scheduler="synchronous")


class Threshold(ud.UDF):
    def __init__(self, threshold):
        super().__init__(threshold)


@pytest.mark.parametrize("cls", [Threshold, type("Plain", (ud.UDF,), {})])
def test_parameters_without_a_name(cls):
    with pytest.raises(ud.ArgumentTypeError, match=f"{cls.__name__} got 1 .* parameters by name"):
        cls(3)
