"""check_udf names the fault of each broken UDF, and raises no false alarm."""

import dataclasses
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest

import broken_udfs as broken
import udf_zoo
import udfdask as ud
from udfdask.testing import CheckReport, UDFCheckError, check_udf
from udfdask.testing.laws.check_udf import LAWS
from udfdask.udfs import AutoUDF, NoOpUDF, PickUDF, StdDevUDF, SumSigUDF, SumUDF

BROKEN = [
    (broken.ForgetsBuffer(), r"merge forgets buffer 'count'.* holds 24 .* is 0"),
    (broken.ForgetsPrivateBuffer(), "merge forgets buffer 'total'"),
    (broken.ForgetsRows(), "merge forgets buffer 'sums'"),
    (broken.Overwrites(), "merge overwrites buffer 'total'.* the values of the last chunk"),
    (broken.OverwritesInChain(), "merge overwrites buffer 'total'"),
    (
        broken.KeepsTheFirst(),
        "merge does not add to buffer 'total'.* the values of the first chunk",
    ),
    (broken.MergeAverages(), "merge is not associative: chunks of 1 and 2 frames give 'mean' ="),
    (
        broken.AverageOfAverages(),
        "merge_all is not associative: chunks of 1 and 2 frames give 'mean' = .* one chunk gives",
    ),
    (broken.AverageOfAveragesOnce(), "merge_all gives other results for other chunks: chunks of"),
    (broken.LeavesOutInMergeAll(), r"merge_all\(\) left out buffer 'count'"),
    (broken.ForgetsInMergeAllOnce(), "merge_all forgets buffer 'count'"),
    (broken.MergesDisagree(), "merge and merge_all disagree about 'total'"),
    (broken.NotNeutral(), r"preprocess is not neutral: it sets 'count' to 1\..* 3, .* gives 4"),
    (broken.NotNeutralInChain(), r"preprocess is not neutral: it sets 'count' to 1\."),
    (broken.NumbersThrough(), r"where chunks begin: navigation chunks \(\(4,\), \(1, 5\)\) give"),
    (broken.BreaksPromiseOfRows(), "elementwise_results = True promises .* 'sums'"),
    (broken.ClassState(), "class attribute ClassState.seen changes .* Keep them in a buffer"),
    (broken.ClassList(), "class attribute ClassList.history changes"),
    (broken.FirstDataOnClass(), "FirstDataOnClass.background is set by the first data"),
    (broken.GlobalState(), "module global COUNTER changes while data are processed"),
    (broken.GlobalIterator(), "module global number changes"),
    (broken.make_closure_state(), "variable total outside process_frame changes"),
    (broken.DefaultState(), "default argument of process_frame changes"),
    (
        broken.ParameterState(np.random.default_rng(1)),
        "parameter 'rng' changes while data are processed",
    ),
    (
        broken.InstanceState(),
        "'sums' depends on where chunks begin.* self.count changes .* starts with new attributes",
    ),
    (
        broken.SingleState(),
        "merge is not associative.* self.background changes while data are processed",
    ),
    (broken.RandomResult(), "two runs over the same data differ: 'sums' is"),
    (
        broken.WritesFrame(),
        "process_frame writes into its input: copy it or set writable_input = True",
    ),
    (broken.WritesTile(), "process_tile writes into its input"),
    (broken.AssignsTile(), "'peak' depends on the shape of tiles: tiles of shape"),
    (broken.CountsTiles(), "'count' depends on the shape of tiles"),
    (broken.TakesWholeSignal(), "'moment' depends on .*: .* give .* gives"),
    (
        broken.RowInChunk(),
        "'row' depends on where chunks begin: chunks of 1 and 1 frames give 0, one chunk gives 1",
    ),
    (
        broken.RowAsPosition(),
        "nav buffer 'y' of a frame depends on which other frames are in the ROI.*meta.coordinates",
    ),
    (broken.RowOfFullParameter(), "'sums' of a frame depends on which other frames are in the ROI"),
    (broken.WrongKind(), r"get_results\(\) returned 'sums' with dtype float64, .* as int64"),
    (broken.UndeclaredResult(), r"get_results\(\) returned 'sum' .did you mean 'sums'\?."),
    (broken.ResultsInPlace(), r"get_results\(\) gives something else .* again: 'total' is"),
    (broken.ResultsInPlaceAndReturned(), r"get_results\(\) gives something else"),
    (broken.ResultsOfCounter(), "class attribute ResultsOfCounter.calls changes"),
    (broken.KeepsParameter(broken.LOCK), "parameter 'thing' cannot be pickled .*lock"),
    (broken.KeepsParameter(i for i in "ab"), "parameter 'thing' cannot be pickled .*generator"),
    (
        broken.ParameterOfOtherName(2),
        r"__init__ does not accept its own parameters: ParameterOfOtherName\(weight=\.\.\.\)",
    ),
    (broken.PositionalOnly(2, 3), "__init__ does not accept its own parameters"),
    (
        broken.DoublesParameter(2),
        "__init__ changes its own parameter 'factor' each time: made again, it is 8 instead of 4",
    ),
    (broken.RandomBuffers(), r"get_result_buffers\(\) declares buffer 'x' differently"),
    (broken.NeedsLargeSignal(), "the plainest run fails.* IndexError.* pass a small array"),
    (broken.NoMerge(), "default merge cannot combine: total, count"),
    (broken.ByteOrder(), "'sums' depends on the byte order of the data: >u2 gives"),
    (broken.LooksAtOthers(), "'depth' depends on the shape of tiles"),
]


