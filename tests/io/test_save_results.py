"""Results that are saved from Python: what is read back, what is refused, what is computed."""

import json
import re
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from commands import call
from counting import CountedData, counts
from failing_writes import fails
from making import SYNC, make
from suites import examples
from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io import kept_results, open_file, open_results, save_results
from udfdask.udfs import CoMUDF, NoOpUDF, RadialProfileUDF, RecordUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
pytest.importorskip("zarr", minversion="3", reason="xarray writes with zarr 3 only")
h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

READ_BACK = ["zarr", "h5", "npz"]
ALL = [*READ_BACK, "hspy", "tif"]
NAV, SIG = (3, 4), (2, 5)
AXES = (
    ud.Axis(name="y", unit="nm", scale=0.1, offset=-2.0),
    ud.Axis(name="scan x"),
    ud.Axis(name="ky", unit="s", scale=-3.0),
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
    """A UDF with the results that are given to it."""

    keeps_units = ("in_counts",)

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
    """UDFs with values of all bits, and a region of interest."""
    udfs = {}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for udf in draw(st.lists(st.sampled_from(["a", "b c", "µ"]), unique=True, min_size=1)):
        buffers, values, masks = {}, {}, {}
        names = draw(st.lists(st.sampled_from(["in_counts", "x", "x_valid"]), unique=True))
        for name in names:
            kind = draw(st.sampled_from(["nav", "sig", "single"]))
            axes = draw(st.sampled_from(EXTRA))
            dtype = np.dtype(draw(st.sampled_from(DTYPES)))
            shape = {"nav": NAV, "sig": SIG, "single": ()}[kind]
            shape += tuple(SIZES[axis.name] for axis in axes)
            n = int(np.prod(shape))
            raw = (
                rng.integers(0, 2, n, "u1") if dtype.kind == "b" else rng.bytes(n * dtype.itemsize)
            )
            values[name] = np.frombuffer(raw, dtype).reshape(shape or (1,))
            buffers[name] = (kind, axes, dtype)
            if draw(st.booleans()):
                masks[name] = rng.random(values[name].shape) > draw(st.sampled_from([-1, 0.5]))
        udfs[udf] = Given(buffers, values, masks)
    roi = draw(st.sampled_from([None, np.s_[1:], np.s_[:0]]))
    return ud.run_udf(da.zeros((*NAV, *SIG), chunks=2), udfs, axes=AXES, roi=roi)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.mark.parametrize("suffix", READ_BACK)
@pytest.mark.parametrize("computed", [False, True])
@given(results=given_results())
@settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_what_is_saved_is_opened(results, suffix, computed, folder):
    (done,) = ud.compute(results, **SYNC)
    path = folder / f"{computed}.{suffix}"
    saved = done if computed else results
    assert save_results(path, saved, overwrite=True, attrs={"title": "Größe"}, **SYNC) == path
    found = open_results(path)
    assert found.attrs == {"title": "Größe"}
    names = set()
    for udf, result in done.items():
        for buffer, values in result.items():
            name = f"{udf}_{buffer}"
            variable, axes = found[name], result.axes[buffer]
            assert variable.dtype == values.dtype
            assert variable.values.tobytes() == np.asarray(values).tobytes()
            for dim, axis, n in zip(variable.dims, axes, values.shape, strict=True):
                assert dim.rstrip("_") in (axis.name, f"{udf}_{axis.name}")
                labels = axis.positions(n) if axis.labels is None else list(axis.labels)
                np.testing.assert_array_equal(found[dim].values, labels, strict=axis.labels is None)
                assert found[dim].attrs == ({"units": axis.unit} if axis.unit else {})
            assert variable.attrs["kind"] == result.buffers[buffer].kind
            assert variable.attrs["udf"] == udf
            names.add(name)
            mask = result.valid_mask[buffer]
            if not mask.all():
                mask_name = f"{name}_valid"
                while mask_name in {f"{udf}_{each}" for each in result}:
                    mask_name += "_"
                np.testing.assert_array_equal(found[mask_name].values, mask)
                assert found[mask_name].dims == variable.dims
                names.add(mask_name)
    assert set(found.data_vars) == names


@pytest.fixture
def x():
    return da.random.default_rng(1).random((4, 6, 8, 8), chunks=(2, 3, 8, 8))


@pytest.fixture
def scan(tmp_path):
    """A file of frames."""
    np.save(tmp_path / "scan.npy", np.arange(4 * 6 * 8 * 8, dtype="u2").reshape(4, 6, 8, 8))
    return tmp_path / "scan.npy"


def everything(folder):
    """The content of a folder."""
    return {path: path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))}


