"""Whatever comes with labels is aligned by them: scan, frames and components of vectors.

Scan and frames are square, so that no shape shows a wrong order.
"""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import udfdask as ud
import udfdask.xarray
from udf_zoo import Rows
from udfdask.corrections import CorrectionSet
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import ApplyMasksUDF, CoMUDF, NeighborSimilarityUDF, PickUDF, SumUDF
from udfdask.udfs import VirtualDetectorUDF as Detector

RNG = np.random.default_rng(0)
DATA = RNG.integers(0, 99, (4, 4, 6, 6)).astype("uint16")
X = da.from_array(DATA, chunks=(2, 3, 6, 6))
COORDS = {"y": np.arange(4) * 0.5, "x": list("abcd"), "ky": np.arange(6.0), "kx": np.arange(6.0)}
ARRAY = xr.DataArray(X, dims=tuple(COORDS), coords=COORDS)
SIG = ("ky", "kx")
SCAN = {dim: COORDS[dim] for dim in "yx"}
FRAME = {dim: COORDS[dim] for dim in SIG}
WEIGHTS = RNG.random((4, 4))
SHIFTS = RNG.integers(-2, 3, (4, 4, 2)).astype(float)
PLANE = RNG.random((6, 6))
MASK = PLANE > 0.6


class Weights(Rows):
    """Sums with weights for each frame, and for each pixel."""

    def __init__(self, nav, sig):
        super().__init__(nav=nav, sig=sig)

    def process_frame(self, frame):
        self.results.sums[:] = self.params.nav * (frame * self.params.sig).sum()


def scan_map(values):
    return xr.DataArray(values, dims=("y", "x"), coords=SCAN)


def vectors(values):
    return xr.DataArray(
        values, dims=("y", "x", "component"), coords={**SCAN, "component": ["y", "x"]}
    )


def frame(values):
    return xr.DataArray(values, dims=SIG, coords=FRAME)


def aux(nav, sig):
    return Weights(ud.UDF.aux_data(nav, kind="nav"), ud.UDF.aux_data(sig, kind="sig"))


