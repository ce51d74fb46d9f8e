"""Runs over CuPy chunks, and CuPy UDFs over NumPy chunks, with the stand-in for CuPy."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from device_udfs import MODULES, Both, Frames, Partitions, Parts, cupy_is, sent
from udfdask.backends.table import to_host
from udfdask.corrections import Descan
from udfdask.udfs import SumSigUDF

DATA = np.random.default_rng(3).integers(0, 200, (5, 6, 7, 8))
ROI = np.random.default_rng(4).random((5, 6)) > 0.6
NOTHING = np.zeros((5, 6), bool)
CHUNKS = [
    ((2, 3), (6,), (7,), (8,)),
    ((5,), (4, 2), (3, 4), (8,)),
    ((1,) * 5, (3, 3), (7,), (5, 3)),
    ((5,), (6,), (1,) * 7, (8,)),
]
DTYPES = ["uint8", "uint16", ">u2", "int32", "float32", "float64", "bool"]
UDFS = {
    "tiles": lambda offers: [Both(offers)],
    "a part of the signal a task": lambda offers: [Parts(offers), Parts(offers, native=True)],
    "all": lambda offers: [Both(offers), Frames(offers), Partitions(offers), SumSigUDF()],
}
CORRECTIONS = ud.corrections.CorrectionSet(
    dark=np.linspace(0, 5, 56).reshape(7, 8),
    gain=np.linspace(0.5, 2, 56).reshape(7, 8),
    excluded_pixels=np.array([[0, 0, 3, 3, 6], [0, 4, 4, 5, 7]]),
)

SHIFTS = np.random.default_rng(5).uniform(-3, 3, (5, 6, 2))
DESCANS = {
    "whole pixels": Descan(SHIFTS),
    "parts of a pixel": Descan(SHIFTS, subpixel=True, fill=2),
    "lazy": da.from_array(SHIFTS, chunks=2),
}


def computed(results):
    return [{k: (dask.compute(r[k])[0], r[k]._meta) for k in r} for r in results]


CASES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(DTYPES),
        "chunks": st.sampled_from(CHUNKS),
        "roi": st.sampled_from([None, ROI, NOTHING]),
        "tile_bytes": st.sampled_from([500, 10_000, 1 << 20]),
        "which": st.sampled_from(sorted(UDFS)),
        "corrections": st.booleans(),
        "descan": st.sampled_from([None, *DESCANS]),
        "native": st.sampled_from(["numpy", "cupy"]),
    }
)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::udfdask.errors.UDFWarning")  # chunks that are no good
@pytest.mark.parametrize("module", MODULES)
@settings(deadline=None)
@given(case=CASES)
def test_cupy_gives_the_numbers_of_numpy(module, case):
    """Results of CuPy chunks are CuPy arrays, as the meta announces."""
    data, make = DATA.astype(case["dtype"]), UDFS[case["which"]]
    lazy = da.from_array(data, chunks=case["chunks"])
    how = {
        "roi": case["roi"],
        "corrections": CORRECTIONS if case["corrections"] else None,
        "descan": DESCANS.get(case["descan"]),
    }
    wanted = dask.compute(*ud.run_udf(lazy, make(("numpy",)), **how))
    size = {"udfdask.device-tile-bytes": case["tile_bytes"]}
    with cupy_is(module) as cupy, dask.config.set(size):
        there = case["native"] == "cupy"
        found = ud.run_udf(sent(cupy, lazy) if there else lazy, make(("cupy",)), **how)
        for result, other in zip(wanted, computed(found), strict=True):
            for name, (value, meta) in other.items():
                assert isinstance(value, cupy.ndarray) == isinstance(meta, cupy.ndarray) == there
                assert value.dtype == meta.dtype == result[name].dtype
                np.testing.assert_allclose(to_host(value), result[name], rtol=1e-5, atol=1e-5)
