"""Every function that takes UDFs takes those of LiberTEM, beside own ones."""

import pickle

import cloudpickle
import dask.array as da
import numpy as np
import pytest

pytest.importorskip("libertem", reason="libertem is in the extra of that name")
pytest.importorskip("libertem_blobfinder", reason="libertem-blobfinder is in the extra libertem")

from libertem.common.buffers import reshaped_view
from libertem.udf import UDF as TheirUDF
from libertem.udf.masks import ApplyMasksUDF
from libertem.udf.record import RecordUDF
from libertem.udf.sum import SumUDF
from libertem.udf.sumsigudf import SumSigUDF

import udfdask as ud
import udfdask.udfs as own
from counting import CountedData, counts
from libertem_objects import OBJECTS, ROI, PartitionsUDF
from making import SYNC
from udfdask.libertem import adapt
from udfdask.testing import check_udf, raise_if_dask_computes


class ShapesUDF(TheirUDF):
    """Make flat views of tiles and buffers, and collect the shapes of the tiles."""

    def get_result_buffers(self):
        return {
            "sums": self.buffer(kind="sig", dtype="float64"),
            "shapes": self.buffer(kind="single", dtype=object),
        }

    def preprocess(self):
        self.results.shapes[0] = set()

    def process_tile(self, tile):
        flat = reshaped_view(tile, (len(tile), -1))
        reshaped_view(self.results.sums, (-1,))[:] += flat.sum(axis=0)
        self.results.shapes[0].add(tile.shape)

    def merge(self, dest, src):
        dest.sums += src.sums
        dest.shapes[0] = dest.shapes[0] | src.shapes[0]


pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


def test_beside_own_ones_in_one_pass(data, tmp_path):
    x = da.from_array(CountedData(data, tmp_path), chunks=(2, 3, 32, 32), asarray=True)
    counts(tmp_path)
    with raise_if_dask_computes():
        results = ud.run_udf(x, {"theirs": SumUDF(), "ours": own.SumUDF(dtype="float32")})
    done = dict(zip(results, ud.compute(*results.values(), **SYNC), strict=True))
    assert set(counts(tmp_path).values()) == {1}
    np.testing.assert_array_equal(done["theirs"]["intensity"], done["ours"]["intensity"])
    np.testing.assert_array_equal(done["ours"]["intensity"], data.sum((0, 1)))


def test_on_each_scheduler(x, data, options):
    results = ud.run_udf(x, [SumUDF(), PartitionsUDF(), OBJECTS["ApplyMasksUDF"]()])
    sums, partitions, _ = ud.compute(*results, **options)
    np.testing.assert_array_equal(sums["intensity"], data.sum((0, 1)))
    np.testing.assert_array_equal(partitions["first"].reshape(-1), np.arange(48))


def test_equal_udfs_have_equal_names(x):
    def name(udf):
        return ud.run_udf(x, udf)["intensity"].name

    assert name(SumUDF()) == name(SumUDF()) == name(adapt(SumUDF()))
    assert name(SumUDF(dtype="float64")) != name(SumUDF())
    masks = [np.ones((32, 32))]
    assert name(ApplyMasksUDF(mask_factories=lambda: masks)) != name(SumSigUDF())


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_adapted_ones_can_be_pickled(dumps):
    again = pickle.loads(dumps(adapt(SumUDF(dtype="float64"))))
    assert type(again) is adapt(SumUDF)
    assert again.params.dtype == "float64"


@pytest.mark.parametrize("roi", [None, ROI])
def test_progressive_runs(x, data, roi):
    *_, last = ud.run_udf_iter(x, [SumUDF(), own.SumUDF()], roi=roi)
    theirs, ours = last.buffers
    np.testing.assert_array_equal(theirs["intensity"], ours["intensity"])


def test_accessors(x, data):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    import udfdask.dask
    import udfdask.hyperspy
    import udfdask.xarray  # noqa: F401

    expected = data.sum((2, 3))
    array = xr.DataArray(x, dims=("y", "x", "ky", "kx"))
    dataset = array.udf.run_udf(SumSigUDF(), sig_dims=("ky", "kx"))
    np.testing.assert_array_equal(dataset["intensity"].compute(**SYNC), expected)
    signal = hs.signals.Signal2D(x).as_lazy()
    result = signal.udf.run_udf(SumSigUDF())
    np.testing.assert_array_equal(result["intensity"].data.compute(**SYNC), expected)
    np.testing.assert_array_equal(x.udf.run_udf(SumSigUDF())["intensity"].compute(**SYNC), expected)


@pytest.mark.full
@pytest.mark.parametrize("name", ["SumUDF", "StdDevUDF", "FEMUDF", "FastCorrelationUDF"])
def test_they_keep_the_laws(data, name):
    check_udf(OBJECTS[name](), data[:3, :4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ud.run_udf(x, SumUDF), r"got the class SumUDF: write SumUDF\(\.\.\.\)"),
        (lambda x: ud.map_frames(x, SumUDF()), r"got the UDF SumUDF: run_udf"),
        (lambda x: ud.compute(SumUDF()), r"got the UDF SumUDF, which has no data"),
        (lambda x: ud.run_udf(SumUDF(), x), r"array comes first"),
        (adapt, r"adapt takes a UDF of LiberTEM"),
        (lambda x: ud.run_udf(x, RecordUDF("new.npy")), r"use udfdask\.udfs\.RecordUDF"),
    ],
)
def test_mistakes(x, call, message):
    with pytest.raises(ud.ArgumentTypeError, match=message):
        call(x)


@pytest.mark.parametrize("chunks", [(2, 3, 16, 16), (6, 8, 32, 10)])
def test_tiles_are_contiguous(data, chunks):
    x = da.from_array(data.astype(np.float32), chunks=chunks)
    found = ud.run_udf(x, ShapesUDF()).compute(**SYNC)
    np.testing.assert_array_equal(found["sums"], data.sum((0, 1)))


def test_tiles_are_as_large_as_there():
    frames = da.from_array(np.ones((1, 128, 256, 256), dtype=np.float32), chunks=-1)
    as_they_are = ud.run_udf(frames, ShapesUDF()).compute(**SYNC)
    converted = ud.run_udf(frames.astype(np.uint16), ShapesUDF()).compute(**SYNC)
    assert as_they_are["shapes"][()] == {(128, 256, 256)}
    assert converted["shapes"][()] == {(32, 32, 256)}
