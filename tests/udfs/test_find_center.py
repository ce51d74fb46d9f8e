"""The center of patterns whose center is known."""

import warnings

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from diffraction_patterns import make_pattern
from suites import examples
from udfdask import ArgumentTypeError, ArgumentValueError, Axis
from udfdask.demo import make_recording
from udfdask.io import open_file
from udfdask.udfs import SumSigUDF, SumUDF, VirtualDetectorUDF, find_center

SIG = (64, 80)


def distance_from(center, sig=SIG):
    y, x = np.indices(sig)
    return np.hypot(y - center[0], x - center[1])


def disk(center):
    return 100 * np.clip(6.5 - distance_from(center), 0, 1)


def rings(center):
    d = distance_from(center)
    heights = [(0, 500), (9, 20), (16, 12), (23, 8)]
    return sum(height * np.exp(-((d - r) ** 2) / 3) for r, height in heights)


def spots(center):
    total = np.zeros(SIG)
    for i in range(-4, 5):
        for j in range(-4, 5):
            place = center + i * np.array([7.3, -1.2]) + j * np.array([1.7, 8.1])
            total += 100 * np.exp(-(distance_from(place) ** 2) / 3 - (i * i + j * j) / 6)
    return total


def behind_a_beam_stop(center):
    pattern = rings(center)
    y, x = (int(c) for c in center)
    pattern[y - 3 : y + 4, : x + 4] = 0
    return pattern


PATTERNS = [disk, rings, spots, behind_a_beam_stop]
CENTERS = st.tuples(st.floats(26, 40), st.floats(31, 51)).map(np.array)


@pytest.mark.parametrize("make", PATTERNS)
@settings(max_examples=examples(40, 5))
@given(center=CENTERS, seed=st.integers(0, 99))
def test_a_part_of_a_pixel(make, center, seed):
    clean = make(center)
    allowed = 0.15 if make is behind_a_beam_stop else 0.05
    np.testing.assert_allclose(find_center(clean), center, atol=allowed)
    noisy = np.random.default_rng(seed).poisson(clean + 3)
    noisy[3, 5] = 10**6  # a hot pixel
    np.testing.assert_allclose(find_center(noisy), center, atol=allowed + 0.15)


LIMITS = {  # in pixels: the median of the errors, and the largest one
    "zone axis": (0.1, 0.3),
    "tilted": (0.2, 2),
    "off-center": (0.1, 0.3),
    "beam stop": (0.6, 4),
    "rings": (0.2, 3),
    "saturated": (0.4, 1.5),
}


