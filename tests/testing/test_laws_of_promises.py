"""Promises that are not true are found out, one law for each; true ones raise no alarm.

Each UDF makes one promise.
"""

import dataclasses

import numba
import numpy as np
import pytest

import udfdask as ud
from udfdask.testing import UDFCheckError, check_udf
from udfdask.testing.laws import promises


class Rows(ud.UDF):
    """Sums of frames."""

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.sums += tile.sum(axis=(1, 2))


class Total(ud.UDF):
    """The sum of all frames."""

    def get_result_buffers(self):
        return {"total": self.buffer("sig", dtype="float64")}

    def process_tile(self, tile):
        self.results.total += tile.sum(axis=0)

    def merge(self, dest, src):
        dest.total += src.total


class KeepsAttribute(Rows):
    promises = ud.Promises(declares_once=True)

    def get_result_buffers(self):
        self.factor = 2
        return super().get_result_buffers()

    def process_tile(self, tile):
        self.results.sums += self.factor * tile.sum(axis=(1, 2))


class MergesIntoSrc(Total):
    promises = ud.Promises(merge_only_reads_src=True)

    def merge(self, dest, src):
        src.total += dest.total
        dest.total[:] = src.total


class Peak(ud.UDF):
    promises = ud.Promises(processes_stacks=True)
    merge_assigns_nav = True

    def get_result_buffers(self):
        return {"peak": self.buffer("nav", dtype="float64"), "n": self.buffer("single")}

    def process_frame(self, frame):
        self.results.peak[:] = frame.max()
        self.results.n += 1

    def process_stack(self, stack):
        self.results.peak[:] = stack.max(axis=(1, 2))
        self.results.n += len(stack)

    def merge(self, dest, src):
        dest.peak[:] = src.peak
        dest.n += src.n


class PeakOfStack(Peak):
    promises = ud.Promises(processes_stacks=True)

    def process_stack(self, stack):
        self.results.peak[:] = stack.max()
        self.results.n += len(stack)


class SumsOfTiles(Rows):
    promises = ud.Promises(processes_sums=True)

    def process_sums(self, sums):
        self.results.sums += sums.of_frames[:, 0]


class MomentsOfTiles(Rows):
    promises = ud.Promises(processes_sums=True)

    def process_sums(self, sums):
        self.results.sums += sums.of_frames[:, 1]


class AnyOrder(Rows):
    promises = ud.Promises(takes_any_byte_order=True)

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE


@numba.njit
def add_up(tile, sums):
    for i in range(tile.shape[0]):
        sums[i] += tile[i].sum()


class CompilesForNative(AnyOrder):
    promises = ud.Promises(takes_any_byte_order=True)

    def process_tile(self, tile):
        add_up(tile, self.results.sums)


class AddsParts(Rows):
    promises = ud.Promises(adds_signal_parts=True)


class PeakOfParts(Rows):
    promises = ud.Promises(adds_signal_parts=True)

    def process_tile(self, tile):
        np.maximum(self.results.sums, tile.max(axis=(1, 2)), out=self.results.sums)


class OnlySums(Total):
    promises = ud.Promises(only_sums_frames=True)


class SumsSquares(Total):
    promises = ud.Promises(only_sums_frames=True)

    def process_tile(self, tile):
        self.results.total += (tile**2).sum(axis=0)


LIARS = {
    "declares_once": KeepsAttribute,
    "merge_only_reads_src": MergesIntoSrc,
    "processes_stacks": PeakOfStack,
    "processes_sums": MomentsOfTiles,
    "takes_any_byte_order": CompilesForNative,
    "adds_signal_parts": PeakOfParts,
    "only_sums_frames": SumsSquares,
}
"""UDFs whose promise is not true, by promise."""

HONEST = [Peak, SumsOfTiles, AnyOrder, AddsParts, OnlySums]
"""UDFs whose promise is true."""

FIELDS = [field.name for field in dataclasses.fields(ud.Promises)]
for name in ("starts_no_threads", "streams_tiles"):  # no result depends on them
    FIELDS.remove(name)


def test_each_promise_has_a_law_and_a_liar():
    assert all(callable(getattr(promises, name)) for name in FIELDS)
    assert sorted(LIARS) == sorted(FIELDS)


@pytest.mark.parametrize(("promise", "cls"), LIARS.items(), ids=LIARS)
def test_a_promise_that_is_not_true(promise, cls):
    told = rf"^{cls.__name__}: it promises {promise}, but .*Or do not make this promise \[law"
    with pytest.raises(UDFCheckError, match=told) as caught:
        check_udf(cls())
    assert caught.value.law == promise


@pytest.mark.parametrize("cls", HONEST)
def test_a_promise_that_is_true(cls):
    (promise,) = [name for name in FIELDS if getattr(cls.promises, name)]
    report = check_udf(cls())
    assert promise in report.laws
    assert not set(FIELDS) - {promise} & set(report.laws)
    assert not report.notes


def test_without_promises_there_is_nothing_to_check():
    assert not set(FIELDS) & set(check_udf(Rows()).laws)
