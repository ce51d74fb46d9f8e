"""check_udf names the fault of each broken UDF; each class has one fault."""

import threading

import numpy as np
import pytest

import udfdask as ud
from udf_zoo import Rows
from udfdask.testing import UDFCheckError, check_udf

BROKEN = []


def fault(match, *arguments):
    """Give a UDF its place in the test, with a part of the message about it."""

    def register(cls):
        BROKEN.append(pytest.param(cls, arguments, match, id=cls.__name__))
        return cls

    return register


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


class SumsAndRows(Sums):
    """Right: both, merged one chunk after another."""

    def get_result_buffers(self):
        return {**super().get_result_buffers(), "sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        super().process_frame(frame)
        self.results.sums[:] = frame.sum()

    def merge(self, dest, src):
        super().merge(dest, src)
        dest.sums[:] = src.sums


# merging


@fault(r"merge forgets buffer 'count'.* holds 24 .* is 0, .* dest\.count \+= src\.count for a sum")
class ForgetsBuffer(Sums):
    def merge(self, dest, src):
        dest.total += src.total


@fault(r"merge forgets buffer 'sums'.* assign every nav buffer: dest.sums\[:\] = src.sums")
class ForgetsRows(SumsAndRows):
    def merge(self, dest, src):
        Sums.merge(self, dest, src)


@fault("merge is not associative: with chunks .* 'total' is .* np.maximum")
class Overwrites(Sums):
    def merge(self, dest, src):
        dest.total[:] = src.total
        dest.count += src.count


class Mean(ud.UDF):
    def get_result_buffers(self):
        return {"mean": self.buffer("sig", dtype="float64")}

    def process_partition(self, partition):
        self.results.mean[:] = partition.mean(axis=0)


@fault("merge_all is not associative: .* 'mean' is .* divide in get_results")
class AverageOfAverages(Mean):
    def merge_all(self, ordered_results):
        return {"mean": np.mean([p.mean for p in ordered_results.values()], axis=0)}


@fault("merge_all is not associative: .* 'mean' is")
class AverageOfAveragesOnce(AverageOfAverages):
    split_every = False


@fault(r"merge_all\(\) left out 'count'")
class LeavesOutInMergeAll(Sums):
    merge = ud.UDF.merge

    def merge_all(self, ordered_results):
        return {"total": sum(p.total for p in ordered_results.values())}


@fault("merge_all forgets buffer 'count'")
class ForgetsInMergeAllOnce(LeavesOutInMergeAll):
    split_every = False


@fault("merge and merge_all disagree about 'total'")
class MergesDisagree(Sums):
    def process_frame(self, frame):
        self.results.total[:] = np.maximum(self.results.total, frame)
        self.results.count += 1

    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        return {
            "total": np.max([p.total for p in parts], axis=0),
            "count": sum(p["count"] for p in parts),
        }


@fault("'count' is 27, .* 26 .* A merge starts from what preprocess sets")
class NotNeutral(Sums):
    def preprocess(self):
        self.results.count[:] = 1


@fault("merge forgets buffer 'largest': .* after the merge it is inf.* for a maximum")
class AddsToInfinity(ud.UDF):
    def get_result_buffers(self):
        return {"largest": self.buffer("sig")}

    def preprocess(self):
        self.results.largest[:] = np.inf

    def process_frame(self, frame):
        self.results.largest[:] = np.minimum(self.results.largest, frame)

    def merge(self, dest, src):
        dest.largest += src.largest


@fault(r"with chunks \(\(4,\), \(1, 5\)\), 'sums' is")
class NumbersThrough(SumsAndRows):
    """Numbers the frames through in the order of chunks, which need not be that of the scan."""

    def process_frame(self, frame):
        Sums.process_frame(self, frame)
        self.results.sums[:] = self.results.count

    def merge(self, dest, src):
        dest.sums[:] = src.sums + dest.count
        Sums.merge(self, dest, src)


@fault("default merge cannot combine: total, count")
class NoMerge(Sums):
    merge = ud.UDF.merge


# state


@fault("class attribute ClassState.seen changes .* Keep them in a buffer")
class ClassState(Rows):
    seen = 0

    def process_frame(self, frame):
        type(self).seen += 1
        self.results.sums[:] = self.seen


COUNTER = {"frames": 0}


@fault("module global COUNTER changes while data are processed")
class GlobalState(Rows):
    def process_frame(self, frame):
        COUNTER["frames"] += 1
        self.results.sums[:] = COUNTER["frames"]


def make_closure_state():
    total = 0.0

    @fault("variable total outside process_frame changes")
    class ClosureState(Rows):
        def process_frame(self, frame):
            nonlocal total
            total += float(frame.sum())
            self.results.sums[:] = total


make_closure_state()


@fault("default argument of process_frame changes")
class DefaultState(Rows):
    def process_frame(self, frame, seen=[]):  # noqa: B006
        seen.append(1)
        self.results.sums[:] = len(seen)


@fault("parameter 'rng' changes while data are processed", np.random.default_rng(1))
class ParameterState(Rows):
    def __init__(self, rng):
        super().__init__(rng=rng)

    def process_frame(self, frame):
        self.results.sums[:] = self.params.rng.random()


@fault("depend on where chunks begin: .* 'sums' is .* keep nothing in attributes")
class InstanceState(Rows):
    def __init__(self):
        super().__init__()
        self.count = 0

    def process_frame(self, frame):
        self.count += 1
        self.results.sums[:] = self.count


@fault("merge is not associative.* keep nothing in attributes")
class SingleState(Sums):
    """The background is the first frame of the chunk."""

    def process_frame(self, frame):
        if not hasattr(self, "background"):
            self.background = frame.copy()
        self.results.total += frame - self.background
        self.results.count += 1


@fault("two runs over the same data differ: 'sums' is")
class RandomResult(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = np.random.default_rng().random()


# input, tiles, chunks and regions


@fault("output array is read-only .* set writable_input = True")
class WritesFrame(Rows):
    def process_frame(self, frame):
        frame -= 1
        self.results.sums[:] = frame.sum()


@fault("'peak' depends on the shape of tiles: with")
class AssignsTile(ud.UDF):
    def get_result_buffers(self):
        return {"peak": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.peak[:] = tile.reshape((len(tile), -1)).max(axis=1)


@fault("'moment' depends on the shape of tiles")
class TakesWholeSignal(ud.UDF):
    """The weight of a pixel is that of its place in the tile."""

    def get_result_buffers(self):
        return {"moment": self.buffer("nav", dtype="float64")}

    def get_tiling_preferences(self):
        return {"depth": 1, "total_size": np.inf}

    def process_tile(self, tile):
        weight = np.arange(tile.shape[-1])
        self.results.moment[:] += (tile * weight).reshape((len(tile), -1)).sum(axis=1)


@fault("depend on where chunks begin: .* 'row' is 0, .* meta.coordinates")
class RowInChunk(ud.UDF):
    def get_result_buffers(self):
        return {"row": self.buffer("nav", dtype="int64")}

    def process_partition(self, partition):
        self.results.row[:] = np.arange(len(partition))


@fault("nav buffer 'y' of a frame depends on which other frames are in the ROI.*meta.coordinates")
class RowAsPosition(ud.UDF):
    def get_result_buffers(self):
        return {"y": self.buffer("nav", dtype="int64"), "x": self.buffer("nav", dtype="int64")}

    def process_frame(self, frame):
        row = self.meta.slice.origin[0]
        self.results.y[:], self.results.x[:] = divmod(row, self.meta.dataset_shape.nav[-1])


@fault("'sums' depends on the byte order of the data: >u2 gives")
class ByteOrder(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() * (2 if self.meta.dataset_dtype.isnative else 1)


@fault("the plainest run fails.* IndexError.* pass a small array")
class NeedsLargeSignal(Rows):
    def process_frame(self, frame):
        self.results.sums[:] = frame[100, 100]


# results and making


@fault(r"get_results\(\) returned 'sums' with dtype float64, .* as int64")
class WrongKind(Rows):
    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="int64")}

    def get_results(self):
        return {"sums": self.results.sums / 2}


@fault("'sums' .* elementwise_results = True promises")
class BreaksPromiseOfRows(Rows):
    elementwise_results = True

    def get_results(self):
        return {"sums": self.results.sums / (np.abs(self.results.sums).sum() + 1)}


@fault("parameter 'thing' cannot be pickled .*lock", threading.Lock())
class KeepsParameter(Rows):
    def __init__(self, thing):
        super().__init__(thing=thing)


@fault(r"__init__ does not accept its own parameters: ParameterOfOtherName\(weight=\.\.\.\)", 2)
class ParameterOfOtherName(Rows):
    def __init__(self, factor):
        super().__init__(weight=factor)


@fault("__init__ changes its own parameter 'factor' each time: made again, it is 8 instead of 4", 2)
class DoublesParameter(Rows):
    def __init__(self, factor):
        super().__init__(factor=2 * factor)


@fault(r"get_result_buffers\(\) declared other buffers on a worker")
class RandomBuffers(ud.UDF):
    def get_result_buffers(self):
        n = np.random.default_rng().integers(1, 100)
        return {"x": self.buffer("nav", extra_shape=(int(n),))}

    def process_frame(self, frame):
        self.results.x[:] = frame.sum()


class Offers(Rows):
    """Sums of frames on several backends; `wrong` where it forgets one."""

    def __init__(self, backends, wrong=None):
        super().__init__(backends=backends, wrong=wrong)

    def get_backends(self):
        return self.params.backends

    def process_frame(self, frame):
        factor = 2 if self.meta.array_backend == self.params.wrong else 1
        self.results.sums[:] = factor * float(frame.sum())


@fault(
    r"get_backends\(\) offers sparse.COO, on which 'sums'", ("numpy", "sparse.COO"), "sparse.COO"
)
class WrongOnOneBackend(Offers):
    pass


@pytest.mark.parametrize(("cls", "arguments", "match"), BROKEN)
def test_a_broken_udf_is_told_its_fault(cls, arguments, match):
    with pytest.raises(UDFCheckError, match=f"^{cls.__name__}: .*{match}") as caught:
        check_udf(cls(*arguments))
    assert str(caught.value).endswith(f"[law {caught.value.law}]")


def test_a_narrow_dtype_is_told_apart_from_a_fault():
    class Variance(Sums):
        def get_result_buffers(self):
            return {
                "total": self.buffer("sig", dtype="float32", use="private"),
                "squares": self.buffer("sig", dtype="float32", use="private"),
                "count": self.buffer("single", dtype="int64", use="private"),
                "variance": self.buffer("sig", dtype="float32", use="result_only"),
            }

        def process_frame(self, frame):
            super().process_frame(frame)
            self.results.squares += frame**2

        def merge(self, dest, src):
            super().merge(dest, src)
            dest.squares += src.squares

        def get_results(self):
            n = max(1, self.results.count[0])
            return {"variance": self.results.squares / n - (self.results.total / n) ** 2}

    data = np.random.default_rng(0).normal(size=(5, 4, 8, 8))
    check_udf(Variance(), data)
    with pytest.raises(UDFCheckError, match=r"if that is rounding, a wider dtype .* helps"):
        check_udf(Variance(), data + 1000)


@pytest.mark.parametrize("method", ["merg", "proces_frame"])
def test_a_failure_tells_of_methods_that_are_never_called(method):
    right = {"merg": "merge", "proces_frame": "process_frame"}[method]
    typo = {right: getattr(ud.UDF, right, None), method: getattr(Sums, right)}
    cls = type("Typo", (Sums,), typo)
    with pytest.raises(UDFCheckError) as caught:
        check_udf(cls())
    assert f"note: Typo.{method} is never called: did you mean {right}?" in caught.value.__notes__


class Loses(ud.UDF):
    """Assigns something to a buffer of some dtype, in one of the ways there are."""

    def __init__(self, dtype, assign, where="process"):
        super().__init__(dtype=dtype, assign=assign, where=where)

    def get_result_buffers(self):
        return {"lost": self.buffer("nav", dtype=self.params.dtype)}

    def process_frame(self, frame):
        if self.params.where == "process":
            self.params.assign(self.results, frame)

    def postprocess(self):
        if self.params.where == "postprocess":
            self.params.assign(self.results, np.full(3, 100.0))

    def get_results(self):
        if self.params.where == "get_results":
            return {"lost": self.params.assign(self.results, None)}
        return {}


def put(make):
    """A way to assign: what `make` makes of a frame, to the first row."""
    return lambda results, frame: results.lost.__setitem__(0, make(frame))


def item(results, frame):
    results.lost[0] += np.uint8(200)
    results.lost[0] += np.uint8(200)


def into(results, frame):
    results.lost += frame.sum(dtype="i8").astype("u8")


def twice(results, frame):
    results.lost[:] = 200
    results.lost[:] = results.lost + np.full(1, 200, "u1")


def set_as_a_whole(results, frame):
    results.lost = frame.sum()


LOSSES = {
    "attribute": ("uint8", set_as_a_whole, r"becomes \d+\. Declare a dtype that holds it"),
    "in place": ("uint8", into, r"\d+ becomes \d+\. Declare a dtype that holds it"),
    "sum of buffers": ("uint8", twice, "400.0 becomes 144"),
    "single numbers": ("uint8", item, "400.0 becomes 144"),
    "fraction": ("int32", put(lambda f: 0.5), "0.5 becomes 0.*or convert on purpose"),
    "NaN": ("int64", put(lambda f: np.full((), np.nan)), "nan becomes"),
    "infinite": ("float16", put(lambda f: f.sum() ** 2 + 1e6), "becomes inf"),
    "string": ("S2", put(lambda f: b"long"), "b'long' becomes b'lo'"),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_what_a_buffer_does_not_hold(loss):
    dtype, assign, match = LOSSES[loss]
    with pytest.raises(UDFCheckError, match=rf"(?s){match}.*buffers_hold_what_they_are_given"):
        check_udf(Loses(dtype, assign))


@pytest.mark.parametrize(
    ("where", "assign"),
    [
        ("postprocess", put(lambda f: f.sum())),
        ("get_results", lambda r, f: r.lost + np.full(1, 1000, "u8")),
    ],
)
def test_what_is_lost_after_processing(where, assign):
    with pytest.raises(UDFCheckError, match="'lost' of dtype uint8 does not hold the assigned"):
        check_udf(Loses("uint8", assign, where))


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "make"),
    [
        ("float32", lambda f: f.mean(dtype="f8") / 3),  # rounded
        ("bool", lambda f: f.sum()),  # a truth value
        ("int32", lambda f: np.rint(f.mean())),  # on purpose
        ("float32", lambda f: np.nan),
        ("complex64", lambda f: f.sum()),
        ("uint8", lambda f: 255),
        ("object", lambda f: 1.5),
        ("S4", lambda f: b"long"),
    ],
)
def test_what_a_buffer_holds(dtype, make):
    check_udf(Loses(dtype, put(make)))