@pytest.mark.parametrize(("udf", "fault"), BROKEN, ids=lambda v: type(v).__name__)
def test_a_broken_udf_is_told_its_fault(udf, fault):
    with pytest.raises(UDFCheckError, match=f"^{type(udf).__name__}: .*{fault}") as caught:
        check_udf(udf)
    assert str(caught.value).endswith(f"[law {caught.value.law}]")


def test_an_open_file_as_parameter(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"1")
    with path.open("rb") as file, pytest.raises(UDFCheckError, match="'thing' cannot be pickled"):
        check_udf(broken.KeepsParameter(file))


def test_an_attribute_set_from_outside():
    udf = SumUDF()
    udf.threshold = 3
    with pytest.raises(UDFCheckError, match="set from outside do not reach the tasks: threshold"):
        check_udf(udf)


def lawful():
    yield from (SumUDF(), SumSigUDF(), PickUDF(), NoOpUDF(), AutoUDF(f=np.sum))
    yield AutoUDF(f=lambda frame: frame[frame > 3], ragged=True)
    yield from (broken.Sums(), broken.Rows(), broken.WritesAllowedFrame())
    yield from (cls() for cls in udf_zoo.ZOO if not cls.__name__.startswith("MergeAll"))
    yield udf_zoo.MergeAllNav()


@pytest.mark.full
@pytest.mark.parametrize("udf", list(lawful()), ids=lambda udf: type(udf).__name__)
def test_no_false_alarm(udf):
    report = check_udf(udf)
    assert isinstance(report, CheckReport)
    assert not report.skipped
    assert not report.notes


@pytest.mark.full
@pytest.mark.parametrize("cls", [udf_zoo.MergeAllWhole, udf_zoo.MergeAllOnce])
def test_a_merge_that_is_not_what_merge_all_is(cls):
    # the one raises in merge, the other inherits a merge that knows nothing of its median
    with pytest.raises(UDFCheckError, match="merge"):
        check_udf(cls())
    report = check_udf(cls(), skip=["merge_agrees_with_merge_all"])
    assert report.skipped == ("merge_agrees_with_merge_all",)


@pytest.mark.full
@pytest.mark.parametrize("sig_dims", [1, 2, 3])
@pytest.mark.parametrize("cls", [SumUDF, SumSigUDF, PickUDF, udf_zoo.Chain, udf_zoo.ExtraShapes])
def test_signals_of_any_dimension(cls, sig_dims):
    check_udf(cls(), sig_dims=sig_dims)


