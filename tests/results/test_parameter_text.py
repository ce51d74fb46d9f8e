"""The attribute `parameters` of saved results: what each UDF was given, as short JSON."""

import enum
import json
import math
import pickle
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import udfdask as ud
from making import SYNC
from saved import read_saved
from udf_zoo import Rows
from udfdask import save_results
from udfdask.plan.parameters import parameter_text
from udfdask.udfs import SumSigUDF, SumUDF, VirtualDetectorUDF

X = da.ones((3, 4, 6, 8), chunks=(2, 4, 6, 8), dtype="uint16")
AXES = [
    ud.Axis(name=name, unit=unit, scale=scale)
    for name, unit, scale in [("y", "nm", 1), ("x", "nm", 1), ("ky", "mrad", 2), ("kx", "mrad", 2)]
]
RING = {"shape": "ring", "ri": "2 mrad", "ro": "6 mrad"}
UDFS = {"ADF": VirtualDetectorUDF(**RING), "all": SumSigUDF()}
WANTED = {"ADF": RING, "all": {}}


class Side(enum.Enum):
    LEFT = 1


def parameters(udf):
    """The parameters in the text about a UDF."""
    return json.loads(parameter_text(udf))


def of_dataset(dataset):
    """The parameters of each variable that is not a mask."""
    return {name: json.loads(array.attrs["parameters"]) for name, array in dataset.items()}


def plain_function(frame):
    return frame.sum()


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), 1 << 63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20).filter(lambda text: "://" not in text),
)
SHORT = PLAIN | st.lists(PLAIN | st.lists(PLAIN, max_size=3), max_size=3)


@example({"a": "which?one"})  # only URLs have secrets after a question mark
@given(st.dictionaries(st.sampled_from(["a", "b", "long_name", "ö"]), SHORT))
def test_short_values_are_as_given_and_in_order(values):
    text = parameter_text(ud.UDF(**values))
    given = [(name, value) for name, value in values.items() if value is not None]
    assert list(json.loads(text).items()) == given


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.integers(),
        st.floats(),
        st.text(),
        st.binary(),
        st.characters(categories=["Cs"]),
        st.builds(object),
        st.just(X),
        st.just(np.ones((2000, 300))),
        st.sampled_from(
            [np.float32(0.1), np.str_("a"), 1 << 5000, "é" * 500, plain_function, dask]
        ),
    ),
    lambda m: (
        st.lists(m)
        | st.dictionaries(st.text(), m)
        | st.tuples(m, m)
        | st.builds(partial, st.just(max), m)
    ),
)


@given(st.dictionaries(st.text(min_size=1), ANYTHING))
def test_every_value_gives_a_short_text_that_files_hold(values):
    udf = ud.UDF(**values)
    text = parameter_text(udf)
    assert len(text) <= 4100
    assert text == parameter_text(ud.UDF(**values))
    json.loads(text.encode("utf-8"), parse_constant=pytest.fail)  # NaN is no JSON


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.ones((256, 256), "f4"), "array of shape (256, 256), float32"),
        (da.ones((4, 5)), "array of shape (4, 5), float64"),
        (np.float32(0.5), 0.5),
        (math.inf, "inf"),
        (1 + 2j, "(1+2j)"),
        ((3, "mrad"), [3, "mrad"]),
        (plain_function, "plain_function"),
        (np.dtype("u2"), "uint16"),
        (Side.LEFT, "LEFT"),
        (object(), "object"),
        ([0] * 100, "list of 100 values"),
        ("a" * 1000, "text of 1,000 characters"),
        (ud.UDF.aux_data(np.ones((3, 4), "f4"), kind="nav"), "array of shape (3, 4), float32"),
        ("https://me:password@host/a.npy?signature=1", "https://host/a.npy"),
        ({"key": "a", "Secret": "b"}, {"key": "a", "Secret": "not saved"}),
    ],
)
def test_what_stands_for_a_value(value, shown):
    assert parameters(ud.UDF(value=value)) == {"value": shown}


def test_secrets_and_private_names_are_not_saved():
    udf = ud.UDF(password="a", api_key="b", _part="c", key="d")
    assert parameters(udf) == {"password": "not saved", "api_key": "not saved", "key": "d"}


@pytest.mark.parametrize("how", ["lazy", "computed", "pickled", "persisted"])
@pytest.mark.parametrize("suffix", ["zarr", "nc"])
def test_files_have_the_parameters_as_the_user_gave_them(how, suffix, tmp_path):
    pytest.importorskip("xarray")
    results = ud.run_udf(X, UDFS, axes=AXES, roi=np.s_[1:])
    if how == "persisted":
        (results,) = ud.persist(results, **SYNC)
    elif how != "lazy":
        (results,) = ud.compute(results, **SYNC)
    if how == "pickled":
        results = pickle.loads(pickle.dumps(results))
    found = read_saved(save_results(tmp_path / f"a.{suffix}", results, **SYNC))
    for name, udf in [("ADF_intensity", "ADF"), ("all_intensity", "all")]:
        assert json.loads(found[name].attrs["parameters"]) == WANTED[udf]


def test_a_store_and_a_dataset_have_them(tmp_path):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr", minversion="3")
    result = ud.run_udf(X, UDFS, axes=AXES, roi=np.s_[1:])["ADF"]
    for each in (result, result.compute(**SYNC)):
        assert of_dataset(each.to_xarray()) == {"intensity": RING}
        store = each.to_zarr(tmp_path / "a.zarr", overwrite=True, **SYNC)
        assert of_dataset(read_saved(store)) == {"intensity": RING}
    assert "parameters" not in result.to_xarray().attrs
    renamed = result.to_xarray(True, rename={"intensity": "image"})
    assert json.loads(renamed["image"].attrs["parameters"]) == RING
    done = result.compute(**SYNC).to_xarray()
    done.to_netcdf(tmp_path / "a.nc", engine="scipy")  # netCDF 3
    with xr.open_dataset(tmp_path / "a.nc", engine="scipy") as found:
        assert of_dataset(found) == {"intensity": RING}


def test_a_snapshot_has_the_last_parameters():
    with ud.run_udf_iter(X, [Rows(factor=1, other="a"), SumUDF()], **SYNC) as snapshots:
        first = next(snapshots)
        snapshots.update_parameters([{"factor": 2}, {}])
        last = list(snapshots)[-1]
    found = [json.loads(s.buffers[0]._info.parameters) for s in (first, last)]
    assert found == [{"factor": 1, "other": "a"}, {"factor": 2, "other": "a"}]
    assert last.buffers[1]._info.parameters == "{}"
