"""A method with a misspelled name is never called: a run says so."""

import warnings

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


@pytest.mark.parametrize("name", ["process", "_preproces", "merged_frames"])
def test_other_names_do_not(name):
    ud.run_udf(X, with_methods(name))


def test_a_helper_that_is_called_does_not():
    class HelpedUDF(TotalUDF):
        def process_frame(self, frame):
            self.process_frames(frame)

        def process_frames(self, frames):
            self.results.total += frames

    ud.run_udf(X, HelpedUDF())


def test_ready_made_udfs_do_not():
    from udfdask import udfs

    class MySumUDF(udfs.SumUDF):
        """As users do to add a parameter."""

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ud.run_udf(X, [MySumUDF(), udfs.CoMUDF(), udfs.StdDevUDF()])


def test_a_missing_merge_names_what_is_there():
    udf = with_methods("mrege", leave_out=["merge"])
    with pytest.raises(
        ud.errors.MissingMergeError, match=r"MyUDF\.mrege is never called: did you mean merge\?$"
    ):
        ud.run_udf(X, udf)


def test_a_missing_processing_method_names_what_is_there():
    udf = with_methods("proces_frame", leave_out=["process_frame"])
    with pytest.raises(
        ud.ArgumentTypeError, match="proces_frame is never called: did you mean process_frame"
    ):
        ud.run_udf(X, udf)
    with pytest.raises(
        ud.ArgumentTypeError, match=r"process_tile, process_frame or process_partition$"
    ):
        ud.run_udf(X, with_methods("other", leave_out=["process_frame"]))
