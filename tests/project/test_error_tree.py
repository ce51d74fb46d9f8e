"""Every error of the package is raised somewhere, says what to do, and is a builtin one too."""

import inspect
import pickle
import sys

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import make
from udfdask import errors
from udfdask.geometry.chunk_grid import Grid
from udfdask.io import open_file
from udfdask.testing import run_reference
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import TaskData
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
        r"must return a member of UDF\.UDF_METHOD, not 'frame'",
        lambda _: ud.run_udf(X, idle({}, get_method=lambda self: "frame")),
    ),
    "ArgumentTypeError": (
        TypeError,
        r"expected a dask array of shape .*, got numpy\.ndarray of shape \(2, 2\): make one with",
        lambda _: ud.run_udf(np.zeros((2, 2)), SumUDF()),
    ),
    "ArgumentValueError": (
        ValueError,
        r"sig_dims must be between 1 and 4, the number of axes of the array, not 9",
        lambda _: ud.run_udf(X, SumUDF(), sig_dims=9),
    ),
    "InvalidMaskError": (
        ValueError,
        r"gave 'v' a mask of dtype float64: a valid mask must be boolean",
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
        r"the default merge cannot combine: v \(kind sig or single\)\. Implement merge",
        lambda _: ud.run_udf(X, idle({"v": {"kind": "sig"}})),
    ),
    "UndeclaredBufferError": (
        KeyError,
        r"^SumUDF has no result 'v'; there are \['intensity'\]$",
        lambda _: ud.run_udf(X, SumUDF())["v"],
    ),
    "NotAvailableError": (
        AttributeError,
        r"self\.results does not exist yet: it exists while a chunk is processed",
        lambda _: SumUDF().results,
    ),
    "FileFormatError": (
        ValueError,
        r"no reader knows .*scan\.xyz: its suffix '\.xyz' is not",
        no_file,
    ),
    "MemoryLimitError": (
        MemoryError,
        r"^the run needs .* MiB in a process with .*, more than max_memory='1 MB': ",
        lambda _: ud.run_udf(X, SumUDF(), max_memory="1 MB"),
    ),
    "SumOverflowError": (
        OverflowError,
        r"a sum of integers does not fit uint64: convert the data, array\.astype\('float64'\)",
        lambda _: ud.run_udf(da.full((4, 1, 1), 2**63, chunks=2, dtype="u8"), SumUDF()).compute(),
    ),
    "DeviceError": (
        RuntimeError,
        r"CuPy has no arrays of dtype .*, only of .*: convert the data, or run without CuPy: ",
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
        r"the roi has dtype int64 and is cast to bool",
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
    assert getattr(ud, cls.__name__) is cls
    assert cls.__name__ in ud.__all__
    assert issubclass(cls, (ud.UDFError, UserWarning))
    back = pickle.loads(pickle.dumps(cls("a message of several words")))
    assert type(back) is cls
    assert str(back) == "a message of several words"


# Raised in rare places.


def test_other_buffers_on_a_worker():
    """Declared by something that is neither a parameter nor a fact about the data set."""
    calls = []

    def get_result_buffers(self):
        calls.append(1)
        return {"v": self.buffer("nav", extra_shape=(len(calls),))}

    udf = make({}, get_result_buffers=get_result_buffers, process_frame=lambda self, frame: None)()
    with pytest.raises(
        ud.UDFError, match=r"Made\.get_result_buffers\(\) declared other buffers on"
    ):
        ud.run_udf(X, udf).compute(scheduler="synchronous")


def test_threads_before_they_are_known():
    meta = UDFMeta(
        grid=Grid.of([(1,)]),
        dataset_shape=ud.Shape((1, 2, 2), sig_dims=2),
        dataset_dtype=np.dtype("f4"),
    )
    with pytest.raises(ud.NotAvailableError, match=r"meta\.threads_per_worker .* on a worker"):
        _ = meta.threads_per_worker


def test_task_data_that_nobody_made():
    data = TaskData({"a": 1})
    assert (data.a, data["a"], data.get("b", 2), "a" in data) == (1, 1, 2, True)
    with pytest.raises(AttributeError, match=r"no task data 'b'; get_task_data returned \['a'\]"):
        _ = data.b
    with pytest.raises(KeyError, match=r"b"):
        data["b"]


@pytest.mark.parametrize("run", [ud.run_udf, ud.explain])
def test_corrections_at_every_door(run):
    with pytest.raises(ud.ArgumentTypeError, match=r"corrections must be a .*CorrectionSet, not a"):
        run(X, SumUDF(), corrections=np.zeros((8, 8)))


def test_the_reference_run_needs_a_merge_too():
    udf = idle({"v": {"kind": "single"}})
    with pytest.raises(
        ud.MissingMergeError, match=r"Made has buffers that the default merge cannot combine: v"
    ):
        run_reference(np.zeros((2, 3, 4, 4)), udf)


def test_a_file_without_a_signal(tmp_path, monkeypatch):
    hs = pytest.importorskip("hyperspy.api")
    monkeypatch.setattr(hs, "load", lambda *args, **kwargs: [])
    (tmp_path / "scan.hspy").write_bytes(b"1")
    with pytest.raises(ud.FileFormatError, match=r"HyperSpy finds no .*scan\.hspy"):
        open_file(tmp_path / "scan.hspy")


def test_hyperspy_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "hyperspy.api", None)
    (tmp_path / "scan.hspy").write_bytes(b"1")
    with pytest.raises(ImportError, match=r"reading scan\.hspy.*needs hyperspy|hyperspy.*pip inst"):
        open_file(tmp_path / "scan.hspy")


class TestNames:
    """What is not there is an error that says what is."""

    @pytest.mark.parametrize("value", [None, {}, [], object])
    def test_parameters(self, value):
        udf = ud.UDF(a=value)
        assert udf.params.a is value
        with pytest.raises(AttributeError, match=r"there is no parameter '_b'; there are \['a'\]"):
            _ = udf.params._b
        with pytest.raises(KeyError, match=r"b"):
            udf.params["b"]
        with pytest.raises(ud.UDFError, match=r"cannot be assigned \(params\.a = \.\.\.\)"):
            udf.params.a = value
