"""UDFs that make one promise each, which is not true; and the same with one that is."""

import numba
import numpy as np

import udfdask as ud


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


# declares_once


class KeepsAttribute(Rows):
    promises = ud.Promises(declares_once=True)

    def get_result_buffers(self):
        self.factor = 2
        return super().get_result_buffers()

    def process_tile(self, tile):
        self.results.sums += self.factor * tile.sum(axis=(1, 2))


class KeepsInList(KeepsAttribute):
    promises = ud.Promises(declares_once=True)

    def __init__(self):
        self.factors = []
        super().__init__()

    def get_result_buffers(self):
        self.factors.append(2)
        return super(KeepsAttribute, self).get_result_buffers()


class KeepsOnClass(KeepsAttribute):
    promises = ud.Promises(declares_once=True)
    factor = 1

    def get_result_buffers(self):
        KeepsOnClass.factor = 2
        return super(KeepsAttribute, self).get_result_buffers()


# merge_only_reads_src


class MergesIntoSrc(Total):
    promises = ud.Promises(merge_only_reads_src=True)

    def merge(self, dest, src):
        src.total += dest.total
        dest.total[:] = src.total


# processes_stacks


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


class CountsStacks(Peak):
    promises = ud.Promises(processes_stacks=True)

    def process_stack(self, stack):
        self.results.peak[:] = stack.max(axis=(1, 2))
        self.results.n += 1


# processes_sums


class SumsOfTiles(Rows):
    promises = ud.Promises(processes_sums=True)

    def process_sums(self, sums):
        self.results.sums += sums.of_frames[:, 0]


class MomentsOfTiles(Rows):
    promises = ud.Promises(processes_sums=True)

    def process_sums(self, sums):
        self.results.sums += sums.of_frames[:, 1]


class NoSums(Rows):
    promises = ud.Promises(processes_sums=True)

    def process_sums(self, sums):
        raise ValueError("not today")


# takes_any_byte_order


class AnyOrder(Rows):
    promises = ud.Promises(takes_any_byte_order=True)

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE


class LooksAtBytes(AnyOrder):
    promises = ud.Promises(takes_any_byte_order=True)

    def process_tile(self, tile):
        plain = np.ascontiguousarray(tile).view(tile.dtype.newbyteorder("="))
        self.results.sums += plain.sum(axis=(1, 2))


@numba.njit
def add_up(tile, sums):
    for i in range(tile.shape[0]):
        sums[i] += tile[i].sum()


class CompilesForNative(AnyOrder):
    promises = ud.Promises(takes_any_byte_order=True)

    def process_tile(self, tile):
        add_up(tile, self.results.sums)


# adds_signal_parts


class AddsParts(Rows):
    promises = ud.Promises(adds_signal_parts=True)


class PeakOfParts(Rows):
    promises = ud.Promises(adds_signal_parts=True)

    def process_tile(self, tile):
        np.maximum(self.results.sums, tile.max(axis=(1, 2)), out=self.results.sums)


class StartsFromOne(Rows):
    promises = ud.Promises(adds_signal_parts=True)

    def preprocess(self):
        self.results.sums[:] = 1


class RootOfParts(Rows):
    promises = ud.Promises(adds_signal_parts=True)

    def postprocess(self):
        self.results.sums[:] = np.abs(self.results.sums) ** 0.5


# only_sums_frames


class OnlySums(Total):
    promises = ud.Promises(only_sums_frames=True)


class SumsSquares(Total):
    promises = ud.Promises(only_sums_frames=True)

    def process_tile(self, tile):
        self.results.total += (tile**2).sum(axis=0)


class SumsFunction(Total):
    promises = ud.Promises(only_sums_frames=True)

    def process_tile(self, tile):
        self.results.total += np.asarray(tile).sum(axis=0)


class SumsPixels(Rows):
    promises = ud.Promises(only_sums_frames=True)


class GoesAroundCorrections(Total):
    promises = ud.Promises(only_sums_frames=True)

    def process_tile(self, tile):
        self.results.total += getattr(tile, "frames", tile).sum(axis=0)


LIARS = {
    "declares_once": [KeepsAttribute, KeepsInList, KeepsOnClass],
    "merge_only_reads_src": [MergesIntoSrc],
    "processes_stacks": [PeakOfStack, CountsStacks],
    "processes_sums": [MomentsOfTiles, NoSums],
    "takes_any_byte_order": [LooksAtBytes, CompilesForNative],
    "adds_signal_parts": [PeakOfParts, StartsFromOne, RootOfParts],
    "only_sums_frames": [SumsSquares, SumsFunction, SumsPixels, GoesAroundCorrections],
}
"""UDFs whose promise is not true, by promise."""

HONEST = [Peak, SumsOfTiles, AnyOrder, AddsParts, OnlySums]
"""UDFs whose promise is true."""