ARRAYS = {
    "scan": np.random.default_rng(0).normal(size=(3, 3, 4, 4)).astype("float32"),
    "series": np.arange(5 * 3 * 3, dtype="uint8").reshape(5, 3, 3),
    "one frame": np.ones((4, 4)),
    "one position": np.ones((1, 1, 4, 4), dtype="complex64"),
    "volume": np.arange(2 * 2 * 3 * 2 * 2, dtype="<i4").reshape(2, 2, 3, 2, 2),
    "dask": da.ones((2, 4, 3, 3), chunks=(1, 2, 3, 3), dtype=">i2"),
}


@pytest.mark.full
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("cls", [SumUDF, SumSigUDF, PickUDF])
def test_given_arrays(cls, array):
    check_udf(cls(), array)


@pytest.mark.full
def test_floats_that_cancel_raise_no_false_alarm():
    data = np.random.default_rng(1).normal(size=(6, 7, 8, 8)).astype("float32")
    check_udf(udf_zoo.Floats(factor=0.1), 1e4 * (data - data.mean()))


@pytest.mark.full
def test_a_narrow_dtype_is_told_apart_from_a_fault():
    class Variance(ud.UDF):
        def get_result_buffers(self):
            return {
                "sums": self.buffer("sig", dtype="float32", use="private"),
                "squares": self.buffer("sig", dtype="float32", use="private"),
                "count": self.buffer("single", dtype="int64", use="private"),
                "variance": self.buffer("sig", dtype="float32", use="result_only"),
            }

        def process_frame(self, frame):
            self.results.sums += frame
            self.results.squares += frame**2
            self.results.count += 1

        def merge(self, dest, src):
            dest.sums += src.sums
            dest.squares += src.squares
            dest.count += src.count

        def get_results(self):
            n = max(1, self.results.count[0])
            return {"variance": self.results.squares / n - (self.results.sums / n) ** 2}

    data = np.random.default_rng(0).normal(size=(5, 4, 8, 8))
    check_udf(Variance(), data)
    with pytest.raises(UDFCheckError, match=r"if that is rounding, a wider dtype .* helps"):
        check_udf(Variance(), data + 1000)


@pytest.mark.full
def test_a_dtype_it_does_not_work_on_is_a_note():
    class SignedOnly(broken.Rows):
        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def process_frame(self, frame):
            if frame.dtype.kind == "u":
                raise TypeError("signed numbers, please")
            self.results.sums[:] = frame.sum()

    notes = check_udf(SignedOnly()).notes
    assert [note.split(":")[0] for note in notes] == [
        f"dtype {dtype} not checked" for dtype in ("uint16", ">u2", "uint8")
    ]


@pytest.mark.full
def test_lazy_parameters():
    class Weighted(broken.Rows):
        def __init__(self, weights):
            super().__init__(weights=weights)

        def process_frame(self, frame):
            self.results.sums[:] = (frame * self.params.weights).sum()

    check_udf(Weighted(da.arange(8, chunks=4)))


@pytest.mark.full
def test_aux_data_of_a_udf_without_results_of_its_own():
    class Weighted(broken.Rows):
        def __init__(self, weight):
            super().__init__(weight=weight)

        def process_frame(self, frame):
            self.results.sums[:] = frame.sum() * self.params.weight

    check_udf(Weighted(ud.UDF.aux_data(np.arange(24.0), kind="nav", dtype="float64")))


@pytest.mark.full
def test_parameters_that_fit_one_scan_shape():
    class Reference(broken.Rows):
        def __init__(self, where):
            super().__init__(where=where)

        def process_frame(self, frame):
            assert self.meta.dataset_shape.nav == self.params.where.shape
            place = tuple(self.meta.coordinates[0])
            self.results.sums[:] = frame.sum() * self.params.where[place]

    check_udf(Reference(np.arange(24).reshape(4, 6)))


@pytest.mark.full
def test_a_cache_on_the_class_that_does_not_show():
    class Cached(broken.Rows):
        cache = {}

        def process_frame(self, frame):
            if frame.shape not in self.cache:
                self.cache[frame.shape] = np.ones(frame.shape)
            self.results.sums[:] = (frame * self.cache[frame.shape]).sum()

    check_udf(Cached())


