"""What a script that was written for LiberTEM reads after a run: here, and in LiberTEM itself."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
import sparse

pytest.importorskip("libertem", reason="libertem is in the extra of that name")
pytest.importorskip("libertem_blobfinder", reason="libertem-blobfinder is in the extra libertem")

from libertem.io.corrections import CorrectionSet as TheirCorrectionSet
from libertem.udf import UDF
from libertem.udf.auto import AutoUDF as TheirAutoUDF
from libertem.udf.crystallinity import run_analysis_crystall
from libertem.udf.FEM import run_fem
from libertem.udf.logsum import run_logsum
from libertem.udf.stddev import run_stddev

import udfdask as ud
from libertem_objects import OBJECTS, ROI
from making import SYNC
from udfdask import libertem as shortcuts
from udfdask.corrections import CorrectionSet
from udfdask.udfs import AutoUDF

pytestmark = pytest.mark.filterwarnings(
    "ignore::udfdask.UDFWarning",
    "ignore:'where' used without 'out':UserWarning",  # LiberTEM's CoMUDF about its own code
)
BLOCK = np.zeros(ROI.shape, bool)
BLOCK[2:5, 1:7] = True
BLOCK[3, 4] = False
DARK = "a UDF with aux data and `merge_all`"
NAMES = ["SumUDF", "StdDevUDF", "ApplyMasksUDF", "CoMUDF", "FEMUDF", "AutoUDF", DARK]
CHEAP = ["ApplyMasksUDF", "StdDevUDF"]


def some(names):
    """All names in the full suite, two in the default one."""
    full = pytest.mark.full
    return [n if n in CHEAP else pytest.param(n, marks=full) for n in names]


@pytest.fixture(scope="module")
def dataset(context, data):
    return context.load("memory", data=data, sig_dims=2, num_partitions=3)


def assert_same(ours, theirs):
    """Equal shape; values up to the rounding of other orders of summing."""
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("roi", [None, ROI, BLOCK], ids=["all", "region", "block"])
@pytest.mark.parametrize("name", some(NAMES))
def test_results_have_the_attributes_of_theirs(x, context, dataset, name, roi):
    result = ud.run_udf(x, OBJECTS[name](), roi=roi).compute(**SYNC)
    theirs = context.run_udf(dataset=dataset, udf=OBJECTS[name](), roi=roi)
    assert set(result) == set(theirs)
    for key, wanted in theirs.items():
        found = result[key]
        assert type(found.data) is type(found.raw_data) is np.ndarray
        for attribute in ("data", "raw_data", "valid_mask"):
            # their CoMUDF returns rows with another axis than it declares, and LiberTEM keeps it
            shape = getattr(found, attribute).shape
            assert_same(getattr(found, attribute), getattr(wanted, attribute).reshape(shape))
        for attribute in ("masked_data", "raw_masked_data"):
            ours = getattr(found, attribute)
            other = getattr(wanted, attribute).reshape(ours.shape)
            np.testing.assert_array_equal(ours.mask, other.mask)
            assert_same(ours.filled(0), other.filled(0))
        assert found.kind == wanted.kind
        assert found.extra_shape == tuple(wanted.extra_shape)
        assert found.data.shape == wanted.data.shape
        if wanted.kind == "nav":
            n_frames = ROI.size if roi is None else roi.sum()
            assert found.raw_data.shape == (n_frames, *wanted.extra_shape)
        assert_same(np.array(found), np.array(wanted).reshape(found.shape))


@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "region"])
def test_the_last_result_is_monitored(x, context, dataset, roi):
    def f(frame):
        return frame.sum(axis=0)

    theirs = context.run_udf(dataset=dataset, udf=TheirAutoUDF(f, monitor=True), roi=roi)
    for udf in (AutoUDF(f, monitor=True), TheirAutoUDF(f, monitor=True)):
        result = ud.run_udf(x, udf, roi=roi).compute(**SYNC)
        assert_same(result["monitor"].data, theirs["monitor"].data)
        assert_same(result["result"].data, theirs["result"].data)


def test_mean_and_deviation(x, dataset, context):
    found, wanted = shortcuts.run_stddev(x, ROI), run_stddev(context, dataset, ROI)
    assert list(found) == list(wanted)
    assert found["num_frames"] == wanted["num_frames"] == ROI.sum()
    for name, values in found.items():
        assert type(values) is (int if name == "num_frames" else np.ndarray)
        assert_same(values, wanted[name])


@pytest.mark.parametrize(
    ("ours", "theirs", "arguments"),
    [
        (shortcuts.run_logsum, run_logsum, {}),
        (shortcuts.run_fem, run_fem, {"center": (15, 17), "rad_in": 3, "rad_out": 9}),
        pytest.param(
            shortcuts.run_analysis_crystall,
            run_analysis_crystall,
            {"rad_in": 2, "rad_out": 6},
            marks=pytest.mark.full,
        ),
        pytest.param(
            shortcuts.run_analysis_crystall,
            run_analysis_crystall,
            {"rad_in": 2, "rad_out": 6, "real_center": (16, 15), "real_rad": 4},
            marks=pytest.mark.full,
        ),
    ],
    ids=["run_logsum", "run_fem", "run_analysis_crystall", "with a disk"],
)
def test_functions_that_run_a_udf(x, context, dataset, ours, theirs, arguments):
    for roi in (None, ROI):
        found = ours(x, **arguments, roi=roi)
        wanted = theirs(context, dataset, **arguments, roi=roi)
        assert set(found) == set(wanted)
        for name in wanted:
            np.testing.assert_allclose(found[name].data, wanted[name].data, rtol=2e-4, atol=1e-3)


class ReadsCorrections(UDF):
    def get_result_buffers(self):
        return {"seen": self.buffer(kind="nav", extra_shape=(4,), dtype="float64")}

    def process_frame(self, frame):
        given = self.meta.corrections
        excluded = given.get_excluded_pixels()
        parts = (
            given.get_dark_frame(),
            given.get_gain_map(),
            None if excluded is None else excluded.coords,
        )
        sums = [-1.0 if part is None else np.sum(part) for part in parts]
        self.results.seen[:] = (given.have_corrections(), *sums)


@pytest.mark.parametrize("names", [(), ("dark", "gain", "excluded_pixels")])
def test_a_udf_reads_corrections_as_there(x, data, context, dataset, names):
    pixels, sig = np.array([[1, 3], [2, 5]]), data.shape[-2:]
    parts = {"dark": np.full(sig, 2.0), "gain": np.full(sig, 0.5), "excluded_pixels": pixels}
    theirs = parts | {"excluded_pixels": sparse.COO(pixels, data=True, shape=sig)}
    found = ud.run_udf(
        x,
        ReadsCorrections(),
        corrections=CorrectionSet(**{n: parts[n] for n in names}) if names else None,
    )
    expected = context.run_udf(
        dataset=dataset,
        udf=ReadsCorrections(),
        corrections=TheirCorrectionSet(**{n: theirs[n] for n in names}),
    )
    assert_same(found["seen"].compute(**SYNC), expected["seen"].data)


def test_options_of_the_functions(data):
    lines = da.from_array(data.reshape(6, 8, -1), chunks=(1, 8, -1))
    assert shortcuts.run_stddev(lines, sig_dims=1)["mean"].shape == (data[0, 0].size,)
    dark = CorrectionSet(dark=np.full(data.shape[2:], 0.5))
    corrected = shortcuts.run_stddev(da.from_array(data), corrections=dark)
    np.testing.assert_allclose(corrected["mean"], data.mean((0, 1)) - 0.5, rtol=1e-5)


def test_products_and_counts():
    assert shortcuts.UDFException is ud.UDFError
    assert shortcuts.prod(np.array([2**31, 2**31, 2**31], dtype="int64")) == 2**93
    assert shortcuts.prod(()) == 1
    mask = np.eye(3, dtype=bool)
    for each in (mask, scipy.sparse.csr_matrix(mask), sparse.COO.from_numpy(mask)):
        assert shortcuts.count_nonzero(each) == 3
