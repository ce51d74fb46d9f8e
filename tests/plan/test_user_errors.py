"""An exception out of a user's method keeps its type and says where it was raised."""

import pickle

import dask.array as da
import pytest

import udfdask as ud
from udf_zoo import Rows

distributed = pytest.importorskip("distributed")

BAD = (2, 4)  # in chunk (1, 1)


class Trouble(Exception):
    """An exception of the user's own."""


class TwoArguments(Exception):
    """An exception that pickle cannot bring back: its constructor wants two arguments."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class Bad(ud.UDF):
    """Raises `error` in method `where`, on the piece that holds the bad frame."""

    def __init__(self, where, error=Trouble, args=("no light",)):
        super().__init__(where=where, error=error, args=args)

    def get_result_buffers(self):
        return {"s": self.buffer(kind="single", dtype="float64")}

    def here(self, where):
        if where == self.params.where and BAD in {tuple(c) for c in self.meta.coordinates.tolist()}:
            raise self.params.error(*self.params.args)

    def get_task_data(self):
        self.here("get_task_data")
        return {}

    def preprocess(self):
        self.here("preprocess")

    def postprocess(self):
        self.here("postprocess")

    def cleanup(self):
        self.here("cleanup")

    def merge(self, dest, src):
        self.here("merge")

    def get_results(self):
        self.here("get_results")
        return {}


class BadFrame(Bad):
    def process_frame(self, frame):
        self.here("process_frame")


class BadTile(Bad):
    def process_tile(self, tile):
        self.here("process_tile")


class BadPartition(Bad):
    def process_partition(self, partition):
        self.here("process_partition")


class BadMergeAll(Bad):
    def process_frame(self, frame):
        pass

    def merge_all(self, ordered_results):
        self.here("merge_all")
        return {"s": [0.0]}


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
    assert isinstance(error, Trouble)
    assert "no light" in text
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
@pytest.mark.parametrize("cls", [BadFrame, BadPartition])
def test_exception_that_cannot_travel(x, cls, options):
    method = "process_frame" if cls is BadFrame else "process_partition"
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(TwoArguments("no light", "noon")))
    udf = cls(method, TwoArguments, ("no light", "noon"))
    res = ud.run_udf(x, udf)
    error, text = raised(lambda: res.compute(**options))
    assert isinstance(error, ud.UDFError)
    assert "TwoArguments: no light at noon" in text
    assert f"in {method}" in text  # the traceback
    assert f"raised in {cls.__name__}.{method}" in text
