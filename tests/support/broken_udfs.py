"""UDFs that are wrong on purpose, one fault each."""

import itertools
import threading

import numpy as np

import udfdask as ud


class Sums(ud.UDF):
    """Right: sums and a count, merged."""

    def get_result_buffers(self):
        return {
            "total": self.buffer("sig", dtype="float64"),
            "count": self.buffer("single", dtype="int64"),
        }

    def process_frame(self, frame):
        self.results.total += frame
        self.results.count += 1

    def merge(self, dest, src):
        dest.total += src.total
        dest.count += src.count


class Rows(ud.UDF):
    """Right: a number per frame."""

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum()


# merging


class ForgetsBuffer(Sums):
    def merge(self, dest, src):
        dest.total += src.total


class ForgetsPrivateBuffer(Sums):
    def get_result_buffers(self):
        return {
            "total": self.buffer("sig", dtype="float64", use="private"),
            "count": self.buffer("single", dtype="int64"),
            "mean": self.buffer("sig", dtype="float64", use="result_only"),
        }

    def merge(self, dest, src):
        dest.count += src.count

    def get_results(self):
        return {"mean": self.results.total / max(1, self.results.count[0])}


class ForgetsRows(Rows):
    def merge(self, dest, src):
        pass


class Overwrites(Sums):
    def merge(self, dest, src):
        dest.total[:] = src.total
        dest.count += src.count