def no_computing(*args, **kwargs):
    raise AssertionError("something was computed")


@pytest.mark.parametrize("suffix", ALL)
def test_the_same_file_as_on_the_command_line(scan, tmp_path, suffix):
    pytest.importorskip("rsciio", reason="rosettasciio is in the io extra")
    opened = open_file(scan)
    call("run", scan, "--udf", "sumsig", "--no-progress", "--out", tmp_path / f"a.{suffix}")
    attrs = {"title": opened.title, "source": opened.reader}
    own = save_results(tmp_path / f"b.{suffix}", ud.run_udf(opened, SumSigUDF()), attrs=attrs)
    if suffix in READ_BACK:
        found = open_results(own)
        assert list(found) == ["sumsig_intensity"]
        xr.testing.assert_identical(found, open_results(tmp_path / f"a.{suffix}"))
    elif suffix != "hspy":  # HDF5 files contain the time
        assert own.read_bytes() == (tmp_path / f"a.{suffix}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"a.{suffix}",
        f"b.{suffix}",
        "scan.npy",
    ]


@pytest.mark.parametrize("form", [tuple, list])
def test_names_of_results_in_a_list(x, tmp_path, form):
    class Peak(ud.UDF):
        def get_result_buffers(self):
            return {"v": self.buffer("nav")}

        def process_frame(self, frame):
            self.results.v[:] = frame.max()

    runs = form([*ud.run_udf(x, [SumUDF(), SumUDF(), Peak()]), ud.run_udf(x, {"k": SumUDF()})["k"]])
    names = ["sum_intensity", "sum_2_intensity", "peak_v", "k_intensity"]
    assert sorted(open_results(save_results(tmp_path / "a.npz", runs))) == sorted(names)
    assert list(open_results(save_results(tmp_path / "b.npz", runs[2]))) == ["peak_v"]
    assert list(open_results(save_results(tmp_path / "c.h5", {3: runs[0]}))) == ["3_intensity"]


@pytest.mark.parametrize("suffix", READ_BACK)
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


def test_runs_over_data_with_other_axes(x, tmp_path):
    """Spectra and frames of one scan: the axes that differ get the name of the UDF."""
    spectra = ud.run_udf(x[:, :, 0], SumUDF(), sig_dims=1)
    found = open_results(
        save_results(tmp_path / "a.h5", {"f": ud.run_udf(x, SumUDF()), "s": spectra})
    )
    assert found["f_intensity"].dims == ("sig_y", "sig_x")
    assert found["s_intensity"].dims == ("sig_x",)
    (small,) = ud.compute(ud.run_udf(x[:2, :2, :4, :4], {"s": SumUDF(), "n": SumSigUDF()}), **SYNC)
    mixed = {"f": ud.run_udf(x, SumUDF()), "g": ud.run_udf(x, SumSigUDF()), **small}
    for suffix in READ_BACK:
        found = open_results(save_results(tmp_path / f"b.{suffix}", mixed))
        assert found["f_intensity"].dims == ("sig_y", "sig_x")
        assert found["s_intensity"].dims == ("s_sig_y", "s_sig_x")
        assert found["n_intensity"].dims == ("n_y", "n_x")
        np.testing.assert_array_equal(found["n_intensity"], small["n"]["intensity"])


@pytest.mark.parametrize("suffix", ["zarr", "npz"])
@pytest.mark.parametrize("dtype", ["M8[s]", "M8[us]", "m8[ns]"])
def test_times(tmp_path, suffix, dtype):
    values = np.array([1, -5, 10**6], "i8").view(dtype)
    udf = make({"t": {"kind": "nav", "dtype": dtype}}, process_frame=set_time(values))()
    result = ud.run_udf(da.arange(3, chunks=1)[:, None] * da.ones((1, 2)), udf, sig_dims=1)
    found = open_results(save_results(tmp_path / f"a.{suffix}", result))["made_t"]
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def set_time(values):
    """A `process_frame` for frames that contain their number."""

    def process_frame(self, frame):
        self.results.t[:] = values[int(frame[0])]

    return process_frame