def test_scratch_that_nothing_reads_may_be_left_behind():
    class Scratch(broken.Sums):
        def get_result_buffers(self):
            return {
                **super().get_result_buffers(),
                "work": self.buffer("sig", dtype="float64", use="private"),
            }

        def process_frame(self, frame):
            self.results.work[:] = frame * 2
            super().process_frame(frame)

    check_udf(Scratch())


def test_results_of_every_dtype():
    class Everything(ud.UDF):
        def get_result_buffers(self):
            fields = [("n", "i4"), ("sum", "f8")]
            return {
                "text": self.buffer("nav", dtype="U8"),
                "time": self.buffer("nav", dtype="M8[s]"),
                "both": self.buffer("nav", extra_shape=(2,), dtype=fields),
                "thing": self.buffer("nav", dtype=object),
                "flag": self.buffer("nav", dtype=bool),
                "phase": self.buffer("nav", dtype="complex64"),
            }

        def process_frame(self, frame):
            total = float(frame.sum())
            self.results.text[:] = str(int(total))
            self.results.time[:] = np.datetime64(int(total), "s")
            self.results.both[:] = (1, total)
            self.results.thing[0] = {"sum": total, "frame": frame.copy(), "none": np.nan}
            self.results.flag[:] = total > 0
            self.results.phase[:] = total * 1j + np.nan

    check_udf(Everything())


@pytest.mark.full
def test_the_report_prints_what_was_checked():
    text = str(check_udf(SumUDF(), skip=["runs"]))
    assert text.startswith("SumUDF keeps 30 laws, and has no notes.\n  skipped: runs\n\nLaws that")
    assert "  chunks_do_not_show: Chunks of the scan do not change the results." in text


def test_the_report_begins_with_the_notes():
    note = "'x' stays 0, its fresh value, if all data are negative: does it need preprocess?"
    laws = ("runs", "can_be_pickled")
    report = CheckReport(udf_name="Max", laws=laws, skipped=("repeats_itself",), notes=(note,))
    first, *lines = str(report).splitlines()
    assert first == "Max keeps 2 laws, but has 1 note to read."
    assert lines[:4] == [f"  note: {note}", "  skipped: repeats_itself", "", "Laws that it keeps:"]
    assert [line.partition(":")[0].strip() for line in lines[4:]] == list(laws)
    long = dataclasses.replace(report, notes=(note, "word " * 60))
    assert str(long).startswith("Max keeps 2 laws, but has 2 notes to read.\n")
    assert max(map(len, str(long).splitlines()[:6])) <= 100
    assert "Laws" not in str(dataclasses.replace(report, laws=()))


def test_a_failure_tells_of_methods_that_are_never_called():
    class Typo(broken.Sums):
        merge = ud.UDF.merge

        def merg(self, dest, src):
            dest.total += src.total

    with pytest.raises(UDFCheckError, match="default merge cannot combine") as caught:
        check_udf(Typo())
    assert caught.value.__notes__ == ["note: Typo.merg is never called: did you mean merge?"]


def test_a_failure_without_a_processing_method():
    class Typo(ud.UDF):
        def get_result_buffers(self):
            return {"total": self.buffer("nav")}

        def proces_frame(self, frame):
            self.results.total[:] = frame.sum()

    with pytest.raises(UDFCheckError, match="has no processing method") as caught:
        check_udf(Typo())
    note = "note: Typo.proces_frame is never called: did you mean process_frame?"
    assert note in caught.value.__notes__


def test_every_forgotten_buffer_is_named():
    class Forgets(broken.Sums):
        def merge(self, dest, src):
            pass

    remedy = r"\. Combine it in merge, such as dest\.total \+= src\.total for a sum \[law"
    with pytest.raises(UDFCheckError, match=rf"buffer 'total' \(and 'count'\): .*{remedy}"):
        check_udf(Forgets())


def test_the_meant_buffer_is_named():
    class Uses(broken.Sums):
        def process_frame(self, frame):
            self.results.totl += frame

    with pytest.raises(UDFCheckError, match=r"no buffer 'totl'.*did you mean 'total'\?"):
        check_udf(Uses())


