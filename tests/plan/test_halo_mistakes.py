"""What a halo may be; a wrong one is an error that says what was expected and what came."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes

LAZY = da.zeros((4, 6, 3, 3), chunks=(2, 3, 3, 3), dtype="uint16")


class Window(ud.UDF):
    halo = 1

    def get_result_buffers(self):
        return {"n": self.buffer(kind="nav", dtype="int64")}

    def process_neighborhood(self, frames):
        self.results.n[:] = self.meta.neighbor_mask.sum()


MISTAKES = {
    "three axes": ({"halo": (1, 1, 1)}, ArgumentValueError, r"each of the 2 axes"),
    "endless": ({"halo": 2**40}, ArgumentValueError, "from 0 to 1000000"),
    "negative": ({"halo": ((0, -2), 1)}, ArgumentValueError, "an int from 0"),
    "a float": ({"halo": 1.5}, ArgumentTypeError, r"halo = 1.5: it must be an int"),
    "a bool": ({"halo": True}, ArgumentTypeError, r"halo = True: it must be an int"),
    "a boundary": ({"boundary": "wrap"}, ArgumentValueError, r"one of .*'mask', .*not 'wrap'"),
    "contiguous": ({"contiguous_nav": True}, ArgumentValueError, "leave them out"),
    "whole frames": ({"whole_frames": True}, ArgumentValueError, "leave them out"),
    "no halo": ({"halo": None}, ArgumentTypeError, "process_neighborhood, but no halo: set halo"),
    "sparse": (
        {"get_backends": lambda self: (self.BACKEND_SCIPY_CSR,)},
        ArgumentValueError,
        "takes only sparse arrays: .*add 'numpy'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught_in_the_plan(name):
    attributes, error, match = MISTAKES[name]
    udf = type("Wrong", (Window,), attributes)()
    with raise_if_dask_computes(), pytest.raises(error, match=match):
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
