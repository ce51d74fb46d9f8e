"""Built-in UDFs give the same numbers for CuPy arrays as for NumPy arrays."""

import functools

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from device_udfs import MODULES, cupy_is, sent
from stand_in import numpy_standing_in_for_cupy
from suites import examples
from udfdask.masks import DiskTemplate, circular, ring
from udfdask.udfs import (
    FEMUDF,
    ApplyMasksUDF,
    CoMUDF,
    CorrelationUDF,
    CrystallinityUDF,
    LogsumUDF,
    NoOpUDF,
    PickUDF,
    RadialFourierUDF,
    RadialProfileUDF,
    StdDevUDF,
    SumSigUDF,
    SumUDF,
    VirtualDetectorUDF,
)

SHAPE = (4, 6, 9, 10)
FRAME = {"centerX": 5, "centerY": 4, "imageSizeX": 10, "imageSizeY": 9}
MASKS = [
    functools.partial(circular, **FRAME, radius=3),
    functools.partial(ring, **FRAME, radius=4, radius_inner=2),
]
WHOLE = [MASKS[0], lambda: np.full((9, 10), -3)]
COMPLEX = [lambda: np.exp(1j * np.arange(90).reshape(9, 10))]
UDFS = {
    "sum": SumUDF,
    "sum as float32": lambda: SumUDF(dtype="float32"),
    "sumsig": SumSigUDF,
    "stddev": StdDevUDF,
    "pick": PickUDF,
    "logsum": LogsumUDF,
    "com": lambda: CoMUDF(cy=4, cx=5),
    "com, disk": lambda: CoMUDF(cy=4, cx=5, r=3, regression=1),
    "com, ring": lambda: CoMUDF(cy=4, cx=5, r=4, ri=2, scan_rotation=20),
    "masks": lambda: ApplyMasksUDF(MASKS),
    "integer masks": lambda: ApplyMasksUDF(WHOLE, use_sparse=False),
    "float32 masks": lambda: ApplyMasksUDF(MASKS, mask_dtype="float32", mask_count=2),
    "complex masks": lambda: ApplyMasksUDF(COMPLEX),
    "noop": NoOpUDF,
    "detector": lambda: VirtualDetectorUDF("ring", ri=2, ro=4),
    "detector, ellipse": lambda: VirtualDetectorUDF(
        "ring", ri=2, ro=4, stretch=1.4, stretch_angle=30
    ),
    "rectangle": lambda: VirtualDetectorUDF("rect", x=1, y=2, width=5, height=3),
    "profile": lambda: RadialProfileUDF(n_bins=3, r=4),
    "fourier": lambda: RadialFourierUDF(n_bins=2, max_order=3),
    "fourier, ellipse": lambda: RadialFourierUDF(r=4, max_order=3, stretch=1.4, stretch_angle=30),
    "fem": lambda: FEMUDF(center=(4, 5), rad_in=1, rad_out=4),
    "crystallinity": lambda: CrystallinityUDF(rad_in=1, rad_out=3, real_center=(4, 5), real_rad=2),
    "crystallinity, whole frame": lambda: CrystallinityUDF(rad_in=1, rad_out=3),
    "shifted masks": lambda: ApplyMasksUDF(WHOLE, shifts=(2, -1)),
}
CHUNKS = [
    ((2, 2), (6,), (9,), (10,)),
    ((4,), (4, 2), (4, 5), (10,)),
    ((4,), (6,), (1,) * 9, (10,)),
]
CORRECTIONS = ud.corrections.CorrectionSet(
    dark=np.linspace(0, 3, 90).reshape(9, 10), excluded_pixels=np.array([[2], [4]])
)


def data(dtype):
    """Return numbers that need all bits of their dtype."""
    dtype, rng = np.dtype(dtype), np.random.default_rng(7)
    if dtype.kind not in "iu":
        values = rng.normal(100, 10, SHAPE)
        return (values > 105) if dtype.kind == "b" else values.astype(dtype)
    limits = np.iinfo(dtype)
    native = dtype.newbyteorder("=")
    return rng.integers(limits.min, limits.max, SHAPE, native, endpoint=True).astype(dtype)


