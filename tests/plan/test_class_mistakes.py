"""Mistakes in the class of a UDF: halos that cannot be, and misspelled names of methods."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import make
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes

LAZY = da.zeros((4, 6, 3, 3), chunks=(2, 3, 3, 3), dtype="uint16")


class Window(ud.UDF):
    halo = 1

    def get_result_buffers(self):
        return {"n": self.buffer(kind="nav", dtype="int64")}

    def process_neighborhood(self, frames):
        self.results.n[:] = self.meta.neighbor_mask.sum()


MISTAKES = [
    ({"halo": (1, 1, 1)}, ArgumentValueError),
    ({"halo": 2**40}, ArgumentValueError),
    ({"halo": ((0, -2), 1)}, ArgumentValueError),
    ({"halo": 1.5}, ArgumentTypeError),
    ({"halo": True}, ArgumentTypeError),
    ({"halo": None}, ArgumentTypeError),
    ({"boundary": "wrap"}, ArgumentValueError),
    ({"contiguous_nav": True}, ArgumentValueError),
    ({"whole_frames": True}, ArgumentValueError),
    ({"neighbors_outside_roi": "False"}, ArgumentTypeError),
    ({"get_backends": lambda self: (self.BACKEND_SCIPY_CSR,)}, ArgumentValueError),
]


@pytest.mark.parametrize(("attributes", "error"), MISTAKES)
def test_mistakes_are_caught_in_the_plan(attributes, error):
    udf = type("Wrong", (Window,), attributes)()
    with raise_if_dask_computes(), pytest.raises(error):
        ud.run_udf(LAZY, udf)


@pytest.mark.parametrize("halo", [np.int64(1), (1, 1), [1, 1], ((1, 1), [1, 1])])
def test_forms_of_a_halo(halo):
    class Given(Window):
        def __init__(self):
            super().__init__()
            self.halo = halo

    counts = ud.run_udf(LAZY, Given())["n"].compute(scheduler="sync")
    np.testing.assert_array_equal(counts[0], [4, 6, 6, 6, 6, 4])
    np.testing.assert_array_equal(counts[1], [6, 9, 9, 9, 9, 6])


def with_methods(*names, leave_out=()):
    """Return a UDF with more methods, and without some."""
    methods = {"process_frame": lambda self, frame: None, "merge": lambda self, dest, src: None}
    kept = {name: method for name, method in methods.items() if name not in leave_out}
    added = dict.fromkeys(names, methods["process_frame"])
    return make({"total": {"kind": "sig"}}, **kept, **added)()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("post_process", "postprocess"),
        ("mergeall", "merge_all"),
        ("get_tasks_data", "get_task_data"),
    ],
)
def test_a_run_warns_of_a_method_that_is_never_called(name, meant):
    with pytest.warns(
        ud.UDFWarning, match=rf"^Made\.{name} is never called: did you mean {meant}\?$"
    ):
        ud.run_udf(LAZY, with_methods(name))


def test_a_missing_merge_names_what_is_there():
    with pytest.raises(
        ud.errors.MissingMergeError, match=r"Made\.mrege is never called: did you mean merge\?$"
    ):
        ud.run_udf(LAZY, with_methods("mrege", leave_out=["merge"]))


def test_a_processing_method_that_is_none_is_refused():
    methods = {"process_frame": None, "get_method": lambda self: ud.UDFMethod.FRAME}
    with pytest.raises(ud.UDFError, match=r"must be a member of UDF\.UDF_METHOD whose process_"):
        ud.run_udf(LAZY, make({"sums": {"kind": "nav"}}, **methods)())
