"""Every error of the package is raised somewhere, and is a builtin one too."""

import inspect
import pickle
import sys

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import make
from udfdask import errors
from udfdask.io import open_file
from udfdask.udfs import SumUDF

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass)]
X = da.zeros((4, 6, 8, 8), chunks=(2, 6, 8, 8), dtype="float32")


def idle(buffers, **methods):
    """A UDF that does nothing with its data."""
    return make(buffers, process_frame=lambda self, frame: None, **methods)()


def no_file(tmp_path):
    (tmp_path / "scan.xyz").write_bytes(b"nothing")
    open_file(tmp_path / "scan.xyz")


RAISED = {
    "UDFError": (
        Exception,
        "UDF_METHOD",
        lambda _: ud.run_udf(X, idle({}, get_method=lambda self: "frame")),
    ),
    "ArgumentTypeError": (
        TypeError,
        "expected a dask array",
        lambda _: ud.run_udf(np.zeros((2, 2)), SumUDF()),
    ),
    "ArgumentValueError": (
        ValueError,
        "sig_dims must be between 1 and 4",
        lambda _: ud.run_udf(X, SumUDF(), sig_dims=9),
    ),
    "InvalidMaskError": (
        ValueError,
        "must be boolean",
        lambda _: ud.run_udf(
            X,
            idle(
                {"v": {"kind": "nav"}},
                get_results=lambda self: {"v": self.with_mask(self.results.v, 1.0)},
            ),
        ).compute(scheduler="synchronous"),
    ),
    "MissingMergeError": (
        NotImplementedError,
        "Implement merge",
        lambda _: ud.run_udf(X, idle({"v": {"kind": "sig"}})),
    ),
    "UndeclaredBufferError": (
        KeyError,
        "SumUDF has no result 'v'",
        lambda _: ud.run_udf(X, SumUDF())["v"],
    ),
    "NotAvailableError": (
        AttributeError,
        "does not exist yet",
        lambda _: SumUDF().results,
    ),
    "FileFormatError": (
        ValueError,
        r"no reader knows .*scan\.xyz",
        no_file,
    ),
    "MemoryLimitError": (
        MemoryError,
        "more than max_memory='1 MB'",
        lambda _: ud.run_udf(X, SumUDF(), max_memory="1 MB"),
    ),
    "SumOverflowError": (
        OverflowError,
        "does not fit uint64",
        lambda _: ud.run_udf(da.full((4, 1, 1), 2**63, chunks=2, dtype="u8"), SumUDF()).compute(),
    ),
    "DeviceError": (
        RuntimeError,
        "CuPy has no arrays of dtype",
        lambda _: ud.run_udf(
            X,
            idle(
                {},
                get_backends=lambda self: "cupy",
                get_preferred_input_dtype=lambda self: np.longdouble,
            ),
        ),
    ),
    "UDFWarning": (
        UserWarning,
        "is cast to bool",
        lambda _: ud.run_udf(X, SumUDF(), roi=np.ones((4, 6), dtype="int64")),
    ),
}
# progressive runs, clusters, time limits
WITH_TESTS_OF_THEIR_OWN = {"UDFRunCancelled"}


def test_each_class_is_here():
    assert {c.__name__ for c in CLASSES} == {*RAISED, *WITH_TESTS_OF_THEIR_OWN}


@pytest.mark.parametrize("name", RAISED)
def test_each_is_raised_and_can_be_caught_as_a_builtin(name, tmp_path):
    builtin, message, call = RAISED[name]
    cls = getattr(errors, name)
    assert issubclass(cls, builtin)
    with pytest.raises(cls, match=message) as caught:  # warnings are errors in these tests
        call(tmp_path)
    assert type(caught.value) is cls


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_each_is_public_and_travels(cls):
    assert cls.__name__ in errors.__all__
    assert issubclass(cls, (ud.UDFError, UserWarning))
    back = pickle.loads(pickle.dumps(cls("a message of several words")))
    assert type(back) is cls
    assert str(back) == "a message of several words"


def test_other_buffers_on_a_worker():
    """Declared by something that is neither a parameter nor a fact about the data set."""
    calls = []

    def get_result_buffers(self):
        calls.append(1)
        return {"v": self.buffer("nav", extra_shape=(len(calls),))}

    udf = make({}, get_result_buffers=get_result_buffers, process_frame=lambda self, frame: None)()
    with pytest.raises(ud.UDFError, match="declared other buffers"):
        ud.run_udf(X, udf).compute(scheduler="synchronous")


@pytest.mark.parametrize("run", [ud.run_udf, ud.explain])
def test_corrections_at_every_door(run):
    with pytest.raises(ud.ArgumentTypeError, match="corrections must be"):
        run(X, SumUDF(), corrections=np.zeros((8, 8)))


def test_hyperspy_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "hyperspy.api", None)
    (tmp_path / "scan.hspy").write_bytes(b"1")
    with pytest.raises(ImportError, match="hyperspy"):
        open_file(tmp_path / "scan.hspy")
