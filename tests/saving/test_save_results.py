"""Results that are saved from Python: what is read back, what is refused, what is computed."""

import itertools
import json
from zipfile import ZipFile

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from commands import call
from counting import CountedData, counts
from making import SYNC, make
from saved import read_saved
from suites import examples
from udf_zoo import Rows
from udfdask import save_results
from udfdask.corrections import CorrectionSet
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, NoOpUDF, RadialProfileUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
pytest.importorskip("zarr", minversion="3", reason="xarray writes with zarr 3 only")
pytest.importorskip("h5netcdf", reason="h5netcdf is in the io extra")
pytest.importorskip("rsciio", reason="rosettasciio is in the io extra")

LABELED = ["zarr", "nc"]
ALL = [*LABELED, "npz", "hspy", "tif"]
NAV, SIG = (3, 4), (2, 5)
AXES = (
    ud.Axis(name="y", unit="nm", scale=0.1, offset=-2.0),
    ud.Axis(name="scan x"),
    ud.Axis(name="ky", unit="1/nm", scale=-3.0),
    ud.Axis(name="energy", unit="eV", values=(1.0, 2.0, 4.0, 8.0, 16.5)),
)
EXTRA = (
    (),
    (ud.Axis(name="side", labels=("links", "rechts")),),
    (ud.Axis(name="radius", unit="1/nm", scale=0.3), ud.Axis(name="side", labels=("a", "b"))),
    (ud.Axis(name="turn", unit="rad", values=(0.0, 0.5, 3.0)),),
)
SIZES = {"side": 2, "radius": 1, "turn": 3}
DTYPES = ["bool", "u1", "i2", "u8", "f2", "f4", "f8", "c8", "c16"]


class Given(ud.UDF):
    def __init__(self, buffers, values, masks):
        super().__init__(buffers=buffers, values=values, masks=masks)

    def get_result_buffers(self):
        return {
            name: self.buffer(
                kind, tuple(SIZES[axis.name] for axis in axes), dtype=dtype, use="result_only"
            )
            for name, (kind, axes, dtype) in self.params.buffers.items()
        }

    def get_result_axes(self):
        return {name: axes for name, (_, axes, _) in self.params.buffers.items() if axes}

    def process_frame(self, frame):
        """Do nothing."""

    def get_results(self):
        masks = self.params.masks
        return {
            name: self.with_mask(values, masks[name]) if name in masks else values
            for name, values in self.params.values.items()
        }


@st.composite
def given_results(draw):
    """UDFs with random values and masks, and a region of interest."""
    udfs = {}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for udf in draw(st.lists(st.sampled_from(["a", "b c", "µ"]), unique=True, min_size=1)):
        buffers, values, masks = {}, {}, {}
        for name in draw(st.lists(st.sampled_from(["c", "x", "x_valid"]), unique=True, min_size=1)):
            kind = draw(st.sampled_from(["nav", "sig", "single"]))
            axes = draw(st.sampled_from(EXTRA))
            shape = {"nav": NAV, "sig": SIG, "single": ()}[kind]
            shape += tuple(SIZES[axis.name] for axis in axes)
            dtype = np.dtype(draw(st.sampled_from(DTYPES)))
            values[name] = rng.integers(0, 200, shape or (1,)).astype(dtype)
            buffers[name] = (kind, axes, dtype)
            if draw(st.booleans()):
                masks[name] = rng.random(values[name].shape) > draw(st.sampled_from([-1, 0.5]))
        udfs[udf] = Given(buffers, values, masks)
    roi = draw(st.sampled_from([None, np.s_[1:], np.s_[:0]]))
    return ud.run_udf(da.zeros((*NAV, *SIG), chunks=2), udfs, axes=AXES, roi=roi)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.mark.parametrize("suffix", LABELED)