@pytest.mark.parametrize("suffix", ALL)
def test_what_exists_is_replaced_only_if_asked(x, tmp_path, suffix):
    pytest.importorskip("rsciio", reason="rosettasciio is in the io extra")
    path, result = tmp_path / f"a.{suffix}", ud.run_udf(x, SumSigUDF())
    save_results(path, result)
    before = everything(tmp_path)
    with dask.config.set(scheduler=no_computing), pytest.raises(FileExistsError, match="overwrite"):
        save_results(path, result)
    assert everything(tmp_path) == before
    save_results(path, ud.run_udf(x + 1, SumSigUDF()), overwrite=True)
    assert everything(tmp_path) != before
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{suffix}"]


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("kind", ["same", "link", "inside"])
def test_a_source_is_never_replaced(tmp_path, computed, kind):
    source = tmp_path / "scan.zarr"
    da.ones((4, 6, 8, 8), chunks=4).to_zarr(str(source))
    result = ud.run_udf(open_file(source), SumSigUDF())
    result = result.compute() if computed else result
    assert [Path(file).parent for file in result.files] == [source]
    target = source / "a.zarr" if kind == "inside" else source
    if kind == "link":
        target = tmp_path / "link.zarr"
        target.symlink_to(source)
    before = everything(tmp_path)
    with pytest.raises(ArgumentValueError, match="the source of the data"):
        save_results(target, result, overwrite=True)
    assert everything(tmp_path) == before


def test_sources_that_the_results_do_not_know(scan, tmp_path):
    kept = ud.run_udf(da.from_array(np.load(scan)), SumSigUDF()).compute()
    assert kept.files == ()
    save_results(tmp_path / "old.npz", kept)
    with pytest.raises(ArgumentValueError, match="is the source of the data"):
        save_results(tmp_path / "old.npz", kept, overwrite=True, sources=[tmp_path / "old.npz"])


def test_a_file_that_a_udf_writes_itself(x, tmp_path):
    path = tmp_path / "frames.npz"
    results = ud.run_udf(x, {"r": RecordUDF(path), "s": SumSigUDF()})
    with (
        dask.config.set(scheduler=no_computing),
        pytest.raises(ArgumentValueError, match="cannot both be written"),
    ):
        save_results(path, results)
    assert list(tmp_path.iterdir()) == []
    (done,) = ud.compute(results)
    with pytest.raises(FileExistsError, match=r"not an \.npz file"):
        save_results(path, done, overwrite=True)
    assert open_results(save_results(tmp_path / "a.npz", done))["r_frames"] == 24


WRITERS = {
    "zarr": "zarr.consolidate_metadata",
    "h5": "h5py.Group.create_dataset",
    "npz": "numpy.lib.format.write_array",
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_write_that_fails_leaves_the_old_file(x, tmp_path, monkeypatch, suffix):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    path = save_results(tmp_path / f"a.{suffix}", ud.run_udf(x, SumSigUDF()))
    before = everything(tmp_path)
    monkeypatch.setattr(WRITERS[suffix], fail)
    with pytest.raises(OSError, match="No space left"):
        save_results(path, ud.run_udf(x + 1, SumSigUDF()), overwrite=True)
    assert everything(tmp_path).items() >= before.items()


@pytest.mark.parametrize("place", ["next to it", "temporary", "nowhere"])
@pytest.mark.parametrize("suffix", ["h5", "zarr"])
def test_results_that_cannot_be_written_are_kept(x, tmp_path, monkeypatch, suffix, place):
    target, other = tmp_path / "target", tmp_path / "other"
    target.mkdir()
    other.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(other))
    fails(monkeypatch, f".{suffix}")
    folders = {"next to it": [target, other], "temporary": [other], "nowhere": []}[place]

    def keep(path, *args, write=kept_results.write_npz, **kwargs):
        if Path(path).parents[1] not in folders:
            raise OSError(28, "No space left on device")
        return write(path, *args, **kwargs)

    monkeypatch.setattr(kept_results, "write_npz", keep)
    results = ud.run_udf(x, {"a": SumSigUDF(), "b": SumUDF()})
    with pytest.raises(OSError, match="No space left") as caught:
        save_results(target / f"r.{suffix}", results, attrs={"title": "scan 7"})
    (note,) = caught.value.__notes__
    wanted = {name: result.compute() for name, result in results.items()}
    if place == "nowhere":
        assert note.startswith("The results were computed, but no disk takes them")
        assert list(target.iterdir()) == list(other.iterdir()) == []
        found = open_results(save_results(tmp_path / "again.npz", caught.value.results))
    else:
        kept = re.search(r"are saved in (.*): udfdask", note)[1]
        assert Path(kept).parents[1] == folders[0]
        assert [path.name for path in Path(kept).parent.iterdir()] == ["r.npz"]
        assert sum(len(list(folder.iterdir())) for folder in (target, other)) == 1
        found = open_results(kept)
        assert found.attrs == {"title": "scan 7"}
    for name, result in wanted.items():
        np.testing.assert_array_equal(found[f"{name}_intensity"], result["intensity"])