def test_the_users_instance_is_not_changed():
    udf = broken.Sums()
    before = dict(vars(udf))
    check_udf(udf)
    assert vars(udf) == before


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"expected an instance of a UDF, .*write SumUDF\(\.\.\.\)"):
        check_udf(SumUDF)
    with pytest.raises(
        ValueError,
        match="skip contains 'order', which is not a law; the laws are makes_itself_again",
    ):
        check_udf(SumUDF(), skip=["order"])


@pytest.mark.full
def test_hypothesis_is_needed_by_the_strategies_alone():
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import udfdask; assert not any(m.startswith('udfdask.testing') for m in sys.modules)\n"
        "from udfdask.testing import check_udf\n"
        "from udfdask.udfs import SumUDF\n"
        "check_udf(SumUDF())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Offers(ud.UDF):
    """Sums of frames on several backends; `wrong` where it forgets one."""

    def __init__(self, backends, wrong=None):
        super().__init__(backends=backends, wrong=wrong)

    def get_backends(self):
        return self.params.backends

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        factor = 2 if self.meta.array_backend == self.params.wrong else 1
        self.results.sums[:] = factor * float(frame.sum())


class OffersTiles(Offers):
    """The same a tile of matrices at a time."""

    process_frame = None

    def get_method(self):
        return self.UDF_METHOD.TILE

    def process_tile(self, tile):
        self.results.sums += np.asarray(tile.reshape((tile.shape[0], -1)).sum(axis=1)).reshape(-1)


@pytest.mark.full
@pytest.mark.parametrize(
    "udf",
    [
        Offers("sparse.COO"),
        Offers(("numpy", "sparse.COO", "scipy.sparse.csr_array")),
        OffersTiles("scipy.sparse.csr_matrix"),
        OffersTiles(("scipy.sparse.csc_array", "numpy")),
    ],
    ids=["frames", "frames of any kind", "tiles", "tiles of two kinds"],
)
def test_udfs_that_want_sparse_data(udf):
    report = check_udf(udf)
    assert "backends_do_not_show" in report.laws
    assert not report.notes


def test_without_the_packages_for_sparse_data(monkeypatch):
    monkeypatch.setitem(sys.modules, "sparseconverter", None)
    report = check_udf(OffersTiles(("numpy", "scipy.sparse.csr_matrix")))
    (note,) = report.notes
    assert note.startswith(
        "backends other than NumPy not checked: checking them needs sparseconverter"
    )


@pytest.mark.parametrize("backend", ["scipy.sparse.csr_matrix", "sparse.COO"])
def test_a_backend_that_gives_something_else(backend):
    udf = Offers(("numpy", backend), wrong=backend)
    with pytest.raises(UDFCheckError, match=rf"get_backends\(\) offers {backend}, on which 'sums'"):
        check_udf(udf)


class Loses(ud.UDF):
    """Assigns something to a buffer of some dtype, in one of the ways there are."""

    def __init__(self, kind, dtype, assign, where="process"):
        super().__init__(kind=kind, dtype=dtype, assign=assign, where=where)

    def get_result_buffers(self):
        return {"lost": self.buffer(self.params.kind, dtype=self.params.dtype)}

    def process_frame(self, frame):
        if self.params.where == "process":
            self.params.assign(self.results, frame)

    def postprocess(self):
        if self.params.where == "postprocess":
            self.params.assign(self.results, np.full(3, 100.0))

    def merge(self, dest, src):
        dest.lost[:] = src.lost

    def get_results(self):
        if self.params.where == "get_results":
            return {"lost": self.params.assign(self.results, None)}
        return {}


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
    "slice": ("uint8", lambda r, f: r.lost.__setitem__(slice(None), f.sum()), r"\d+.0 becomes"),
    "attribute": ("uint8", set_as_a_whole, r"becomes \d+\. Declare a floating dtype"),
    "in place": ("uint8", into, r"\d+ becomes \d+\. Declare a wider dtype than uint8"),
    "sum of buffers": ("uint8", twice, "400 becomes 144"),
    "single numbers": ("uint8", item, "overflow encountered in scalar add.*declare a wider one"),
    "negative": ("uint16", lambda r, f: r.lost.__setitem__(0, -(f.sum() ** 2)), "becomes"),
    "fraction": ("int32", lambda r, f: r.lost.__setitem__(0, 0.5), "0.5 becomes 0.*or round on"),
    "NaN": ("int64", lambda r, f: r.lost.__setitem__(0, np.full((), np.nan)), "nan becomes"),
    "part": ("complex64", lambda r, f: r.lost.real.__setitem__(0, 1e300), "1e.300 becomes inf"),
    "infinite": ("float16", lambda r, f: r.lost.__setitem__(0, f.sum() ** 2 + 1e6), "becomes inf"),
    "string": ("S2", lambda r, f: r.lost.__setitem__(0, b"long"), "b'long' becomes b'lo'"),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_what_a_buffer_does_not_hold(loss):
    dtype, assign, match = LOSSES[loss]
    with pytest.raises(UDFCheckError, match=rf"(?s){match}.*buffers_hold_what_they_are_given"):
        check_udf(Loses("nav", dtype, assign))


