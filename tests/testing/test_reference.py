"""The plain reference does what the interface says, and agrees with a run."""

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udf_zoo import Rows
from udfdask.testing import assert_eq, run_reference

DATA = np.arange(3 * 4 * 2 * 3, dtype="int16").reshape(3, 4, 2, 3)
X = da.from_array(DATA, chunks=(2, 3, 2, 2))
ROIS = [None, (1, 2), np.s_[1:], np.zeros((3, 4), bool), [((0, 1), True)]]


class Boxed(Rows):
    """Objects in single and nav buffers, one of them a list."""

    def get_result_buffers(self):
        return {
            **super().get_result_buffers(),
            "words": self.buffer("single", dtype=object, use="result_only"),
            "each": self.buffer("nav", dtype=object),
        }

    def process_frame(self, frame):
        super().process_frame(frame)
        self.results.each[0] = [float(frame.max()), "max"]

    def get_results(self):
        return {"words": ["a", "list", int(np.nansum(self.results.sums))]}


class Masked(Rows):
    def get_results(self):
        return {"sums": self.with_mask(self.results.sums, self.results.sums > 50)}


class Filled(Rows):
    def get_result_buffers(self):
        return {
            "sums": self.buffer("nav", dtype="float64", fill_value=-1),
            "when": self.buffer("nav", dtype="M8[s]"),
            "text": self.buffer("nav", dtype="S3"),
            "both": self.buffer("nav", dtype="i4,f4", extra_shape=(2,)),
        }

    def process_frame(self, frame):
        super().process_frame(frame)
        total = int(frame.sum())
        self.results.when[:] = np.datetime64(total, "s")
        self.results.text[:] = str(total).encode()
        self.results.both[:] = (total, -total)


class Reused(Rows):
    """Buffers with names of methods, and merges that ask what was merged before."""

    def get_result_buffers(self):
        return {
            "keys": self.buffer("nav", dtype="int64"),
            "get": self.buffer("single", dtype="int64"),
        }

    def get_task_data(self):
        return {"n": np.int64(self.meta.partition_shape.nav[0])}

    def process_frame(self, frame):
        self.results.keys[:] = int(frame.sum()) + 0 * self.task_data.n
        self.results.get += 1

    def merge(self, dest, src):
        assert dest.get[0] == self.meta.get_valid_nav_mask().sum()
        dest.keys[:] = src.keys
        dest.get += src.get


class Scaled(Rows):
    def __init__(self, weight):
        super().__init__(weight=weight)

    def process_frame(self, frame):
        self.results.sums[:] = (frame * self.params.weight).sum()


@pytest.mark.parametrize("roi", ROIS, ids=["all", "position", "slices", "none", "entries"])
@pytest.mark.parametrize("cls", [Boxed, Masked, Filled, Reused])
def test_it_agrees_with_a_run(cls, roi):
    assert_eq(ud.run_udf(X, cls(), roi=roi), run_reference(X, cls(), roi=roi))


def test_lazy_parameters_and_data():
    udf = Scaled(da.arange(3, chunks=2))
    assert_eq(run_reference(X, udf), {"sums": (DATA * np.arange(3.0)).sum(axis=(2, 3))})
    assert_eq(ud.run_udf(X, udf), run_reference(DATA, udf))


def test_several_and_the_users_data():
    data = DATA.copy()
    udfs = [udf_zoo.WritesFrames(), udf_zoo.NavSums()]
    halved, sums = run_reference(data, udfs)
    assert (halved["sums"] < sums["sums"]).any()
    assert_eq(data, DATA)