@pytest.mark.parametrize("computed", [False, True])
@given(results=given_results())
@settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_what_is_saved_is_opened(results, suffix, computed, folder):
    (done,) = ud.compute(results, **SYNC)
    path = folder / f"{computed}.{suffix}"
    saved = done if computed else results
    assert save_results(path, saved, overwrite=True, attrs={"title": "Größe"}, **SYNC) == path
    found = read_saved(path)
    assert found.attrs == {"title": "Größe"}
    for udf, result in done.items():
        for buffer, values in result.items():
            variable = found[f"{udf}_{buffer}"]
            assert variable.dtype == values.dtype
            np.testing.assert_array_equal(variable.values, np.asarray(values))
            for dim, axis, n in zip(variable.dims, result.axes[buffer], values.shape, strict=True):
                assert dim.rstrip("_").endswith(axis.name)
                labels = axis.positions(n) if axis.labels is None else list(axis.labels)
                np.testing.assert_array_equal(found[dim].values, labels)
                assert found[dim].attrs == ({"units": axis.unit} if axis.unit else {})
            assert (variable.attrs["udf"], variable.attrs["kind"]) == (
                udf,
                result.buffers[buffer].kind,
            )
            mask = result.valid_mask[buffer]
            if not mask.all():
                own = [f"{udf}_{buffer}_valid{more}" for more in ("", "_", "__")]
                masks = [found[name].values for name in own if name in found]
                if "roi" in found and result.buffers[buffer].kind == "nav":
                    masks.append(np.broadcast_to(found.roi.values.T, mask.T.shape).T)
                assert any(np.array_equal(each, mask) for each in masks)


@pytest.fixture
def x():
    return da.random.default_rng(1).random((4, 6, 8, 8), chunks=(2, 3, 8, 8))


@pytest.fixture
def scan(tmp_path):
    np.save(tmp_path / "scan.npy", np.arange(4 * 6 * 8 * 8, dtype="u2").reshape(4, 6, 8, 8))
    return tmp_path / "scan.npy"


def everything(folder):
    return {path: path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("suffix", ALL)
def test_the_same_file_as_on_the_command_line(scan, tmp_path, suffix):
    data = open_file(scan)
    call("run", scan, "--udf", "sumsig", "--no-progress", "--out", tmp_path / f"a.{suffix}")
    attrs = {"title": data.title, "source": data.reader}
    own = save_results(tmp_path / f"b.{suffix}", ud.run_udf(data, SumSigUDF()), attrs=attrs)
    if suffix in LABELED:
        assert list(read_saved(own)) == ["sumsig_intensity"]
        xr.testing.assert_identical(read_saved(own), read_saved(tmp_path / f"a.{suffix}"))
    elif suffix == "tif":
        assert own.read_bytes() == (tmp_path / "a.tif").read_bytes()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"a.{suffix}", f"b.{suffix}", "scan.npy"]


def test_arrays_for_numpy(x, tmp_path):
    results = ud.run_udf(x, {"p": RadialProfileUDF(), "file": SumUDF()}, roi=np.s_[1:])
    path = save_results(tmp_path / "a.npz", results, attrs={"title": "Größe"})
    with np.load(path) as arrays:
        assert {"p_intensity", "radius", "file_intensity", "roi"} <= set(arrays)
        for name, result in results.items():
            np.testing.assert_array_equal(arrays[f"{name}_intensity"], result["intensity"])
    with ZipFile(path) as archive:
        assert json.loads(archive.comment)["title"] == "Größe"


@pytest.mark.parametrize("form", [tuple, list])
def test_names_of_results_in_a_list(x, tmp_path, form):
    class Peak(Rows):
        """Its name is that of its results."""

    runs = form([*ud.run_udf(x, [SumUDF(), SumUDF(), Peak()]), ud.run_udf(x, {"k": SumUDF()})["k"]])
    names = {"sum_intensity", "sum_2_intensity", "peak_sums", "k_intensity"}
    assert set(read_saved(save_results(tmp_path / "a.nc", runs))) == names
    assert list(read_saved(save_results(tmp_path / "b.nc", runs[2]))) == ["peak_sums"]
    assert list(read_saved(save_results(tmp_path / "c.nc", {3: runs[0]}))) == ["3_intensity"]
    assert list(read_saved(save_results(tmp_path / "d.nc", {"": runs[0]}))) == ["sum_intensity"]


