"""`udfdask explain` and `udfdask udfs` print what is known without reading a frame."""

import inspect

import numpy as np
import pytest

import udfdask as ud
from commands import call
from udfdask.cli.udf_option import CATALOG
from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, StdDevUDF


def test_the_plan_of_a_run(file):
    with raise_if_dask_computes():
        udfs = ["--udf", "com:r=4,cy=5,cx=6", "--udf", "stddev"]
        output = call("explain", file, *udfs, "--chunks", "2,4,-1,-1", "--roi", "3,:")
    x = open_file(file, chunks=(2, 4, -1, -1)).array
    plan = ud.explain(x, {"com": CoMUDF(r=4, cy=5, cx=6), "stddev": StdDevUDF()}, roi=np.s_[3, :])
    assert output == f"scan.npy: 6 x 8 positions of 10 x 12 uint16, read by NumPy\n\n{plan}\n"
    assert "2 of 6 are read" in output


def test_a_line_for_each_udf():
    lines = call("udfs").splitlines()
    assert [line.split()[0] for line in lines] == list(CATALOG)
    for line, cls in zip(lines, CATALOG.values(), strict=True):
        assert line.endswith(f"  {cls.__doc__.splitlines()[0]}")


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_each_is_described(name):
    """With its parameters and its results."""
    description = inspect.getdoc(CATALOG[name])
    parameters = inspect.signature(CATALOG[name]).parameters
    assert call("udfs", name) == f"{name}: {', '.join(parameters)}\n\n{description}\n"
    assert "\nNotes\n-----\n" in description
