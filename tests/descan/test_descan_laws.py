"""Shifts together with all else: regions, corrections, sparse chunks, axes, entry points."""

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
import udfdask.hyperspy
import udfdask.xarray
from chunk_backends import ANY_SHAPE, chunks_in
from suites import examples
from udfdask.base.aligned import CACHE_LINE
from udfdask.corrections import CorrectionSet, Descan
from udfdask.corrections.shift_tile import ReusedMemory
from udfdask.testing import run_reference
from udfdask.testing.plain_frames import shift_frames
from udfdask.testing.strategies import arrays, chunkings, rois
from udfdask.udfs import CoMUDF, PickUDF, StdDevUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
fast = settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))

sizes = st.tuples(*[st.integers(1, 4)] * 2, *[st.integers(1, 6)] * 2)
scales = st.floats(-10, 10).filter(lambda scale: abs(scale) > 0.01)


def axes_of(draw, unit):
    """Axes of a scan in nm and of frames in another unit, also descending ones."""
    units = {"y": "nm", "x": "nm", "ky": unit, "kx": unit}
    return tuple(
        ud.Axis(name=name, unit=each, scale=draw(scales), offset=draw(st.floats(-5, 5)))
        for name, each in units.items()
    )


@st.composite
def scans(draw, dtypes=("uint8", "float32")):
    """A scan of two axes with frames of two axes, its shifts, and how they are given."""
    shape = draw(sizes)
    nav, rng = shape[:2], np.random.default_rng(draw(st.integers(0, 99)))
    shifts = np.round(rng.uniform(-3, 3, (*nav, 2)) * 4) / 4
    shifts[rng.random(nav) < draw(st.sampled_from([0, 0.2]))] = draw(
        st.sampled_from([np.nan, 7, -1e30])
    )
    lazy = draw(st.booleans())
    return {
        "data": draw(arrays(shape, dtype=draw(st.sampled_from(dtypes)), largest=20)),
        "chunks": draw(chunkings(shape)),
        "shifts": shifts,
        "given": da.from_array(shifts, chunks=draw(chunkings((*nav, 2)))) if lazy else shifts,
        "roi": draw(rois(nav)),
        "axes": axes_of(draw, draw(st.sampled_from(["mrad", "1/nm", None]))),
        "tile": draw(st.sampled_from(["1 MiB", 64, 1])),
    }


def udfs():
    return [
        SumUDF(),
        SumSigUDF(),
        PickUDF(),
        CoMUDF(),
        VirtualDetectorUDF("disk", r=2),
    ]


@pytest.mark.full
@given(
    case=scans(),
    native=st.sampled_from(ANY_SHAPE),
    corrected=st.booleans(),
    subpixel=st.booleans(),
    fill=st.sampled_from([0, 1]),
    scheduler=st.sampled_from(["synchronous", "threads"]),
)
@fast
def test_all_options_at_once(case, native, corrected, subpixel, fill, scheduler):
    data, sig = case["data"], case["data"].shape[2:]
    rng = np.random.default_rng(0)
    corrections = CorrectionSet(
        dark=rng.integers(0, 3, sig) / 4,
        gain=rng.integers(1, 3, sig),
        excluded_pixels=rng.random(sig) < 0.1,
    )
    options = {"roi": case["roi"], "corrections": corrections if corrected else None}
    array = chunks_in(da.from_array(data, chunks=case["chunks"]), native, 2)
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}):
        descan = Descan(case["given"], subpixel=subpixel, fill=fill)
        lazy = ud.run_udf(array, udfs(), descan=descan, axes=case["axes"], unit="counts", **options)
        plain = ud.run_udf(array, udfs(), axes=case["axes"], unit="counts", **options)
    done = ud.compute(*lazy, scheduler=scheduler)
    expected = run_reference(
        data, udfs(), descan=Descan(case["shifts"], subpixel=subpixel, fill=fill), **options
    )
    for found, wanted, unshifted in zip(done, expected, plain, strict=True):
        assert found.axes == unshifted.axes
        assert found.units == unshifted.units
        for name, values in wanted.items():
            if unshifted.units[name] not in (None, "px", "counts"):
                continue  # in units of the axes, which the reference does not know
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-3)


@given(case=scans(dtypes=("uint8", "uint16")))
@fast
def test_whole_pixels_are_exact(case):
    """To the bit: integers are as in a run over frames that NumPy has shifted."""
    data, shifts = case["data"], case["shifts"]
    frames = data.reshape((-1, *data.shape[2:]))
    shifted = shift_frames(frames, shifts.reshape((-1, 2)), subpixel=False, fill=0)
    options = {"roi": case["roi"], "axes": case["axes"]}
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}):
        array = da.from_array(shifted.reshape(data.shape), chunks=case["chunks"])
        expected = ud.compute(*ud.run_udf(array, udfs(), **options))
        array = da.from_array(data, chunks=case["chunks"])
        done = ud.compute(*ud.run_udf(array, udfs(), descan=case["given"], **options))
    for found, wanted in zip(done, expected, strict=True):
        for name in wanted:
            assert found[name].dtype == wanted[name].dtype
            np.testing.assert_array_equal(found[name], wanted[name])