@pytest.mark.parametrize("suffix", ["zarr", "npz"])
def test_lazy_results_of_a_run_load_the_data_once(tmp_path, suffix):
    (tmp_path / "log").mkdir()
    source = CountedData(np.ones((4, 6, 8, 8)), tmp_path / "log")
    x = da.from_array(source, chunks=(2, 3, 8, 8))
    counts(tmp_path / "log")  # dask looks at the array itself
    runs = {**ud.run_udf(x, {"a": SumUDF(), "b": CoMUDF()}), "c": ud.run_udf(x, SumSigUDF())}
    computed = ud.run_udf(da.ones((4, 6, 8, 8)), SumUDF()).compute()
    save_results(tmp_path / f"a.{suffix}", {**runs, "d": computed}, **SYNC)
    loads = counts(tmp_path / "log")
    assert len(loads) == 4
    assert set(loads.values()) == {1}


@pytest.mark.parametrize("suffix", LABELED)
def test_runs_over_data_with_other_axes(x, tmp_path, suffix):
    """The axes that differ get the name of the UDF."""
    (small,) = ud.compute(ud.run_udf(x[:2, :2, :4, :4], {"s": SumUDF(), "n": SumSigUDF()}), **SYNC)
    mixed = {"f": ud.run_udf(x, SumUDF()), "g": ud.run_udf(x, SumSigUDF()), **small}
    found = read_saved(save_results(tmp_path / f"b.{suffix}", mixed))
    assert found["f_intensity"].dims == ("sig_y", "sig_x")
    assert found["s_intensity"].dims == ("s_sig_y", "s_sig_x")
    assert found["n_intensity"].dims == ("n_y", "n_x")
    np.testing.assert_array_equal(found["n_intensity"], small["n"]["intensity"])


@pytest.mark.parametrize("suffix", LABELED)
@pytest.mark.parametrize("dtype", ["M8[s]", "M8[us]", "m8[ns]"])
def test_times(tmp_path, suffix, dtype):
    values = np.array([1, -5, 10**6], "i8").view(dtype)

    def process_frame(self, frame):
        self.results.t[:] = values[int(frame[0])]

    udf = make({"t": {"kind": "nav", "dtype": dtype}}, process_frame=process_frame)()
    result = ud.run_udf(da.arange(3, chunks=1)[:, None] * da.ones((1, 2)), udf, sig_dims=1)
    found = read_saved(save_results(tmp_path / f"a.{suffix}", result))["made_t"]
    np.testing.assert_array_equal(found, values)


WRITERS = {
    "zarr": "zarr.consolidate_metadata",
    "nc": "xarray.Dataset.to_netcdf",
    "npz": "numpy.lib.format.write_array",
    "hspy": "rsciio.hspy.file_writer",
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_write_that_fails_leaves_the_old_file_and_the_results(x, tmp_path, monkeypatch, suffix):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    path = save_results(tmp_path / f"a.{suffix}", ud.run_udf(x, SumSigUDF()))
    before = everything(tmp_path)
    results = ud.run_udf(x + 1, {"a": SumSigUDF()})
    with monkeypatch.context() as patched:
        patched.setattr(WRITERS[suffix], fail)
        with pytest.raises(OSError, match="No space left") as caught:
            save_results(path, results, overwrite=True)
    assert everything(tmp_path) == before
    found = read_saved(save_results(tmp_path / "again.nc", caught.value.results))
    np.testing.assert_array_equal(found["a_intensity"], results["a"]["intensity"])


@pytest.mark.parametrize("name", ["a.tif", "a.npy", "a", "a.zarrr", "s3://bucket/a.zarr"])
def test_what_cannot_be_written_is_refused_before_anything_is_computed(x, tmp_path, name):
    path = name if "://" in name else tmp_path / name
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError):
        save_results(path, ud.run_udf(x, {"a": SumUDF(), "b": SumSigUDF()}))
    assert list(tmp_path.iterdir()) == []


def test_long_doubles_are_no_tiff(x, tmp_path):
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError):
        save_results(tmp_path / "a.tif", ud.run_udf(x.astype("g"), SumUDF()))