CASES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["uint8", "uint16", ">i2", "int32", "bool", "float32", "float64"]),
        "chunks": st.sampled_from(CHUNKS),
        "roi": st.sampled_from(["all", "some", "none"]),
        "corrected": st.booleans(),
        "native": st.sampled_from(["numpy", "cupy"]),
        "tile_bytes": st.sampled_from([600, 1 << 20]),
    }
)
ROIS = {"all": None, "some": np.arange(24).reshape(4, 6) % 5 > 1, "none": np.zeros((4, 6), bool)}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::udfdask.errors.UDFWarning")
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("name", UDFS)
@settings(deadline=None, max_examples=examples(15))
@given(case=CASES)
def test_the_same_numbers_on_a_device(name, module, case):
    lazy = da.from_array(data(case["dtype"]), chunks=case["chunks"])
    how = {"roi": ROIS[case["roi"]], "corrections": CORRECTIONS if case["corrected"] else None}
    wanted = ud.run_udf(lazy, UDFS[name](), **how).compute()
    with (
        cupy_is(module) as cupy,
        dask.config.set({"udfdask.device-tile-bytes": case["tile_bytes"]}),
    ):
        x = sent(cupy, lazy) if case["native"] == "cupy" else lazy
        found = ud.run_udf(x, UDFS[name](), backends="cupy", **how).compute()
    for key, value in found.items():
        assert value.dtype == wanted[key].dtype
        exact = value.dtype.kind in "iub" or (name.startswith("com") and key == "raw_com")
        if exact and not case["corrected"] and not case["dtype"].startswith(("int32", "f")):
            np.testing.assert_array_equal(value, wanted[key])
        else:
            size = np.nanmax(np.abs(wanted[key]), initial=1)
            np.testing.assert_allclose(value, wanted[key], rtol=1e-5, atol=1e-6 * size)


@pytest.mark.parametrize("name", sorted(set(UDFS) - {"pick", "noop"}))
def test_over_cupy_chunks_only_merged_results_come_to_the_host(name):
    """`get_results` needs them on the host, and they are small."""
    lazy = da.from_array(data("uint8"), chunks=(2, 6, 9, 10))
    with numpy_standing_in_for_cupy() as cupy:
        result = ud.run_udf(sent(cupy, lazy), UDFS[name]())
        buffer = next(iter(result.buffers))
        assert isinstance(result[buffer].compute(), cupy.ndarray)
        finished = name.startswith(("stddev", "logsum", "com", "profile"))
        assert cupy.ledger.bytes_to_host <= (24 * 3 * 8 if "com" in name else 90 * 3 * 8) * finished


def test_masks_are_sent_to_the_device_once():
    x = da.from_array(data("uint16"), chunks=(1, 2, 9, 10))
    with numpy_standing_in_for_cupy() as cupy:
        ud.run_udf(sent(cupy, x), ApplyMasksUDF(MASKS)).compute(scheduler="threads")
        # besides the data: a matrix of 90 pixels and 2 masks, in single or double precision
        assert cupy.ledger.bytes_to_device - x.nbytes in (90 * 2 * 4, 90 * 2 * 8)


@pytest.mark.full
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("native", ["numpy", "cupy"])
@pytest.mark.parametrize("log_scale", [True, False])
@pytest.mark.parametrize("chunks", [(2, 6, 24, 26), (4, 3, 7, 26), (1, 6, 24, 9)])
@pytest.mark.parametrize("tile_bytes", [3000, 1 << 20])
def test_disks_are_found_at_their_positions(module, native, log_scale, chunks, tile_bytes):
    """Test disks near the border, with shifts, and with some unknown shifts."""
    rng = np.random.default_rng(8)
    template, peaks = DiskTemplate(radius=3), [(7, 8), (18, 5)]
    shifts = rng.integers(-2, 3, (4, 6, 2)).astype("float64")
    y, x = np.ogrid[:24, :26]
    frames = rng.random((4, 6, 24, 26), dtype="float32")
    for place, (dy, dx) in zip(np.ndindex(4, 6), shifts.reshape(-1, 2), strict=True):
        for py, px in peaks:
            frames[place] += 50 * (np.hypot(y - py - dy, x - px - dx) < 3)
    shifts[1, 2] = np.nan
    lazy = da.from_array(frames, chunks=chunks)
    moved = ud.UDF.aux_data(shifts, kind="nav", extra_shape=(2,), dtype="float64")
    udf = CorrelationUDF(peaks, template, steps=3, zero_shift=moved, log_scale=log_scale)
    wanted = ud.run_udf(lazy, udf).compute()
    with cupy_is(module) as cupy, dask.config.set({"udfdask.device-tile-bytes": tile_bytes}):
        there = sent(cupy, lazy) if native == "cupy" else lazy
        found = ud.run_udf(there, udf, backends="cupy").compute()
    known = ~np.isnan(shifts[..., 0])
    expected = (np.array(peaks) + shifts[:, :, np.newaxis])[known]
    np.testing.assert_array_equal(found["centers"][known], expected)
    for name in ("centers", "refineds", "peak_values", "peak_elevations"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-4)