def test_what_is_lost_after_processing():
    for where, assign in (
        ("postprocess", lambda r, f: r.lost.__setitem__(slice(None), f.sum())),
        ("get_results", lambda r, f: r.lost + np.full(1, 1000, "u8")),
    ):
        with pytest.raises(
            UDFCheckError, match=r"'lost' of dtype uint8 does not hold the assigned"
        ):
            check_udf(Loses("nav", "uint8", assign, where))


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "assign"),
    [
        ("float32", lambda r, f: r.lost.__setitem__(0, f.mean(dtype="f8") / 3)),  # rounded
        ("float16", lambda r, f: r.lost.__setitem__(0, 1 / 3)),
        ("bool", lambda r, f: r.lost.__setitem__(0, f.sum())),  # a truth value
        ("int32", lambda r, f: r.lost.__setitem__(0, np.rint(f.mean()))),  # on purpose
        ("int64", lambda r, f: r.lost.__setitem__(0, f.max() > 3)),
        ("float32", lambda r, f: r.lost.__setitem__(0, np.nan)),
        ("complex64", lambda r, f: r.lost.__setitem__(0, f.sum())),
        ("uint8", lambda r, f: r.lost.__setitem__(0, 255)),
        ("object", lambda r, f: r.lost.__setitem__(0, 1.5)),
        ("S4", lambda r, f: r.lost.__setitem__(0, b"long")),
    ],
)
def test_what_a_buffer_holds(dtype, assign):
    check_udf(Loses("nav", dtype, assign))


class Bright(ud.UDF):
    """Count bright pixels; the merge forgets two of the three buffers."""

    def __init__(self, threshold):
        super().__init__(threshold=threshold)

    def get_result_buffers(self):
        return {
            "total": self.buffer("sig"),
            "count": self.buffer("single", dtype="int64"),
            "bright": self.buffer("nav", dtype="int64"),
        }

    def process_frame(self, frame):
        number = np.count_nonzero(frame > self.params.threshold)
        self.results.total += frame
        self.results.count += number
        self.results.bright[:] = number

    def merge(self, dest, src):
        dest.total += src.total


def notes_of(udf, array=None):
    """Return the notes about a UDF; its laws are checked elsewhere."""
    return check_udf(udf, array, skip=[law.__name__ for law in LAWS]).notes


@pytest.mark.full
def test_a_merge_of_buffers_that_never_change_is_not_tested():
    report = check_udf(Bright(60))  # the default data end at 59
    note = (
        "buffers 'count', 'bright' never left their fresh value, so their merge is not tested: "
        "pass data for which they change"
    )
    assert report.notes == (note,)
    assert f"note: {note}" in " ".join(str(report).split())
    data = np.arange(24 * 4).reshape(4, 6, 2, 2)
    with pytest.raises(UDFCheckError, match="merge forgets buffer 'count'"):
        check_udf(Bright(60), data)


class StdDevOfBright(StdDevUDF):
    """A class made of a ready-made UDF, with a method that is never called."""

    def postproces(self):
        pass


