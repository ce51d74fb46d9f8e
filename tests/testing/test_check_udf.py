"""check_udf raises no false alarm, and reports what it checked; notes are about likely mistakes."""

import sys

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udf_zoo import Rows
from udfdask.testing import CheckReport, UDFCheckError, check_udf
from udfdask.udfs import AutoUDF, NoOpUDF, PickUDF, SumSigUDF, SumUDF


def lawful():
    yield from (SumUDF(), SumSigUDF(), PickUDF(), NoOpUDF(), AutoUDF(f=np.sum))
    yield AutoUDF(f=lambda frame: frame[frame > 3], ragged=True)
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


ARRAYS = {
    "series": np.arange(5 * 3 * 3, dtype="uint8").reshape(5, 3, 3),
    "one frame": np.ones((4, 4)),
    "one position": np.ones((1, 1, 4, 4), dtype="complex64"),
    "volume": np.arange(2 * 2 * 3 * 2 * 2, dtype="<i4").reshape(2, 2, 3, 2, 2),
    "dask": da.ones((2, 4, 3, 3), chunks=(1, 2, 3, 3), dtype=">i2"),
}


@pytest.mark.full
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_given_arrays(array):
    check_udf(udf_zoo.Chain(), array)


@pytest.mark.full
def test_a_dtype_it_does_not_work_on_is_a_note():
    class SignedOnly(Rows):
        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def process_frame(self, frame):
            if frame.dtype.kind == "u":
                raise TypeError("signed numbers, please")
            super().process_frame(frame)

    notes = check_udf(SignedOnly()).notes
    assert [note.split(":")[0] for note in notes] == [
        f"dtype {dtype} not checked" for dtype in ("uint16", ">u2", "uint8")
    ]


class Weighted(Rows):
    def __init__(self, weights):
        super().__init__(weights=weights)

    def process_frame(self, frame):
        self.results.sums[:] = (frame * self.params.weights).sum()


@pytest.mark.full
@pytest.mark.parametrize(
    "weights",
    [
        da.arange(8, chunks=4),
        ud.UDF.aux_data(np.arange(24.0), kind="nav", dtype="float64"),
    ],
    ids=["lazy", "aux data"],
)
def test_parameters(weights):
    check_udf(Weighted(weights))


@pytest.mark.full
def test_a_cache_on_the_class_that_does_not_show():
    class Cached(Rows):
        cache = {}

        def process_frame(self, frame):
            if frame.shape not in self.cache:
                self.cache[frame.shape] = np.ones(frame.shape)
            self.results.sums[:] = (frame * self.cache[frame.shape]).sum()

    check_udf(Cached())


def test_scratch_that_nothing_reads_may_be_left_behind():
    class Scratch(udf_zoo.Chain):
        def get_result_buffers(self):
            work = self.buffer("sig", dtype="float64", use="private")
            return {**super().get_result_buffers(), "work": work}

        def process_tile(self, tile):
            self.results.work[:] = tile.sum(axis=0) * 2
            super().process_tile(tile)

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


class OffersTiles(Rows):
    """The same a tile of matrices at a time, on some backends."""

    process_frame = None

    def __init__(self, backends):
        super().__init__(backends=backends)

    def get_backends(self):
        return self.params.backends

    def get_method(self):
        return self.UDF_METHOD.TILE

    def process_tile(self, tile):
        sums = tile.reshape((tile.shape[0], -1)).sum(axis=1)
        dense = sums.todense() if hasattr(sums, "todense") else np.asarray(sums)
        self.results.sums += dense.reshape(-1)


@pytest.mark.full
@pytest.mark.parametrize(
    "backends",
    ["sparse.COO", ("scipy.sparse.csc_array", "numpy")],
    ids=["COO", "several"],
)
def test_udfs_that_want_sparse_data(backends):
    report = check_udf(OffersTiles(backends))
    assert "backends_do_not_show" in report.laws
    assert not report.notes


def test_without_the_packages_for_sparse_data(monkeypatch):
    monkeypatch.setitem(sys.modules, "sparseconverter", None)
    (note,) = check_udf(OffersTiles(("numpy", "scipy.sparse.csr_matrix"))).notes
    assert note.startswith("backends other than NumPy not checked")


def test_the_users_instance_is_not_changed():
    udf = Rows()
    before = dict(vars(udf))
    check_udf(udf)
    assert vars(udf) == before


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"write SumUDF\(\.\.\.\)"):
        check_udf(SumUDF)
    with pytest.raises(ValueError, match="'order', which is not a law"):
        check_udf(SumUDF(), skip=["order"])
