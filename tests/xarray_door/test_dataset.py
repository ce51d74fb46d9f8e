"""`dataset.udf` runs over the one variable that fits the signal dimensions."""

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")

SIG = ("ky", "kx")


@pytest.fixture
def dataset(array):
    """A scan among what is stored with it: a dark frame, an image, a number, a text."""
    return xr.Dataset(
        {
            "dark": (SIG, np.ones((8, 10))),
            "image": (("y", "x"), np.ones((4, 6))),
            "scan": array,
            "gain": ((), 2.0),
            "operator": ((), "A"),
        }
    )


CALLS = {
    "run_udf": lambda udf, **how: udf.run_udf(SumUDF(), **how),
    "several": lambda udf, **how: udf.run_udf([SumUDF(), SumSigUDF()], **how)[1],
    "map_frames": lambda udf, **how: udf.map_frames(np.sum, **how),
    "virtual_image": lambda udf, **how: udf.virtual_image("disk", r=2, **how),
    "run_udf_iter": lambda udf, **how: list(udf.run_udf_iter(SumUDF(), **how))[-1].buffers[0],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("sig_dims", [SIG, ("kx", "ky"), 2])
def test_the_one_that_fits(dataset, array, call, sig_dims):
    how = {"sig_dims": sig_dims, "roi": np.s_[1:]}
    found, wanted = CALLS[call](dataset.udf, **how), CALLS[call](array.udf, **how)
    if call == "run_udf_iter":
        xr.testing.assert_identical(found, wanted)
    else:
        assert found.compute().identical(wanted.compute())


def test_descriptions(dataset, array):
    with raise_if_dask_computes():
        found = dataset.udf.explain(SumUDF(), sig_dims=SIG)
    assert found.text == array.udf.explain(SumUDF(), sig_dims=SIG).text


def test_one_frame_fits_if_nothing_else_does(dataset):
    found = dataset.drop_vars(["scan", "image"]).udf.run_udf(SumUDF(), sig_dims=SIG)
    assert found["intensity"].values.sum() == 80


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("change", "sig_dims", "match"),
    [
        (
            lambda d: d.assign(other=d["scan"]),
            SIG,
            r"2 variables .*dataset\.udf\['scan'\]. There are 'dark' \('ky', 'kx'\), .*'other'",
        ),
        (lambda d: d, ("ky", "kz"), r"no variable fits sig_dims=\('ky', 'kz'\): correct sig_dims"),
        (lambda d: d, 5, "no variable fits sig_dims=5"),
        (lambda d: d, 1, "3 variables of the Dataset fit sig_dims=1: choose one"),
        (lambda d: d[[]], SIG, "the Dataset has no variables"),
    ],
    ids="two unknown many few empty".split(),
)
def test_none_or_several(dataset, call, change, sig_dims, match):
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError, match=match):
        CALLS[call](change(dataset).udf, sig_dims=sig_dims)


@pytest.mark.parametrize("sig_dims", [True, 2.0, {"ky"}])
def test_signal_dimensions_of_another_type(dataset, sig_dims):
    with pytest.raises(ArgumentTypeError, match="sig_dims must be"):
        dataset.udf.run_udf(SumUDF(), sig_dims=sig_dims)


def test_a_variable_by_name(dataset, array):
    found = dataset.udf["scan"].run_udf(SumUDF(), sig_dims=SIG)
    xr.testing.assert_identical(found, array.udf.run_udf(SumUDF(), sig_dims=SIG))
    with pytest.raises(ArgumentValueError, match=r"no variable 'nope', only \['dark', 'image'"):
        dataset.udf["nope"]
    with pytest.raises(AttributeError, match="no attribute 'run'"):
        dataset.udf.run  # noqa: B018
