"""UDFs that take data in the backends that they are told, and look at what they are given."""

import math

import numpy as np
import sparse

import udfdask as ud
from udf_programs import make_udf
from udfdask.backends.table import backend_of


def dense(array):
    if isinstance(array, np.ndarray):
        return array
    return array.todense() if isinstance(array, sparse.SparseArray) else array.toarray()


class Looks:
    """What is given is what was announced: backend, dtype, shape."""

    def dense(self, data, by_frame=False):
        """Check a frame, tile or partition; return it dense, in the shape that NumPy would have."""
        meta = self.meta
        assert backend_of(data).name == meta.array_backend
        assert meta.array_backend in self.offers()
        assert data.dtype == meta.input_dtype
        stack = tuple(meta.slice.shape)
        if meta.array_backend in self.D2_BACKENDS:
            assert tuple(data.shape) == (stack[0], math.prod(stack[1:]))
        else:
            assert tuple(data.shape) == (stack[1:] if by_frame else stack)
        return dense(data).reshape(stack[1:] if by_frame else stack)


class Wants(Looks, ud.UDF):
    """Keeps every pixel that it sees, doubled in place with `write`."""

    def __init__(self, offers, method="tile", write=False, dtype=None):
        super().__init__(offers=offers, method=method, write=write, dtype=dtype)
        self.writable_input = write

    def offers(self):
        return (self.params.offers,) if isinstance(self.params.offers, str) else self.params.offers

    def get_backends(self):
        return self.params.offers

    def get_preferred_input_dtype(self):
        return self.params.dtype or self.USE_NATIVE_DTYPE

    def get_method(self):
        return self.UDF_METHOD[self.params.method.upper()]

    def get_result_buffers(self):
        sig = tuple(self.meta.dataset_shape.sig)
        return {
            "seen": self.buffer("nav", extra_shape=sig, dtype=self.meta.input_dtype),
            "total": self.buffer("sig", dtype=np.result_type(self.meta.input_dtype, "f8")),
        }

    def process_tile(self, data):
        self._look(data, by_frame=False)

    process_partition = process_tile

    def process_frame(self, data):
        self._look(data, by_frame=True)

    def _look(self, data, by_frame):
        if self.params.write:
            double(data)
        shown = self.dense(data, by_frame)
        where = self.meta.sig_slice.get()
        self.results.seen[where if by_frame else (slice(None), *where)] = shown
        self.results.total += shown if by_frame else shown.sum(axis=0)

    def merge(self, dest, src):
        dest.seen[:] = src.seen
        dest.total += src.total


def double(array):
    if isinstance(array, np.ndarray):
        array *= array.dtype.type(2)
    elif isinstance(array.data, dict):
        array.data.update({place: value * 2 for place, value in array.data.items()})
    else:
        array.data *= array.dtype.type(2)


class ProgramOn(Looks):
    def offers(self):
        return self.params.options["offers"]

    def get_backends(self):
        return self.offers()

    def process_tile(self, data):
        self.add(self.dense(data).copy())

    process_partition = process_tile

    def process_frame(self, data):
        self.add(self.dense(data, by_frame=True)[np.newaxis].copy(), by_frame=True)

    def get_method(self):
        return self.UDF_METHOD[self.program.method.upper()]


def program_on(program, offers):
    plain = make_udf(program)
    cls = type("On" + type(plain).__name__, (ProgramOn, type(plain)), {})
    options = {**plain._kwargs["options"], "offers": tuple(offers)}
    return cls(**{**plain._kwargs, "options": options})