def test_a_backslash_in_a_name(x, tmp_path):
    saved = save_results(tmp_path / "a.zarr", ud.run_udf(x, {"a\\b": SumSigUDF()}))
    assert "a_b_intensity" in read_saved(saved)


@pytest.mark.parametrize("plane", ["dark", "gain"])
def test_the_file_of_a_correction_is_a_source(x, tmp_path, plane):
    path = tmp_path / "plane.npz"
    np.save(path.with_suffix(".npy"), np.ones(x.shape[2:]))
    path.with_suffix(".npy").rename(path)
    lazy = open_file(path, sig_dims=2).array
    result = ud.run_udf(x, SumUDF(), corrections=CorrectionSet(**{plane: lazy}))
    with pytest.raises(ArgumentValueError, match="is the source of the data"):
        save_results(path, result, overwrite=True)


def wrong_results():
    """What users pass in place of results."""
    x = da.ones((4, 6, 8, 8))
    result = ud.run_udf(x, SumUDF())
    *_, last = ud.run_udf_iter(da.ones((2, 2, 4, 4)), SumUDF())
    return {
        "udf": SumUDF(),
        "array": result["intensity"],
        "dataset": result.to_xarray(),
        "computed": ud.compute({"a": result}),
        "arrays": {"a": np.ones(3)},
        "snapshot": last,
        "number": 3,
    }


@pytest.mark.parametrize("kind", wrong_results())
def test_what_is_not_a_result(tmp_path, kind):
    with pytest.raises(ArgumentTypeError, match="Result of run_udf"):
        save_results(tmp_path / "a.npz", wrong_results()[kind])


def test_results_of_signals(tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    pytest.importorskip("udfdask.hyperspy")
    signal = hs.signals.Signal2D(np.ones((4, 6, 8, 8)))
    for number, lazy in itertools.product((0, 1), (True, False)):
        named = signal.udf.run_udf({"Fe": SumUDF()}, lazy_output=lazy, show_progressbar=False)
        form, key = (named["Fe"], "Fe") if number else ({"Co": named["Fe"]}, "Co")
        saved = read_saved(save_results(tmp_path / f"{number}{lazy}.nc", form))
        np.testing.assert_array_equal(saved[f"{key}_intensity"], np.full((8, 8), 24))


def test_results_of_functions_have_their_names(x, tmp_path):
    def fit(frame):
        return frame.max(), frame.min()

    functions = (fit, lambda frame: (frame.max(), frame.min()))
    both = [ud.map_frames(x, f, output_names=("a", "b")) for f in functions]
    saved = read_saved(save_results(tmp_path / "a.nc", [*both, both[0]]))
    names = [f"{name}_{output}" for name in ("fit", "map_frames", "fit_2") for output in "ab"]
    assert set(saved) == set(names)
    np.testing.assert_array_equal(saved["fit_a"], np.asarray(x).max(axis=(2, 3)))


def test_results_with_one_name(x, tmp_path):
    buffers = {"kind": "nav"}
    one = make({"b_c": buffers}, process_frame=lambda self, frame: None)
    other = make({"c": buffers}, process_frame=lambda self, frame: None)
    results = ud.run_udf(x, {"a": one(), "a_b": other()})
    for wrong in (results, {1: results["a"], "1": results["a"]}):
        with pytest.raises(ArgumentValueError):
            save_results(tmp_path / "a.npz", wrong)


@pytest.mark.parametrize("suffix", LABELED)
def test_a_udf_without_results(x, tmp_path, suffix):
    for name, results in (("a", ud.run_udf(x, NoOpUDF())), ("b", [])):
        assert list(read_saved(save_results(tmp_path / f"{name}.{suffix}", results))) == []


@pytest.mark.parametrize("suffix", LABELED)
def test_results_can_be_data(x, tmp_path, suffix):
    """A radial profile for each scan position is a scan of spectra."""
    path = save_results(tmp_path / f"a.{suffix}", ud.run_udf(x, {"p": RadialProfileUDF()}))
    profiles = open_file(path, sig_dims=1)
    assert [axis.name for axis in profiles.axes] == ["y", "x", "radius"]
    assert profiles.array.shape == (4, 6, 7)