def test_computed_results_are_not_kept_twice(x, tmp_path, monkeypatch):
    """The user has them."""
    fails(monkeypatch, ".h5")
    with pytest.raises(OSError, match="No space left") as caught:
        save_results(tmp_path / "a.h5", ud.run_udf(x, SumUDF()).compute())
    assert not hasattr(caught.value, "__notes__")
    assert not hasattr(caught.value, "results")
    assert list(tmp_path.iterdir()) == []


def test_results_that_got_another_name_are_not_kept_twice(x, tmp_path, monkeypatch):
    """Another program writes to the target while the file is written."""
    path = tmp_path / "a.h5"

    def write(file, *args, original=h5py.Group.create_dataset, **kwargs):
        path.write_bytes(b"notes")
        return original(file, *args, **kwargs)

    monkeypatch.setattr("h5py.Group.create_dataset", write)
    with pytest.raises(FileExistsError) as caught:
        save_results(path, ud.run_udf(x, SumUDF()))
    (note,) = caught.value.__notes__
    assert note.startswith("The results were computed and are saved in")
    assert len(list(tmp_path.glob("a*.h5"))) == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.tif", "a.tif cannot hold the results: a TIFF file holds one result, but there are 2"),
        ("a.npy", "ends in '.npy', but the suffix says what to write: .npz, .zarr"),
        ("a", "has no suffix"),
        ("a.zarrr", "did you mean 'a.zarr'"),
        ("s3://bucket/a.zarr", "is not a local path"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_computed(x, tmp_path, name, words):
    path = name if "://" in name else tmp_path / name
    with dask.config.set(scheduler=no_computing), pytest.raises(ArgumentValueError, match=words):
        save_results(path, ud.run_udf(x, {"a": SumUDF(), "b": SumSigUDF()}))
    assert list(tmp_path.iterdir()) == []


def test_folders(x, tmp_path):
    result = ud.run_udf(x, SumUDF())
    with dask.config.set(scheduler=no_computing):
        with pytest.raises(FileNotFoundError, match="create it first"):
            save_results(tmp_path / "no" / "a.npz", result)
        with pytest.raises(ArgumentTypeError, match="string or path"):
            save_results(7, result)


def last_snapshot():
    return list(ud.run_udf_iter(da.ones((2, 2, 4, 4)), SumUDF()))[-1]


def wrong_results():
    x = da.ones((4, 6, 8, 8))
    result = ud.run_udf(x, SumUDF())
    return {
        "udf": (SumUDF(), "not a SumUDF"),
        "array": (result["intensity"], "not a Array: numpy.save"),
        "dataset": (result.to_xarray(), "not a Dataset: a Dataset has methods of its own"),
        "computed": (ud.compute({"a": result}), r"results\[0\] is a dict: compute returns a tuple"),
        "arrays": ({"a": np.ones(3)}, r"results\['a'\] is a ndarray"),
        "snapshot": (last_snapshot(), "not a Snapshot: pass its attribute buffers"),
        "number": (3, "takes a Result of run_udf, or a dictionary, list or tuple .*, not a int"),
    }


@pytest.mark.parametrize("kind", wrong_results())
def test_what_is_not_a_result(tmp_path, kind):
    wrong, words = wrong_results()[kind]
    with pytest.raises(ArgumentTypeError, match=words):
        save_results(tmp_path / "a.npz", wrong)


def test_results_of_signals(tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    pytest.importorskip("udfdask.hyperspy")
    signal = hs.signals.Signal2D(np.ones((4, 6, 8, 8)))
    for number, lazy in enumerate((True, False)):
        named = signal.udf.run_udf({"Fe": SumUDF()}, lazy_output=lazy, show_progressbar=False)
        for form, key in ((named["Fe"], "Fe"), ([named["Fe"]], "Fe"), ({"Co": named["Fe"]}, "Co")):
            path = tmp_path / f"{number}{type(form).__name__}.npz"
            saved = open_results(save_results(path, form))
            assert list(saved) == [f"{key}_intensity"]
            np.testing.assert_array_equal(saved[f"{key}_intensity"], np.full((8, 8), 24))


def test_results_of_functions_have_their_names(x, tmp_path):
    def fit(frame):
        return frame.max(), frame.min()

    functions = (fit, lambda frame: (frame.max(), frame.min()))
    both = [ud.map_frames(x, f, output_names=("a", "b")) for f in functions]
    saved = open_results(save_results(tmp_path / "a.npz", [*both, both[0]]))
    names = [f"{name}_{output}" for name in ("fit", "map_frames", "fit_2") for output in "ab"]
    assert sorted(saved) == sorted(names)
    np.testing.assert_array_equal(saved["fit_a"], np.asarray(x).max(axis=(2, 3)))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"attrs": "title"}, ArgumentTypeError),
        ({"attrs": {"a": 3}}, ArgumentTypeError),
        ({"attrs": {"a": "x" * 10**5}}, ArgumentValueError),
        ({"sources": "scan.npy"}, ArgumentTypeError),
    ],
)
def test_wrong_texts(x, tmp_path, arguments, error):
    with dask.config.set(scheduler=no_computing), pytest.raises(error, match="must"):
        save_results(tmp_path / "a.npz", ud.run_udf(x, SumUDF()), **arguments)