class OverwritesInChain(Overwrites):
    def get_result_buffers(self):
        return {**super().get_result_buffers(), "sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        super().process_frame(frame)
        self.results.sums[:] = frame.sum()

    def merge(self, dest, src):
        super().merge(dest, src)
        dest.sums[:] = src.sums


class KeepsTheFirst(Sums):
    def merge(self, dest, src):
        if not dest.count[0]:
            dest.total[:] = src.total
        dest.count += src.count


class MergeAverages(Sums):
    """Averages partial means without their weights."""

    def get_result_buffers(self):
        return {"mean": self.buffer("sig", dtype="float64")}

    def process_partition(self, partition):
        self.results.mean[:] = partition.mean(axis=0)

    process_frame = None

    def get_method(self):
        return self.UDF_METHOD.PARTITION

    def merge(self, dest, src):
        valid = self.meta.get_valid_nav_mask()
        dest.mean[:] = (dest.mean + src.mean) / 2 if valid.any() else src.mean


class AverageOfAverages(ud.UDF):
    def get_result_buffers(self):
        return {"mean": self.buffer("sig", dtype="float64")}

    def process_partition(self, partition):
        self.results.mean[:] = partition.mean(axis=0)

    def merge_all(self, ordered_results):
        return {"mean": np.mean([p.mean for p in ordered_results.values()], axis=0)}


class AverageOfAveragesOnce(AverageOfAverages):
    split_every = False


class LeavesOutInMergeAll(Sums):
    merge = ud.UDF.merge

    def merge_all(self, ordered_results):
        return {"total": sum(p.total for p in ordered_results.values())}


class ForgetsInMergeAllOnce(LeavesOutInMergeAll):
    split_every = False


class MergesDisagree(Sums):
    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        return {
            "total": np.max([p.total for p in parts], axis=0),
            "count": sum(p["count"] for p in parts),
        }

    def process_frame(self, frame):
        self.results.total[:] = np.maximum(self.results.total, frame)
        self.results.count += 1


class NotNeutral(Sums):
    def preprocess(self):
        self.results.count[:] = 1


class NotNeutralInChain(OverwritesInChain):
    def preprocess(self):
        self.results.count[:] = 1

    def merge(self, dest, src):
        Sums.merge(self, dest, src)
        dest.sums[:] = src.sums


class NumbersThrough(OverwritesInChain):
    """Numbers the frames through in the order of chunks, which need not be that of the scan."""

    def process_frame(self, frame):
        Sums.process_frame(self, frame)
        self.results.sums[:] = self.results.count

    def merge(self, dest, src):
        dest.sums[:] = src.sums + dest.count
        Sums.merge(self, dest, src)


class BreaksPromiseOfRows(Rows):
    elementwise_results = True

    def get_results(self):
        return {"sums": self.results.sums / (np.abs(self.results.sums).sum() + 1)}


# state


class ClassState(Rows):
    seen = 0

    def process_frame(self, frame):
        type(self).seen += 1
        self.results.sums[:] = self.seen


class ClassList(Rows):
    history = []

    def process_frame(self, frame):
        self.history.append(float(frame.sum()))
        self.results.sums[:] = np.mean(self.history)


class FirstDataOnClass(Rows):
    background = None

    def process_frame(self, frame):
        if FirstDataOnClass.background is None:
            FirstDataOnClass.background = frame.copy()
        self.results.sums[:] = (frame - self.background).sum()


COUNTER = {"frames": 0}


class GlobalState(Rows):
    def process_frame(self, frame):
        COUNTER["frames"] += 1
        self.results.sums[:] = COUNTER["frames"]


number = itertools.count()


def next_number():
    return next(number)


class GlobalIterator(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = next_number()


def make_closure_state():
    total = 0.0

    class ClosureState(Rows):
        def process_frame(self, frame):
            nonlocal total
            total += float(frame.sum())
            self.results.sums[:] = total

    return ClosureState()


class DefaultState(Rows):
    def process_frame(self, frame, seen=[]):  # noqa: B006
        seen.append(1)
        self.results.sums[:] = len(seen)


class ParameterState(Rows):
    def __init__(self, rng):
        super().__init__(rng=rng)

    def process_frame(self, frame):
        self.results.sums[:] = self.params.rng.random()


class InstanceState(Rows):
    def __init__(self):
        super().__init__()
        self.count = 0

    def process_frame(self, frame):
        self.count += 1
        self.results.sums[:] = self.count


class SingleState(Sums):
    """The background is the first frame of the chunk."""

    def process_frame(self, frame):
        if not hasattr(self, "background"):
            self.background = frame.copy()
        self.results.total += frame - self.background
        self.results.count += 1


class RandomResult(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = np.random.default_rng().random()


# input and tiles


class WritesFrame(Rows):
    def process_frame(self, frame):
        frame -= 1
        self.results.sums[:] = frame.sum()


class WritesTile(Rows):
    process_frame = None

    def process_tile(self, tile):
        np.maximum(tile, 0, out=tile)
        self.results.sums[:] += tile.reshape((len(tile), -1)).sum(axis=1)


class WritesAllowedFrame(WritesFrame):
    writable_input = True


class AssignsTile(ud.UDF):
    def get_result_buffers(self):
        return {"peak": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.peak[:] = tile.reshape((len(tile), -1)).max(axis=1)


class CountsTiles(Sums):
    def process_tile(self, tile):
        self.results.total += tile.sum(axis=0)
        self.results.count += 1


class TakesWholeSignal(ud.UDF):
    """The weight of a pixel is that of its place in the tile."""

    whole_frames = False

    def get_result_buffers(self):
        return {"moment": self.buffer("nav", dtype="float64")}

    def get_tiling_preferences(self):
        return {"depth": 1, "total_size": np.inf}

    def process_tile(self, tile):
        weight = np.arange(tile.shape[-1])
        self.results.moment[:] += (tile * weight).reshape((len(tile), -1)).sum(axis=1)


# chunks and regions


class RowInChunk(ud.UDF):
    def get_result_buffers(self):
        return {"row": self.buffer("nav", dtype="int64")}

    def process_partition(self, partition):
        self.results.row[:] = np.arange(len(partition))


class RowAsPosition(ud.UDF):
    def get_result_buffers(self):
        return {"y": self.buffer("nav", dtype="int64"), "x": self.buffer("nav", dtype="int64")}

    def process_frame(self, frame):
        row = self.meta.slice.origin[0]
        self.results.y[:], self.results.x[:] = divmod(row, self.meta.dataset_shape.nav[-1])


class RowOfFullParameter(Rows):
    def process_frame(self, frame):
        row = self.meta.slice.origin[0]
        self.results.sums[:] = frame.sum() * (1 + row % 7)


# results and making


class WrongKind(Rows):
    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="int64")}

    def get_results(self):
        return {"sums": self.results.sums / 2}


class UndeclaredResult(Rows):
    def get_results(self):
        return {"sum": self.results.sums}


class ResultsInPlace(Sums):
    def get_results(self):
        self.results.total /= max(1, int(self.results.count[0]))
        return {}


class ResultsOfCounter(Rows):
    calls = 0

    def get_results(self):
        ResultsOfCounter.calls += 1
        return {"sums": self.results.sums + self.calls}


class ResultsInPlaceAndReturned(Sums):
    def get_results(self):
        total = self.results.total
        total += 1
        return {"total": total}


class KeepsParameter(Rows):
    def __init__(self, thing):
        super().__init__(thing=thing)


class ParameterOfOtherName(Rows):
    def __init__(self, factor):
        super().__init__(weight=factor)


class PositionalOnly(Rows):
    def __init__(self, factor, offset):
        super().__init__(factor=factor)


class DoublesParameter(Rows):
    def __init__(self, factor):
        super().__init__(factor=2 * factor)


class RandomBuffers(ud.UDF):
    def get_result_buffers(self):
        n = np.random.default_rng().integers(1, 100)
        return {"x": self.buffer("nav", extra_shape=(int(n),))}

    def process_frame(self, frame):
        self.results.x[:] = frame.sum()


class NeedsLargeSignal(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = frame[100, 100]


class NoMerge(Sums):
    merge = ud.UDF.merge


LOCK = threading.Lock()


class ByteOrder(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() * (2 if self.meta.dataset_dtype.isnative else 1)


class LooksAtOthers(ud.UDF):
    """Counts the tiles a frame came in, which others may ask to be smaller."""

    whole_frames = True

    def get_result_buffers(self):
        return {"depth": self.buffer("nav", dtype="int64")}

    def process_tile(self, tile):
        self.results.depth[:] = self.meta.tiling_scheme.shape[0]
