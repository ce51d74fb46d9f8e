"""A method with a misspelled name is never called: a run says so."""

import dask.array as da
import pytest

import udfdask as ud

X = da.ones((3, 4, 6, 7), chunks=(1, 4, 6, 7))


class TotalUDF(ud.UDF):
    def get_result_buffers(self):
        return {"total": self.buffer(kind="sig", dtype="float64")}

    def process_frame(self, frame):
        self.results.total += frame

    def merge(self, dest, src):
        dest.total += src.total


def with_methods(*names, leave_out=()):
    """Return the UDF with more methods, and without some."""
    kept = {name: value for name, value in vars(TotalUDF).items() if name not in leave_out}
    added = {name: kept.get("process_frame", lambda self, *args: None) for name in names}
    return type("MyUDF", (ud.UDF,), {**kept, **added})()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("post_process", "postprocess"),
        ("mergeall", "merge_all"),
        ("get_tasks_data", "get_task_data"),
    ],
)
def test_a_run_warns(name, meant):
    with pytest.warns(
        ud.UDFWarning, match=rf"^MyUDF\.{name} is never called: did you mean {meant}\?$"
    ):
        ud.run_udf(X, with_methods(name))


def test_a_missing_merge_names_what_is_there():
    udf = with_methods("mrege", leave_out=["merge"])
    with pytest.raises(
        ud.errors.MissingMergeError, match=r"MyUDF\.mrege is never called: did you mean merge\?$"
    ):
        ud.run_udf(X, udf)


def test_a_processing_method_that_is_none_is_refused():
    class Inherited(ud.UDF):
        process_frame = None

        def get_method(self):
            return ud.UDFMethod.FRAME

        def get_result_buffers(self):
            return {"sums": self.buffer("nav")}

    with pytest.raises(ud.UDFError, match=r"must be a member of UDF\.UDF_METHOD whose process_"):
        ud.run_udf(X, Inherited())