# Each makes UDFs and options of a run from a map of weights, vectors, a frame and a mask.
USES = {
    "aux data": lambda w, v, f, m: (aux(w, f), {}),
    "centers": lambda w, v, f, m: (Detector("disk", r=2, centers=v + 3), {}),
    "centers of a CoM": lambda w, v, f, m: (CoMUDF(r=2, centers=v + 3), {}),
    "shifts": lambda w, v, f, m: (ApplyMasksUDF([MASK], shifts=v), {}),
    "descan": lambda w, v, f, m: (SumUDF(), {"descan": v}),
    "dark": lambda w, v, f, m: (SumUDF(), {"corrections": CorrectionSet(dark=f)}),
    "gain": lambda w, v, f, m: (SumUDF(), {"corrections": CorrectionSet(gain=f)}),
    "excluded": lambda w, v, f, m: (SumUDF(), {"corrections": CorrectionSet(excluded_pixels=m)}),
    "roi": lambda w, v, f, m: (SumUDF(), {"roi": w > 0.5}),
    "mask": lambda w, v, f, m: (Detector(m), {}),
    "masks": lambda w, v, f, m: (ApplyMasksUDF([m, f]), {}),
    "similarity": lambda w, v, f, m: (NeighborSimilarityUDF(mask=m), {}),
}
CHANGES = {
    "same": lambda a: a,
    "transposed": lambda a: a.transpose(*a.dims[::-1]),
    "reversed": lambda a: a.isel({dim: slice(None, None, -1) for dim in a.dims}),
    "shuffled": lambda a: a.isel({a.dims[0]: [2, 0, 3, 1, *range(4, a.sizes[a.dims[0]])]}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_values_are_aligned(use, change):
    udf, options = use(WEIGHTS, SHIFTS, PLANE, MASK)
    expected = ud.run_udf(X, udf, **options)
    labeled = (scan_map(WEIGHTS), vectors(SHIFTS), frame(PLANE), frame(MASK))
    udf, options = use(*map(change, labeled))
    found = ARRAY.udf.run_udf(udf, sig_dims=SIG, **options)
    for name in expected:
        np.testing.assert_allclose(found[name].values, expected[name].compute())
    if isinstance(udf, (CoMUDF, NeighborSimilarityUDF)):
        return  # their results depend on the order of the axes
    moved = ARRAY.transpose("kx", "x", "ky", "y")
    found = moved.udf.run_udf(udf, sig_dims=SIG, **options)
    for name in expected:
        dims = [dim for dim in ARRAY.dims if dim in found[name].dims]
        values = found[name].transpose(*dims, ...).values
        np.testing.assert_allclose(values, expected[name].compute(), rtol=1e-6)


@pytest.mark.parametrize("lazy", [False, True])
def test_lazy_values_are_aligned_in_tasks(lazy):
    given = (scan_map(WEIGHTS), frame(PLANE))
    given = [CHANGES["reversed"](a.chunk() if lazy else a) for a in given]
    expected = WEIGHTS * (DATA * PLANE).sum(axis=(2, 3))
    found = ARRAY.udf.run_udf(aux(*given), sig_dims=SIG)["sums"]
    np.testing.assert_allclose(found.values, expected)
    (*_, last) = ARRAY.udf.run_udf_iter(aux(*given), sig_dims=SIG, scheduler="synchronous")
    np.testing.assert_allclose(last.buffers[0]["sums"].values, expected)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_of_parameters_are_aligned(change):
    start = aux(scan_map(np.ones((4, 4))), frame(np.ones((6, 6))))
    snapshots = ARRAY.udf.run_udf_iter([start, ApplyMasksUDF([~MASK])], sig_dims=SIG)
    changed = aux(change(scan_map(WEIGHTS)), change(frame(PLANE)))._kwargs
    snapshots.update_parameters([changed, {"mask_factories": [change(frame(MASK))]}])
    *_, last = snapshots
    sums, products = last.buffers
    np.testing.assert_allclose(sums["sums"], WEIGHTS * (DATA * PLANE).sum(axis=(2, 3)), rtol=1e-6)
    np.testing.assert_array_equal(products["intensity"][..., 0], DATA[..., MASK].sum(axis=-1))


def test_values_of_one_axis_are_repeated():
    lines = scan_map(WEIGHTS)[:, 0].drop_vars("x")
    found = ARRAY.udf.run_udf(aux(lines, frame(PLANE)), sig_dims=SIG)["sums"].values
    np.testing.assert_allclose(found, WEIGHTS[:, :1] * (DATA * PLANE).sum(axis=(2, 3)))


def run_with(use, given, sig_dims=SIG):
    udf, options = use(given)
    return ARRAY.udf.run_udf(udf, sig_dims=sig_dims, **options)


VECTORS = {
    "centers": lambda v: (Detector("disk", r=2, centers=v + 3), {}),
    "shifts": lambda v: (ApplyMasksUDF([MASK], shifts=v), {}),
    "descan": lambda v: (SumUDF(), {"descan": v}),
}


@pytest.mark.parametrize("use", VECTORS.values(), ids=VECTORS)
@pytest.mark.parametrize("names", [["x", "y"], ["kx", "ky"], ["dx", "dy"]])
def test_components_are_found_by_name(use, names):
    udf, options = use(SHIFTS)
    expected = ud.run_udf(X, udf, **options)
    swapped = vectors(SHIFTS).sel(component=["x", "y"]).assign_coords(component=names)
    for given in (swapped, swapped.transpose("component", ...), swapped.chunk()):
        udf, options = use(given)
        found = ARRAY.udf.run_udf(udf, sig_dims=SIG, **options)
        for name in expected:
            np.testing.assert_array_equal(found[name].values, expected[name].compute())


@pytest.mark.parametrize("use", VECTORS.values(), ids=VECTORS)
def test_components_that_are_not_understood(use):
    with pytest.raises(ud.ArgumentValueError, match="y and x"):
        run_with(use, vectors(SHIFTS).assign_coords(component=["left", "up"]))
    with pytest.raises(ud.ArgumentValueError, match=r"sig_dims=\('ky', 'kx'\)"):
        run_with(use, vectors(SHIFTS), SIG[::-1])


LABELED = vectors(SHIFTS).drop_vars("component")


def total(descan, array=ARRAY, sig_dims=SIG):
    return array.udf.run_udf(SumUDF(), sig_dims=sig_dims, descan=descan)["intensity"].values


def test_shifts_of_one_signal_axis():
    spectra = ARRAY.isel(ky=0)
    expected = total(LABELED[..., :1], spectra, "kx")
    for shifts in (LABELED[..., 0], SHIFTS[..., 0]):
        np.testing.assert_array_equal(total(shifts, spectra, "kx"), expected)


def test_shifts_that_are_own_results():
    com = ARRAY.udf.run_udf(CoMUDF(), sig_dims=SIG)
    with raise_if_dask_computes():
        found = ARRAY.udf.run_udf(PickUDF(), sig_dims=SIG, descan=com["raw_shifts"])
    raw = ud.run_udf(X, CoMUDF())["raw_shifts"]
    expected = ud.run_udf(X, PickUDF(), descan=raw)["intensity"].compute()
    np.testing.assert_array_equal(found["intensity"].values, expected)


def test_shifts_in_all_methods():
    right = ud.run_udf(X, SumUDF(), descan=SHIFTS)["intensity"].compute()
    options = {"sig_dims": SIG, "descan": LABELED.transpose("component", "x", "y")}
    assert "descans" in dict(ARRAY.udf.explain(SumUDF(), **options).lines)
    (*_, last) = ARRAY.udf.run_udf_iter(SumUDF(), scheduler="synchronous", **options)
    np.testing.assert_array_equal(last.buffers[0]["intensity"].values, right)
    np.testing.assert_array_equal(total(LABELED, ARRAY.compute()), right)


@pytest.mark.parametrize(
    "shifts",
    [
        LABELED.rename(component="other").isel(other=0),
        LABELED.rename(y="z"),
        LABELED.isel(component=[0, 1, 0]),
        LABELED.isel(y=slice(1, None)),
        LABELED.assign_coords(x=list("abcz")),
        LABELED.to_dataset(name="raw"),
    ],
)
def test_shifts_that_do_not_fit(shifts):
    with pytest.raises(ud.UDFError):
        total(shifts)


@pytest.mark.parametrize(
    "use",
    [
        lambda: (aux(scan_map(WEIGHTS).assign_coords(y=range(9, 13)), PLANE), {}),
        lambda: (aux(scan_map(WEIGHTS)[:3], PLANE), {}),
        lambda: (aux(WEIGHTS, frame(PLANE).rename(ky="q")), {}),
        lambda: (SumUDF(), {"corrections": CorrectionSet(dark=frame(PLANE).rename(ky="q"))}),
        lambda: (
            SumUDF(),
            {"corrections": CorrectionSet(gain=frame(PLANE).assign_coords(kx=range(9, 15)))},
        ),
    ],
)
def test_values_that_do_not_fit(use):
    udf, options = use()
    with pytest.raises(ud.ArgumentValueError):
        ARRAY.udf.run_udf(udf, sig_dims=SIG, **options)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: m.chunk(), ud.ArgumentTypeError),
        (lambda m: m.to_dataset(name="a"), ud.ArgumentTypeError),
        (lambda m: [m], ud.ArgumentTypeError),
        (lambda m: m.rename(kx="qx"), ud.ArgumentValueError),
        (lambda m: m[0], ud.ArgumentValueError),
        (lambda m: m[:, 1:], ud.ArgumentValueError),
        (lambda m: m.assign_coords(kx=m["kx"] + 1), ud.ArgumentValueError),
        (lambda m: m * 2, ud.ArgumentValueError),
    ],
    ids="lazy dataset list renamed row cropped shifted weights".split(),
)
def test_masks_that_do_not_fit(change, error):
    with raise_if_dask_computes(), pytest.raises(error):
        ARRAY.udf.run_udf(Detector(change(frame(MASK))), sig_dims=SIG)


def test_names_that_xarray_made_up_mean_nothing():
    given = aux(xr.DataArray(WEIGHTS), xr.DataArray(PLANE))
    found = ARRAY.udf.run_udf(given, sig_dims=SIG)["sums"].values
    np.testing.assert_allclose(found, WEIGHTS * (DATA * PLANE).sum(axis=(2, 3)))
    dark = ARRAY.udf.run_udf(
        SumUDF(), sig_dims=SIG, corrections=CorrectionSet(dark=xr.DataArray(PLANE))
    )
    np.testing.assert_allclose(dark["intensity"], (DATA - PLANE).sum(axis=(0, 1)), rtol=1e-5)


def test_without_the_accessor_other_orders_are_refused():
    axes = [ud.Axis(name=name) for name in COORDS]
    for options in (
        {"udf": aux(scan_map(WEIGHTS).T, PLANE)},
        {"udf": aux(WEIGHTS, frame(PLANE).T)},
        {"udf": SumUDF(), "corrections": CorrectionSet(dark=frame(PLANE).T)},
    ):
        with pytest.raises(ud.ArgumentValueError, match="transpose the values"):
            ud.run_udf(X, axes=axes, **options)