@pytest.mark.parametrize("family", LIMITS)
def test_simulated_patterns(family):
    """Errors above 2 pixels come with a warning."""
    errors, silent = [], []
    for seed in range(200, 200 + examples(20, 5)):
        pattern, center = make_pattern(family, seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            errors.append(np.hypot(*(find_center(pattern) - center)))
        if not caught:
            silent.append(errors[-1])
    median, largest = LIMITS[family]
    assert np.median(errors) < median
    assert max(errors) < largest
    assert max(silent, default=0) < 2


def test_a_crystal_without_background_has_many_centers():
    """Equal disks on a lattice: the middle between two of them is a center of symmetry too."""
    pattern = np.zeros((64, 80))
    y, x = np.mgrid[4:64:12, 4:80:12]
    pattern[y, x] = 1000
    with pytest.warns(ud.errors.UDFWarning, match="not sure"):
        find_center(np.random.default_rng(0).poisson(pattern))


def test_plain_floats():
    found = find_center(disk((30, 40.5)).astype("float32"))
    assert isinstance(found, tuple)
    assert [type(c) for c in found] == [float, float]


def test_a_beam_at_the_edge_of_the_frame():
    np.testing.assert_allclose(find_center(rings(np.array([9.3, 66.8]))), (9.3, 66.8), atol=0.1)


def test_masked_pixels_are_not_used():
    center = np.array([30.2, 44.7])
    spoilt, mask = rings(center), np.ones(SIG, bool)
    mask[:, 50:58] = False
    spoilt[~mask] = 1e4
    for pattern in (spoilt, np.where(mask, spoilt, np.nan), np.where(mask, spoilt, -np.inf)):
        np.testing.assert_allclose(find_center(pattern, mask=mask), center, atol=0.1)
        if not np.isfinite(pattern).all():
            np.testing.assert_allclose(find_center(pattern), center, atol=0.1)
    masked = np.ma.masked_array(spoilt, ~mask)
    np.testing.assert_allclose(find_center(masked), center, atol=0.1)


def test_neither_offset_nor_scale_matters():
    pattern = rings(np.array([30.2, 44.7]))
    np.testing.assert_allclose(find_center(pattern * 1e-9 - 5e-7), find_center(pattern), atol=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("sig", [(1500, 1100), (700, 2300)])
def test_large_patterns_are_binned_first(sig):
    center = np.array(sig) / 2 + (31.3, -17.8)
    d = distance_from(center, sig)
    pattern = np.exp(-((d / 20) ** 2)) + 0.1 * np.exp(-(((d - 200) / 9) ** 2))
    np.testing.assert_allclose(find_center(pattern), center, atol=0.05)


@pytest.mark.parametrize("shape", [(3, 3), (1, 9), (5, 4)])
def test_small_patterns(shape):
    pattern = np.zeros(shape)
    place = tuple(n // 2 for n in shape)
    pattern[place] = 7
    np.testing.assert_allclose(find_center(pattern), place, atol=0.3)
    assert find_center(pattern, method="com") == place


def test_the_center_of_mass():
    pattern = disk(np.array([20.25, 50.5]))
    np.testing.assert_allclose(find_center(pattern, method="com"), (20.25, 50.5), atol=0.03)
    offset = pattern + 10
    far = find_center(offset, method="com")
    assert abs(far[1] - 50.5) > 3  # the background pulls it to the middle of the frame
    for start in (None, (24, 46)):
        near = find_center(offset, method="com", radius=9, start=start)
        np.testing.assert_allclose(near, (20.25, 50.5), atol=0.05)
    mask = np.ones(SIG, bool)
    mask[:, :50] = False
    assert find_center(pattern, method="com", mask=mask)[1] > 52


@pytest.mark.parametrize("method", ["symmetry", "com"])
def test_the_sum_of_a_scan(method):
    """The demo has its beam at the middle of the frame."""
    recording = make_recording((6, 8), (64, 48), chunks=(3, 8, -1, -1))
    axes = [Axis(name=n, unit="mrad", scale=0.5, offset=-7) for n in ("a", "b", "y", "x")]
    total = ud.run_udf(recording, SumUDF(), axes=axes)["intensity"]
    radius = {"radius": 8} if method == "com" else {}
    cy, cx = find_center(total, method=method, **radius)
    np.testing.assert_allclose((cy, cx), (32, 24), atol=0.3)
    assert find_center(total.compute(), method=method, **radius) == (cy, cx)
    dark = ud.run_udf(recording, VirtualDetectorUDF("ring", cy=cy, cx=cx, ri=8, ro=20))
    assert dark["intensity"].compute().all()


def test_data_of_other_libraries():
    xr, hs = pytest.importorskip("xarray"), pytest.importorskip("hyperspy.api")
    pattern = rings(np.array([30.2, 44.7]))
    want = find_center(pattern)
    labels = {"y": np.arange(64) * 0.1, "x": np.arange(80) * 0.1}
    array = xr.DataArray(pattern, dims=("y", "x"), coords=labels)
    signal = hs.signals.Signal2D(pattern)
    signal.axes_manager[0].scale = 0.1
    lazy = da.from_array(pattern, chunks=(20, 80))
    for given_ in (array, array.chunk(x=20), signal, signal.as_lazy(), lazy, pattern.tolist()):
        np.testing.assert_allclose(find_center(given_), want, atol=1e-9)


def test_sparse_patterns():
    sparse = pytest.importorskip("sparse")
    pattern = np.where(disk(np.array([30.2, 44.7])) > 0, disk(np.array([30.2, 44.7])), 0)
    assert find_center(sparse.COO.from_numpy(pattern)) == find_center(pattern)


PATTERN = rings(np.array([30.2, 44.7]))


@pytest.mark.parametrize(
    ("pattern", "options", "error"),
    [
        (np.full((9, 9), 3), {}, ArgumentValueError),
        (np.zeros((9, 9)), {"method": "com"}, ArgumentValueError),
        (np.full((9, 9), np.nan), {}, ArgumentValueError),
        (np.ones((0, 9)), {}, ArgumentValueError),
        (np.ones((2, 9, 9)), {}, ArgumentValueError),
        (np.ones(9), {}, ArgumentValueError),
        (5, {}, ArgumentValueError),
        (np.ones((9, 9), complex), {}, ArgumentTypeError),
        ("pattern.npy", {}, ArgumentTypeError),
        (None, {}, ArgumentTypeError),
        ([[1, 2], [3]], {}, ArgumentTypeError),
        (np.arange(900.0).reshape(30, 30), {}, ArgumentValueError),
        (PATTERN, {"method": "center"}, ArgumentValueError),
        (PATTERN, {"mask": np.ones((3, 3), bool)}, ArgumentValueError),
        (PATTERN, {"mask": np.zeros(SIG, bool)}, ArgumentValueError),
        (PATTERN, {"mask": np.ones(SIG)}, ArgumentTypeError),
        (PATTERN, {"radius": 5}, ArgumentValueError),
        (PATTERN, {"start": (5, 5)}, ArgumentValueError),
        (PATTERN, {"method": "com", "start": (5, 5)}, ArgumentValueError),
        (PATTERN, {"method": "com", "radius": -1}, ArgumentValueError),
        (PATTERN, {"method": "com", "radius": 5, "start": 5}, ArgumentTypeError),
        (PATTERN, {"method": "com", "radius": 5, "start": (500, 5)}, ArgumentValueError),
        (-PATTERN, {"method": "com"}, ArgumentValueError),
    ],
)
def test_what_has_no_center(pattern, options, error):
    with pytest.raises(error):
        find_center(pattern, **options)


def test_noise_has_no_center():
    with pytest.raises(ArgumentValueError, match="no center of symmetry"):
        find_center(np.random.default_rng(3).random((40, 40)))


def test_what_is_not_one_image_gets_a_remedy(tmp_path):
    np.save(tmp_path / "scan.npy", np.ones((2, 3, 8, 8)))
    opened = open_file(tmp_path / "scan.npy")
    sum_first = r"find_center\(run_udf\(opened, SumUDF\(\)\)\['intensity'\]\)"
    for wrong in (opened, ud.run_udf(opened, SumSigUDF())):
        with pytest.raises(ArgumentTypeError, match=f"one image, not .* run a SumUDF.*{sum_first}"):
            find_center(wrong)
    with pytest.raises(ArgumentValueError, match=sum_first):
        find_center(opened.array)
    total = ud.run_udf(opened, SumUDF())
    for wrong in (total, total.compute()):
        with pytest.raises(ArgumentTypeError, match=r"find_center\(result\['intensity'\]\)"):
            find_center(wrong)
