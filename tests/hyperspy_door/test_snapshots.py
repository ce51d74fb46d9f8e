"""Progressive runs over signals."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from signal_cases import EveryKindUDF, facts_of_axes
from udf_zoo import Rows
from udfdask.udfs import ApplyMasksUDF, SumSigUDF, SumUDF

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

serial = {"scheduler": "synchronous"}


@pytest.fixture
def scan():
    values = np.random.default_rng(5).integers(0, 9, size=(4, 3, 2, 5)).astype("float64")
    signal = hs.signals.Signal2D(da.from_array(values, chunks=(1, 3, 2, 5))).as_lazy()
    signal.axes_manager[0].scale, signal.axes_manager[0].units = 0.5, "nm"
    return signal


def test_the_last_snapshot_is_the_result(scan):
    udfs = [EveryKindUDF(), SumUDF()]
    *_, last = scan.udf.run_udf_iter(udfs, **serial)
    expected = scan.udf.run_udf(udfs, lazy_output=False, show_progressbar=False)
    assert len(last.buffers) == 2
    for found, result in zip(last.buffers, expected, strict=True):
        assert list(found) == list(result)
        for name, signal in result.items():
            assert type(found[name]) is type(signal)
            np.testing.assert_array_equal(found[name].data, signal.data)
            assert facts_of_axes(found[name]) == facts_of_axes(signal)
            assert found[name].metadata.as_dictionary() == signal.metadata.as_dictionary()


def test_damage_is_a_navigation_signal(scan):
    counts = []
    for n, snapshot in enumerate(scan.udf.run_udf_iter(SumSigUDF(), **serial), start=1):
        assert (snapshot.n_merged, snapshot.n_chunks) == (n, 4)
        damage = snapshot.damage
        assert damage.axes_manager.navigation_shape == (3, 4)
        assert damage.axes_manager[0].scale == 0.5
        valid = snapshot.buffers[0].valid_mask["intensity"]
        np.testing.assert_array_equal(valid.data, damage.data)
        counts.append(int(damage.data.sum()))
        assert snapshot.buffers[0] is snapshot.buffers[:][0]
    assert counts == [3, 6, 9, 12]


class WeightedUDF(Rows):
    """The sum of a frame times its weight."""

    def __init__(self, weights):
        super().__init__(weights=weights)

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() * self.params.weights


def test_changes_of_parameters_are_aligned(scan):
    axes = scan.axes_manager
    axes[0].name, axes[1].name, axes[2].name, axes[3].name = "x", "y", "kx", "ky"
    weights = np.arange(12.0).reshape(4, 3)
    given = hs.signals.BaseSignal(
        weights.T, axes=[{"name": n, "size": k} for n, k in [("x", 3), ("y", 4)]]
    ).T
    mask = hs.signals.Signal2D(np.arange(10).reshape(2, 5) > 4)
    udfs = [WeightedUDF(ud.UDF.aux_data(np.ones((4, 3)), kind="nav")), ApplyMasksUDF([~mask.data])]
    snapshots = scan.udf.run_udf_iter(udfs, **serial)
    weights_of_signal = ud.UDF.aux_data(given, kind="nav")
    snapshots.update_parameters([{"weights": weights_of_signal}, {"mask_factories": [mask]}])
    *_, last = snapshots
    frames = scan.data.compute()
    found, products = (buffers for buffers in last.buffers)
    np.testing.assert_allclose(found["sums"].data, weights * frames.sum(axis=(2, 3)))
    np.testing.assert_allclose(
        products["intensity"].data[..., 0], frames[..., mask.data].sum(axis=-1)
    )
