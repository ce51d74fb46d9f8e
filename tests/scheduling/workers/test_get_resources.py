"""The resources that UDFs need, for dask's own doors."""

import pytest

import udfdask as ud
from cuda_udfs import Cuda, Cupy, Hybrid, Rows
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udfs import SumSigUDF, SumUDF

CUDA = {"CUDA": 1}


@pytest.mark.parametrize(
    ("udfs", "backends", "wanted"),
    [
        (Rows("."), None, {}),
        (Cuda("."), None, CUDA),
        (Cupy("."), None, CUDA),
        (Hybrid("."), None, {}),
        ([SumUDF(), SumSigUDF()], None, {}),
        ([SumUDF(), Cuda(".")], None, CUDA),
        ((Hybrid("."), Rows(".")), None, {}),
        (Hybrid("."), "numpy", {}),
        (Hybrid("."), "cuda", CUDA),
        (Hybrid("."), ["cupy", "cuda"], CUDA),
        (Hybrid("."), ["cupy", "numpy"], {}),
    ],
)
def test_what_they_need(udfs, backends, wanted):
    assert ud.get_resources(udfs, backends=backends) == wanted


@pytest.mark.parametrize(
    ("udfs", "backends", "error", "match"),
    [
        ([], None, ArgumentValueError, "got an empty list"),
        (SumUDF, None, ArgumentTypeError, r"write SumUDF\(\.\.\.\)"),
        ("sum", None, ArgumentTypeError, "expected a UDF or a list of UDFs, got str"),
        ({Cuda(".")}, None, ArgumentTypeError, "got a set"),
        (Cuda("."), "numpy", ArgumentValueError, "the run is restricted to"),
        (Cuda("."), "gpu", ArgumentValueError, "is no array backend"),
        (Cuda("."), 3, ArgumentTypeError, "name an array backend"),
    ],
)
def test_bad_input(udfs, backends, error, match):
    with pytest.raises(error, match=match):
        ud.get_resources(udfs, backends)
