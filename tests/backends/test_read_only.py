"""Law 9 for sparse data: a UDF that changes its tile does not change those of other UDFs."""

import contextlib
import functools
import itertools

import dask.array as da
import numpy as np
import pytest
import sparse

import udfdask as ud
from backend_udfs import Wants
from chunk_backends import MATRICES, block_in
from udfdask.backends.table import to_host

SPARSE = sorted(ud.UDF.CPU_BACKENDS & ud.UDF.SPARSE_BACKENDS)
PARTS = ("data", "indices", "indptr", "coords", "row", "col")
DATA = np.random.default_rng(0).poisson(0.7, (6, 20)).astype("f4")


def on_parts(method, *arguments):
    """Return a function that calls a method of SciPy that works in place."""
    return lambda tile: getattr(tile, method)(*arguments)


def doubled(tile):
    if not isinstance(tile, sparse.SparseArray):  # those make a new one
        tile *= 2


def one_pixel(tile):
    tile[(0,) * tile.ndim] = 7


def other_values(tile):
    tile.data = np.zeros_like(tile.data)


def zeros(tile, part):
    arrays = getattr(tile, part)
    for array in arrays if isinstance(arrays, tuple) else (arrays,):
        array[...] = 0


ATTACKS = {
    "doubled": doubled,
    "one pixel": one_pixel,
    "other values": other_values,
    **{f"zeros in {part}": functools.partial(zeros, part=part) for part in PARTS},
    **{name: on_parts(name) for name in ("sort_indices", "sum_duplicates", "eliminate_zeros")},
    "prune": on_parts("prune"),
    "resize": on_parts("resize", (1, 1)),  # another UDF's tile would be read beyond its end
    "setdiag": on_parts("setdiag", 5),
}


def held_in(native):
    """Return a block that the test keeps, and an array of this block."""
    held, meta = block_in(DATA, native, 1), block_in(DATA[:0], native, 1)
    return held, da.from_array(DATA, chunks=-1).map_blocks(lambda _: held, meta=meta)


class Attacks(Wants):
    """Attack the first tile only: SciPy may leave it in an invalid state."""

    def __init__(self, offers, method="tile", attack=None, **same):
        ud.UDF.__init__(self, offers=offers, method=method, write=False, dtype=None, attack=attack)

    def _look(self, data, by_frame):
        # if a format does not have the operation, the attack has failed as well
        with contextlib.suppress(
            AttributeError, TypeError, ValueError, LookupError, NotImplementedError
        ):
            self.params.attack(data)


@pytest.mark.filterwarnings("ignore")  # of SciPy, which finds these ways slow
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize(
    "native", ["numpy", ud.UDF.BACKEND_SPARSE_GCXS, ud.UDF.BACKEND_SCIPY_CSR_ARRAY]
)
def test_whatever_is_done_to_a_tile(native, attack):
    held, array = held_in(native)
    asked = []
    for backend, method in itertools.product(SPARSE, ("tile", "frame")):
        asked += [Attacks(backend, method, attack), Wants(backend, method)]
    done = ud.compute(*ud.run_udf(array, asked, sig_dims=1), scheduler="synchronous")
    for found in done[1::2]:
        np.testing.assert_array_equal(found["seen"], DATA)
    np.testing.assert_array_equal(to_host(held), DATA)


@pytest.mark.parametrize("backend", sorted(set(SPARSE) - {ud.UDF.BACKEND_SPARSE_DOK}))
def test_the_values_of_a_tile_are_read_only(backend):
    class Writes(Wants):
        def _look(self, data, by_frame):
            data.data *= 2

    array = da.from_array(DATA, chunks=(3, 20))
    with pytest.raises(ValueError, match="read-only") as raised:
        ud.run_udf(array, Writes(backend), sig_dims=1).compute(scheduler="synchronous")
    assert any("raised in Writes.process_tile" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("method", ["tile", "frame", "partition"])
@pytest.mark.parametrize(
    "native", ["numpy", ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_GCXS, *MATRICES]
)
def test_writable_input_is_private(native, method):
    held, array = held_in(native)
    asked = []
    for backend in (*SPARSE, "numpy"):
        asked += [Wants(backend, method, write=True), Wants(backend, method)]
    done = ud.compute(*ud.run_udf(array, asked, sig_dims=1), scheduler="synchronous")
    for found, factor in zip(done, itertools.cycle([2, 1])):
        np.testing.assert_array_equal(found["seen"], factor * DATA)
    np.testing.assert_array_equal(to_host(held), DATA)
