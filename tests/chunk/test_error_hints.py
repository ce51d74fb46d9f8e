"""Errors of NumPy in a user's method get a note that says what to do."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud

X = da.ones((4, 5, 6, 7), chunks=(2, 5, 6, 7))


def notes_of(process, kind="nav", **declared):
    """Run a UDF with this `process_frame`; return the notes of its exception."""

    class FailingUDF(ud.UDF):
        def get_result_buffers(self):
            return {"m": self.buffer(kind, **declared), "n": self.buffer("nav", extra_shape=(3,))}

        def process_frame(self, frame):
            process(self.results, frame)

        def merge(self, dest, src):
            raise AssertionError("no chunk should be finished")

    with pytest.raises((ValueError, OverflowError)) as caught:
        ud.run_udf(X, FailingUDF()).compute(scheduler="synchronous")
    return caught.value.__notes__


def two_values(results, frame):
    results.m[:] = 1, 2


def a_frame(results, frame):
    results.m += frame


def ragged(results, frame):
    results.m[:] = [1, [2, 3]]


@pytest.mark.parametrize("process", [two_values, a_frame, ragged])
def test_another_shape_than_the_buffer(process):
    origin, hint = notes_of(process)
    assert "FailingUDF.process_frame" in origin
    assert "m (1,), n (3,)" in hint
    assert "extra_shape" in hint


def test_data_are_read_only():
    def process(results, frame):
        frame -= 1

    assert "frame = frame - frame.mean()" in notes_of(process)[1]


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_integers_hold_no_infinity(value):
    def process(results, frame):
        results.m[:] = value

    assert "no infinity and no NaN" in notes_of(process, dtype="int32")[1]


def test_other_errors_say_only_where():
    def process(results, frame):
        raise ValueError("no peak in this frame")

    assert len(notes_of(process)) == 1
