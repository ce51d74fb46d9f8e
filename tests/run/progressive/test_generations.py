"""The record of which parameters each position was processed with."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import progressive_udfs as pu
import udfdask as ud
from progressive_cases import ROI, long_array
from udfdask.udfs import SumUDF

pytest.importorskip("distributed")

pytestmark = [pytest.mark.filterwarnings("ignore::udfdask.UDFWarning"), pytest.mark.point(29)]


def factors(snapshot, number=0):
    """The factor that the parameters of a snapshot say for each position; 0 for no position."""
    by_generation = [of_udfs[number].get("factor") for of_udfs in snapshot.parameters]
    generations = snapshot.generations
    assert generations.dtype == np.int64
    return np.where(generations < 0, 0, np.take(by_generation, np.maximum(generations, 0)))


def test_every_snapshot_says_what_its_values_were_made_with(options):
    iterator = ud.run_udf_iter(long_array(40), [SumUDF(), pu.Scaled(1)], **options)
    for snapshot in iterator:
        if snapshot.n_merged % 10 == 0:
            iterator.update_parameters([{}, {"factor": 1 + snapshot.n_merged}])
        np.testing.assert_array_equal(factors(snapshot, 1), snapshot.buffers[1]["factor"])
        np.testing.assert_array_equal(snapshot.generations >= 0, snapshot.damage)
    assert [of_udfs[1]["factor"] for of_udfs in snapshot.parameters] == [1, 11, 21, 31]
    assert snapshot.parameters[2][0] == {"dtype": None}
    assert set(snapshot.generations.ravel()) >= {0, 1, 2}


@given(changes=st.sets(st.integers(0, 15)))
def test_of_a_region_whenever_parameters_change(changes):
    """An earlier snapshot does not change when parameters do."""
    x = da.ones((6, 5, 4, 3), chunks=((2, 1, 3), (3, 2), 4, 3))
    iterator = ud.run_udf_iter(x, pu.Scaled(1), roi=ROI, scheduler="synchronous")
    seen = []
    for count, snapshot in enumerate(iterator):
        if count in changes:
            iterator.update_parameters([{"factor": 2 + count}])
        seen.append((snapshot, snapshot.generations, snapshot.parameters))
    for snapshot, generations, parameters in seen:
        np.testing.assert_array_equal(snapshot.generations, generations)
        assert snapshot.parameters == parameters
        np.testing.assert_array_equal(factors(snapshot), snapshot.buffers[0]["factor"])
        assert (generations[~snapshot.damage] == -1).all()
    assert [p["factor"] for (p,) in iterator._run.live.generations] == [
        1,
        *(2 + count for count in sorted(changes) if count < len(seen)),
    ]


class Restless(ud.UDF):
    """Changes its own parameters after two signal chunks of the second chunk."""

    promises = ud.Promises(adds_signal_parts=True)
    iterators = []
    seen = []

    def __init__(self, factor):
        super().__init__(factor=factor)

    def get_result_buffers(self):
        return {"sum": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.sum[:] += self.params.factor * tile.sum(axis=(1, 2))
        if self.meta.coordinates[0, 0] == 1:
            self.seen.append(self.params.factor)
            if len(self.seen) == 2:
                self.iterators[0].update_parameters([{"factor": 100}])


def test_a_frame_that_was_made_with_two_says_so(monkeypatch):
    """Each signal chunk has its own task."""
    x = da.ones((4, 1, 8, 2), chunks=(1, 1, 1, 2))
    iterator = ud.run_udf_iter(x, Restless(1), scheduler="synchronous")
    monkeypatch.setattr(Restless, "iterators", [iterator])
    monkeypatch.setattr(Restless, "seen", [])
    *_, last = iterator
    sums, generations = last.buffers[0]["sum"].ravel(), last.generations.ravel()
    mixed = ~np.isin(sums, (16, 1600))
    assert mixed[1]
    np.testing.assert_array_equal(generations, np.where(mixed, -2, np.where(sums == 16, 0, 1)))