class MaxOfAll(StdDevUDF):
    """A class made of a ready-made UDF, with buffers of its own."""

    merge_assigns_nav = True

    def get_result_buffers(self):
        return {"rows": self.buffer("nav"), "extra": self.buffer("nav", use="private")}

    def get_results(self):
        return {}

    def process_tile(self, tile):
        self.results.rows[:] += tile.sum(axis=(1, 2))

    def merge(self, dest, src):
        dest.rows[:] = src.rows


@pytest.mark.full
def test_ready_made_udfs_have_notes():
    assert notes_of(StdDevUDF()) == ()  # `origin` is only for data that are no integers
    (note,) = notes_of(SumUDF(), np.zeros((4, 6, 5, 7)))
    assert note.startswith("buffer 'intensity' never left its fresh value")
    (note,) = notes_of(StdDevOfBright())
    assert note == "StdDevOfBright.postproces is never called: did you mean postprocess?"
    (note,) = notes_of(MaxOfAll())
    assert note.startswith("buffer 'extra' never left its fresh value")


def test_a_forgotten_nav_buffer_has_its_remedy():
    class Forgets(Bright):
        def merge(self, dest, src):
            dest.total += src.total
            dest.count += src.count

    remedy = r"A merge must also assign every nav buffer: dest.bright\[:\] = src.bright"
    with pytest.raises(UDFCheckError, match=f"merge forgets buffer 'bright'.*{remedy}"):
        check_udf(Forgets(5))


class Maximum(ud.UDF):
    """The maximum of each pixel, right for all numbers."""

    start = -np.inf

    def get_result_buffers(self):
        return {"maximum": self.buffer("sig"), "positive": self.buffer("single", dtype="int64")}

    def preprocess(self):
        self.results.maximum[:] = self.start

    def process_frame(self, frame):
        self.results.maximum[:] = np.maximum(self.results.maximum, frame)
        self.results.positive += np.count_nonzero(frame > 0)

    def merge(self, dest, src):
        dest.maximum[:] = np.maximum(dest.maximum, src.maximum)
        dest.positive += src.positive


class Minimum(Maximum):
    def process_frame(self, frame):
        self.results.maximum[:] = np.minimum(self.results.maximum, frame)
        self.results.positive += np.count_nonzero(frame > 0)

    def merge(self, dest, src):
        dest.maximum[:] = np.minimum(dest.maximum, src.maximum)
        dest.positive += src.positive


@pytest.mark.parametrize(("cls", "word"), [(Maximum, "negative"), (Minimum, "positive")])
def test_a_maximum_that_starts_at_zero_is_noted(cls, word):
    class FromZero(cls):
        start = 0

    class FromInfinity(cls):
        start = -np.inf if word == "negative" else np.inf

    assert not notes_of(FromInfinity())  # nor for the count, which is 0 if none is positive
    assert notes_of(FromZero()) == (
        f"'maximum' stays 0, its fresh value, if all data are {word}: does it need preprocess?",
    )


def test_a_maximum_from_zero_is_right_for_positive_data():
    class FromZero(Maximum):
        start = 0

    data = np.arange(24 * 4).reshape(4, 6, 2, 2)
    assert not notes_of(FromZero(), data)
    assert [note[:16] for note in notes_of(FromZero(), -1 - data)] == [
        "buffers 'maximum",
        "'maximum' stays ",
    ]


def test_names_that_are_nearly_right_are_noted():
    class Misspelled(broken.Rows):
        def preproces(self):
            self.results.sums[:] = 1

        def merge_al(self):  # a helper of this name is used
            return 0

        def process_frame(self, frame):
            self.results.sums[:] = frame.sum() + self.merge_al()

    assert notes_of(Misspelled()) == (
        "Misspelled.preproces is never called: did you mean preprocess?",
    )


