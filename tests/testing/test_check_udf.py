"""check_udf names the fault of each broken UDF, and raises no false alarm."""

import subprocess
import sys

import dask.array as da
import numpy as np
import pytest

import broken_udfs as broken
import udf_zoo
import udfdask as ud
from udfdask.testing import CheckReport, UDFCheckError, check_udf
from udfdask.udfs import AutoUDF, NoOpUDF, PickUDF, SumSigUDF, SumUDF

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
    (broken.UndeclaredResult(), r"get_results\(\) returned 'sum', which is not declared"),
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
    assert [note.split(":")[0] for note in notes] == ["dtype uint16", "dtype >u2", "dtype uint8"]


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
    assert text.startswith("SumUDF keeps 32 laws:")
    assert "  chunks_do_not_show: Chunks of the scan do not change the results." in text
    assert "skipped: runs" in text


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
    assert note.startswith("backends other than NumPy: checking them needs sparseconverter")


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
