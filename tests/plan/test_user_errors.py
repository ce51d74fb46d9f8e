"""An exception out of a user's method keeps its type and says where it was raised."""

import pickle

import dask.array as da
import pytest

import udfdask as ud
from failing_udfs import Fails, FailsElsewhere, OwnError
from udf_zoo import Rows

distributed = pytest.importorskip("distributed")

BAD = (2, 4)  # in chunk (1, 1)


class TwoArguments(Exception):
    """An exception that pickle cannot bring back: its constructor wants two arguments."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class Bad(FailsElsewhere):
    """Raises in a method, on the piece that holds the bad frame."""

    def check(self, method):
        if BAD in {tuple(c) for c in self.meta.coordinates.tolist()}:
            super().check(method)


class BadFrame(Bad, Fails):
    pass


class BadTile(Bad):
    def process_tile(self, tile):
        self.check("process_tile")


class BadPartition(Bad):
    def process_partition(self, partition):
        self.check("process_partition")


class BadMergeAll(BadFrame):
    def merge_all(self, ordered_results):
        self.check("merge_all")
        return {"total": [0.0], "mean": [0.0]}


class BadInit(Rows):
    """`__init__` does not accept its own output."""

    def __init__(self, width):
        super().__init__(breadth=width)


@pytest.fixture
def x() -> da.Array:
    return da.ones((4, 6, 4, 5), chunks=(2, 3, 4, 5), dtype="float32")


def raised(call):
    """The exception of a call, with its notes and those in its message.

    dask's process scheduler makes its own subclass of the exception, whose message holds the
    traceback of the worker.
    """
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any type, the tests look at it
        call()
    error = caught.value
    return error, "\n".join([str(error), *getattr(error, "__notes__", [])])


METHODS = [
    (BadFrame, "process_frame", "at navigation coordinates (2, 4), in chunk (1, 1)"),
    (BadTile, "process_tile", "at navigation coordinates (2, 3) to (3, 5), in chunk (1, 1)"),
    (BadPartition, "process_partition", "coordinates (2, 3) to (3, 5), in chunk (1, 1)"),
    (BadFrame, "get_task_data", "coordinates (2, 3) to (3, 5), in chunk (1, 1)"),
    (BadFrame, "preprocess", "coordinates (2, 3) to (3, 5), in chunk (1, 1)"),
    (BadFrame, "postprocess", "coordinates (2, 3) to (3, 5), in chunk (1, 1)"),
    (BadFrame, "merge", "coordinates (2, 3) to (3, 5), in chunks (0, 0) to (1, 1)"),
    (BadMergeAll, "merge_all", "in chunks (0, 0) to (1, 1)"),
    (BadFrame, "get_results", "coordinates (0, 0) to (3, 5), in chunks (0, 0) to (1, 1)"),
]


@pytest.mark.point(7)
@pytest.mark.parametrize(("cls", "method", "place"), METHODS, ids=[m[1] for m in METHODS])
def test_type_and_note(x, cls, method, place, options):
    res = ud.run_udf(x, cls(method))
    error, text = raised(lambda: res.compute(**options))
    assert isinstance(error, OwnError)
    assert method in str(error)
    assert f"raised in {cls.__name__}.{method}" in text
    assert place in text


def test_note_with_a_roi(x):
    error, _ = raised(
        lambda: ud.run_udf(x, BadFrame("process_frame"), roi=BAD).compute(scheduler="synchronous")
    )
    assert "at navigation coordinates (2, 4), in chunk (1, 1)" in error.__notes__[0]
    ud.run_udf(x, BadFrame("process_frame"), roi=(0, 0)).compute(scheduler="synchronous")


@pytest.mark.point(1)
def test_bad_init(x):
    """Found in the plan, by making the UDF anew as every task will."""
    error, text = raised(lambda: ud.run_udf(x, BadInit(3)))
    assert isinstance(error, TypeError)
    assert "breadth" in text
    assert "BadInit" in text
    assert "must accept the keyword arguments" in text


@pytest.mark.point(7)
@pytest.mark.parametrize("method", ["process_frame", "process_partition"])
def test_exception_that_cannot_travel(x, method, options):
    def process(self, part):
        raise TwoArguments("no light", "noon")

    cls = type("Bad", (FailsElsewhere,), {method: process})
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(TwoArguments("no light", "noon")))
    res = ud.run_udf(x, cls("nothing"))
    error, text = raised(lambda: res.compute(**options))
    assert isinstance(error, ud.UDFError)
    assert "TwoArguments: no light at noon" in text
    assert "in process\n" in text  # the traceback
    assert f"raised in Bad.{method}" in text