def test_ignored_processing_methods_are_noted():
    class Parent(broken.Rows):
        process_frame = None

        def get_method(self):
            return self.UDF_METHOD.TILE

        def process_tile(self, tile):
            self.results.sums += tile.sum(axis=(1, 2))

    class Child(Parent):
        get_method = ud.UDF.get_method

        def process_partition(self, partition):
            self.results.sums[:] = 0

    class Window(broken.Rows):
        halo = 1
        boundary = "nearest"

        def process_neighborhood(self, frames):
            self.results.sums[:] = frames[1, 1].sum()

        def process_frame(self, frame):
            self.results.sums[:] = 0

    assert not notes_of(Parent())
    assert notes_of(Child()) == (
        "Child defines process_partition, but process_tile (inherited) is used",
    )
    assert notes_of(Window()) == (
        "Window defines process_frame, but process_neighborhood (because it has a halo) is used",
    )


def test_the_remedy_for_a_maximum_is_no_sum():
    class Overwrites(Maximum):
        def merge(self, dest, src):
            dest.maximum[:] = src.maximum
            dest.positive += src.positive

    class Adds(Maximum):
        def merge(self, dest, src):
            dest.maximum += src.maximum
            dest.positive += src.positive

    remedy = r"dest.maximum\[:\] = np.maximum\(dest.maximum, src.maximum\) for a maximum"
    with pytest.raises(UDFCheckError, match=f"overwrites buffer .* for a sum, {remedy}"):
        check_udf(Overwrites())
    with pytest.raises(UDFCheckError, match=f"adds to the fresh value of .*: write {remedy}"):
        check_udf(Adds())


def test_infinity_in_an_integer_buffer_names_the_line():
    class Integers(Maximum):
        def get_result_buffers(self):
            return {**super().get_result_buffers(), "maximum": self.buffer("sig", dtype="int32")}

    line = Maximum.preprocess.__code__.co_firstlineno + 1
    with pytest.raises(UDFCheckError, match=rf"in Maximum.preprocess, line {line}\. .*np.iinfo"):
        check_udf(Integers())


class OneForEach(ud.UDF):
    """A UDF with one buffer for each frame; its method comes from a test."""

    def get_result_buffers(self):
        return {"largest": self.buffer(kind="nav")}


def test_a_returned_value_is_noted():
    class Returns(OneForEach):
        def process_frame(self, frame):
            return frame.max()

    returned, empty = notes_of(Returns())
    assert returned.startswith("process_frame returns a value of type float32, which is not used")
    assert empty.startswith("buffer 'largest' never left its fresh value: assign it in a method")


def test_lists_that_are_lost_are_noted():
    class Keeps(OneForEach):
        def __init__(self):
            super().__init__()
            self.frames = []

        def process_frame(self, frame):
            self.frames.append(frame)
            self.results.largest[:] = frame.max() + 1000

    class Uses(Keeps):
        def postprocess(self):
            self.results.largest[0] += len(self.frames) > 10**6

    (note,) = notes_of(Keeps())
    assert note.startswith("self.frames grows while data are processed, but each chunk has")
    assert not notes_of(Uses())


def test_missing_neighbors_are_noted():
    class Mean(OneForEach):
        halo = 1

        def process_neighborhood(self, frames):
            self.results.largest[:] = frames.mean()

    class Known(Mean):
        def process_neighborhood(self, frames):
            self.results.largest[:] = frames[self.meta.neighbor_mask].mean()

    class Nearest(Mean):
        boundary = "nearest"

        def process_neighborhood(self, frames):
            self.results.largest[:] = frames.mean()

    (note,) = notes_of(Mean())
    assert note.startswith("process_neighborhood does not read self.meta.neighbor_mask")
    assert not notes_of(Known())
    assert not notes_of(Nearest())


def test_differences_of_unsigned_integers_are_noted():
    class Difference(OneForEach):
        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def process_frame(self, frame):
            self.results.largest[:] = (frame[:1] - frame[1:2]).mean() + 1000

    class Converted(Difference):
        def process_frame(self, frame):
            frame = frame.astype("float64")
            self.results.largest[:] = (frame[:1] - frame[1:2]).mean() + 1000

    (note,) = notes_of(Difference())
    assert note.startswith("'largest' is ")
    assert "for the same numbers as float64: integers are too small" in note
    assert not notes_of(Converted())
