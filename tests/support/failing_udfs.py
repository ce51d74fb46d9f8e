"""A UDF whose methods raise an exception of the user; importable on workers."""

import udfdask as ud


class OwnError(Exception):
    """An exception of a user."""


def raise_own_error(method):
    try:
        {}[method]
    except KeyError as error:
        raise OwnError(method) from error


class FailsElsewhere(ud.UDF):
    """Has no method that processes."""

    def __init__(self, method, size=(), row=None):
        super().__init__(method=method, size=size, row=row)

    def get_result_buffers(self):
        size = self.params.size
        return {
            "total": self.buffer("single", extra_shape=size, dtype="float64"),
            "mean": self.buffer("single", extra_shape=size, dtype="float64", use="result_only"),
        }

    def check(self, method):
        row = self.params.row
        if self.params.method == method and (row is None or row in self.meta.coordinates[:, 0]):
            raise_own_error(method)

    def get_task_data(self):
        self.check("get_task_data")
        return {}

    def preprocess(self):
        self.check("preprocess")

    def postprocess(self):
        self.check("postprocess")

    def merge(self, dest, src):
        self.check("merge")
        dest.total[:] += src.total

    def get_results(self):
        self.check("get_results")
        return {"mean": self.results.total / 2}


class Fails(FailsElsewhere):
    def process_frame(self, frame):
        self.check("process_frame")
        self.results.total += frame.sum()


def fail_on_data(frame):
    """A function for `map_frames` that takes the frame of ones of the plan."""
    if frame[0, 0] != 1:
        raise_own_error("function")
    return frame.sum()