@given(case=scans(dtypes=("uint16",)), order=st.permutations(["y", "x", "ky", "kx"]))
@fast
def test_data_arrays_keep_their_coordinates(case, order):
    names = ("y", "x", "ky", "kx")
    coords = {
        axis.name: (
            axis.name,
            axis.offset + axis.scale * np.arange(n),
            {"units": axis.unit or "px"},
        )
        for axis, n in zip(case["axes"], case["data"].shape, strict=True)
    }
    array = xr.DataArray(da.from_array(case["data"], chunks=case["chunks"]), coords, names)
    shifts = xr.DataArray(case["given"], {k: coords[k] for k in "yx"}, ("y", "x", "component"))
    options = {"sig_dims": ("ky", "kx")}
    moved = array.transpose(*order)
    found = moved.udf.run_udf([SumUDF(), SumSigUDF()], descan=shifts, **options)
    plain = moved.udf.run_udf([SumUDF(), SumSigUDF()], **options)
    expected = run_reference(case["data"], [SumUDF(), SumSigUDF()], descan=case["shifts"])
    dims = (("ky", "kx"), ("y", "x"))
    for dataset, unshifted, wanted, axes in zip(found, plain, expected, dims, strict=True):
        xr.testing.assert_equal(dataset.coords.to_dataset(), unshifted.coords.to_dataset())
        values = dataset["intensity"].transpose(*axes).values
        np.testing.assert_array_equal(values, wanted["intensity"])


@given(case=scans(dtypes=("uint16",)))
@settings(fast, max_examples=examples(15))
def test_signals_keep_their_axes(case):
    signal = _signal(case)
    options = {"show_progressbar": False, "lazy_output": False}
    found = signal.udf.run_udf([SumUDF(), SumSigUDF()], descan=case["given"], **options)
    plain = signal.udf.run_udf([SumUDF(), SumSigUDF()], **options)
    expected = run_reference(case["data"], [SumUDF(), SumSigUDF()], descan=case["shifts"])
    for results, unshifted, wanted in zip(found, plain, expected, strict=True):
        one, other = results["intensity"], unshifted["intensity"]
        np.testing.assert_array_equal(
            one.data.reshape(wanted["intensity"].shape), wanted["intensity"]
        )
        for axis, same in zip(one.axes_manager._axes, other.axes_manager._axes, strict=True):
            assert (axis.name, axis.units, axis.scale, axis.offset) == (
                same.name,
                same.units,
                same.scale,
                same.offset,
            )


def _signal(case):
    """The data as a signal with axes."""
    import hyperspy.api as hs

    signal = hs.signals.Signal2D(case["data"])
    for axis, wanted in zip(signal.axes_manager._axes, case["axes"], strict=True):
        axis.name, axis.units = wanted.name, wanted.unit or "px"
        axis.scale, axis.offset = wanted.scale, wanted.offset
    return signal


class KeepsTiles(ud.UDF):
    """Keeps tiles and parts of tiles, with copies of what they were."""

    def get_preferred_input_dtype(self):
        return self.params.dtype

    def get_result_buffers(self):
        return {"changed": self.buffer("single", dtype="int64")}

    def merge(self, dest, src):
        dest.changed[:] += src.changed

    def preprocess(self):
        self.kept = []

    def process_tile(self, tile):
        views = (tile, tile[:1, ::2], tile.T[-1:], memoryview(tile))
        kept = views[len(self.kept) % 5 % 4] if self.params.keeps else None
        if kept is not None:
            self.kept.append((kept, np.array(kept)))

    def postprocess(self):
        self.results.changed[:] = sum(not np.array_equal(kept, was) for kept, was in self.kept)


@pytest.mark.parametrize("subpixel", [False, True])
@pytest.mark.parametrize("corrected", [False, True])
def test_a_tile_that_is_kept_does_not_change(subpixel, corrected):
    """Others use its memory again, but only if nobody has it."""
    data = np.random.default_rng(0).integers(0, 99, (6, 20, 8, 8)).astype("uint16")
    shifts = np.random.default_rng(1).uniform(-3, 3, (6, 20, 2))
    udfs = [
        KeepsTiles(keeps=True, dtype=np.dtype("uint16")),
        KeepsTiles(keeps=True, dtype=np.dtype("float64")),
        SumUDF(),
        StdDevUDF(),
    ]
    corrections = CorrectionSet(dark=np.ones((8, 8))) if corrected else None
    with dask.config.set({"udfdask.tile-bytes": 4096}):
        array = da.from_array(data, chunks=(3, 20, 8, 8))
        descan = Descan(shifts, subpixel=subpixel)
        runs = ud.run_udf(array, udfs, descan=descan, corrections=corrections)
    first, second, total, _ = ud.compute(*runs, scheduler="threads")
    assert first["changed"] == second["changed"] == 0
    expected = run_reference(data, SumUDF(), descan=descan, corrections=corrections)
    np.testing.assert_allclose(total["intensity"], expected["intensity"], rtol=1e-5)


def test_memory_is_used_again_if_nobody_has_it():
    memory, dtype = ReusedMemory(), np.dtype("uint16")

    def place(shape=(3, 4), of=dtype):
        array = memory.array(shape, of)
        assert array.shape == shape
        assert array.dtype == of
        assert array.flags.c_contiguous
        assert array.ctypes.data % CACHE_LINE == 0
        return array.ctypes.data

    first = place()
    assert place() == place((2, 2)) == first
    other = place(of=np.dtype("float64"))
    assert other != first
    for view in (
        lambda a: a,
        lambda a: a[1:],
        lambda a: a.T[0],
        memoryview,
        lambda a: a.view("u1"),
    ):
        kept = view(memory.array((3, 4), dtype))
        assert place() not in range(other, other + 96)
        was = np.array(kept)
        memory.array((3, 4), dtype)[:] = 7
        np.testing.assert_array_equal(kept, was)
        del kept
    place((30, 40))
    assert place((3, 4)) == place((30, 40))