def test_results_with_one_name(x, tmp_path):
    buffers = {"kind": "nav"}
    one = make({"b_c": buffers}, process_frame=lambda self, frame: None)
    other = make({"c": buffers}, process_frame=lambda self, frame: None)
    results = ud.run_udf(x, {"a": one(), "a_b": other()})
    with pytest.raises(ArgumentValueError, match="2 results would be called 'a_b_c'"):
        save_results(tmp_path / "a.npz", results)
    with pytest.raises(ArgumentValueError, match="not a possible name"):
        save_results(tmp_path / "a.npz", {"a\0b": results["a"]})
    with pytest.raises(ArgumentValueError, match="different names"):
        save_results(tmp_path / "a.npz", {1: results["a"], "1": results["a"]})


def test_an_unknown_argument(x, tmp_path):
    with pytest.raises(ArgumentTypeError, match="did you mean 'overwrite'"):
        save_results(tmp_path / "a.npz", ud.run_udf(x, SumUDF()), overwrit=True)


@pytest.mark.parametrize("suffix", READ_BACK)
def test_no_results(x, tmp_path, suffix):
    for results in ([], ud.run_udf(x, NoOpUDF())):
        path = save_results(tmp_path / f"a.{suffix}", results, overwrite=True)
        assert list(open_results(path).variables) == []


def test_an_image_of_a_region(x, tmp_path):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is in the io extra")
    result = ud.run_udf(x, SumSigUDF(), roi=np.s_[1:3]).compute()
    saved = save_results(tmp_path / "a.tif", result)
    np.testing.assert_array_equal(tifffile.imread(saved), result["intensity"])


def test_a_store_of_one_result(x, tmp_path):
    """`to_zarr` leaves out valid masks that are True everywhere."""
    whole, part = ud.run_udf(x, CoMUDF()), ud.run_udf(x, CoMUDF(), roi=np.s_[1:3])
    found = open_results(whole.to_zarr(tmp_path / "a.zarr"))
    xr.testing.assert_identical(found, whole.compute().to_xarray())
    found = open_results(part.to_zarr(tmp_path / "b.zarr"))
    done = part.compute()
    wanted = {name for name in done if not done.valid_mask[name].all()}
    assert "field" in wanted
    assert "regression" not in wanted
    assert {name for name in found if str(name).endswith("_valid")} == {
        f"{n}_valid" for n in wanted
    }
    for name in wanted:
        np.testing.assert_array_equal(found[f"{name}_valid"], done.valid_mask[name])
    with xr.open_zarr(tmp_path / "b.zarr") as other:
        assert set(other.data_vars) == set(found.data_vars)


@pytest.mark.parametrize("suffix", ["zarr", "h5"])
def test_open_file_of_results(x, tmp_path, suffix):
    results = ud.run_udf(x, {"com": CoMUDF(), "p": RadialProfileUDF()}, roi=np.s_[1:3])
    path = save_results(tmp_path / f"a.{suffix}", results)
    with pytest.raises(
        FileFormatError, match=r"contains results of udfdask.*open_results"
    ) as caught:
        open_file(path)
    assert "_valid" not in str(caught.value)
    assert "sig_x" not in str(caught.value)
    assert "'com_field' (4, 6, 2) float64" in str(caught.value)
    assert open_file(path, dataset="com_field", sig_dims=1).array.shape == (4, 6, 2)
    one = save_results(tmp_path / f"b.{suffix}", ud.run_udf(x, RadialProfileUDF()))
    with pytest.raises(FileFormatError, match="open_results"):
        open_file(one)  # its frames would be (x, radius)
    assert open_file(one, sig_dims=1).axes[-1].name == "radius"


@pytest.mark.parametrize("suffix", ["zarr", "h5"])
def test_open_file_of_frames_that_are_results(x, tmp_path, suffix):
    frames = ud.map_frames(x, lambda frame: frame[::2, ::2])
    if isinstance(frames, ud.Result):
        opened = open_file(save_results(tmp_path / f"a.{suffix}", frames))
        assert opened.array.shape == (4, 6, 4, 4)


def test_files_of_other_programs(x, tmp_path):
    result = ud.run_udf(x, SumSigUDF())
    for suffix, program in (("hspy", "hyperspy.api.load"), ("tif", "tifffile.imread")):
        with pytest.raises(FileFormatError, match=program):
            open_results(save_results(tmp_path / f"a.{suffix}", result))
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    da.ones((2, 2)).to_zarr(str(tmp_path / "other.zarr"))
    result.compute().to_xarray().to_zarr(tmp_path / "mine.zarr", consolidated=False)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.h5").write_text("no HDF5")
    (tmp_path / "empty.npz").write_bytes(b"")
    others = ("other.npz", "other.zarr", "mine.zarr", "folder", "text.h5", "empty.npz")
    for name in others:
        with pytest.raises(FileFormatError, match="does not contain results of udfdask"):
            open_results(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        open_results(tmp_path / "absent.zarr")
    with pytest.raises(FileFormatError, match=r"xarray\.open_zarr"):
        open_results("s3://bucket/a.zarr")


@pytest.mark.parametrize("suffix", ["h5", "npz"])
def test_damaged_files(x, tmp_path, suffix):
    path = save_results(tmp_path / f"a.{suffix}", ud.run_udf(x, SumSigUDF()))
    content = path.read_bytes()
    for end in (4, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(FileFormatError, match="a\\."):
            open_results(path)


@pytest.mark.full
def test_results_can_be_read_without_udfdask(x, tmp_path):
    """The marks and descriptions do not disturb other programs."""
    results = ud.run_udf(x, {"p": RadialProfileUDF(), "s": SumUDF()})
    path = save_results(tmp_path / "a.npz", results)
    with np.load(path) as arrays:
        assert sorted(arrays) == ["p_intensity", "radius", "s_intensity"]
    attrs = xr.open_zarr(save_results(tmp_path / "a.zarr", results)).attrs
    assert json.loads(attrs["udfdask_results"]) == ["p_intensity", "s_intensity"]
