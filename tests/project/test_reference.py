"""The reference has a page for each public name; its tables say what runs show. Errors travel."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import udfdask as ud
from chunk_backends import chunks_in
from public_names import public_objects, reached_objects
from udf_facts import AXES, SPARSE, UNIT, describe, make_udfs, recording
from udfdask import errors, udfs
from udfdask.base import config

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
NAMES = [name for name in udfs.__all__ if name.endswith("UDF")]


def documented():
    """The names for which the pages of the reference ask for a page of their own."""
    found = []
    for page in REFERENCE.glob("*.md"):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif module and re.fullmatch(r"   \w+", line):
                found.append(f"{module}.{line.strip()}")
    return found


def test_each_public_name_is_on_one_page_of_the_reference():
    expected = {**public_objects(), **reached_objects()}
    assert sorted(documented()) == sorted(expected)


@pytest.mark.point(31)
def test_all_is_what_dir_offers():
    offered = {name for name in dir(ud) if not name.startswith("_")}
    assert offered == set(ud.__all__) - {"__version__"}


def test_the_page_of_settings_has_every_setting_and_its_default():
    page = (REFERENCE / "configuration.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `udfdask\.([\w-]+)` \| `(.*?)` \|", page, re.MULTILINE))
    assert rows == {name: repr(value) for name, value in config.DEFAULTS.items()}


@pytest.fixture
def udf(request, tmp_path):
    """The ready-made UDF of this name, as the tables describe it."""
    return make_udfs(tmp_path)[request.param]


def test_every_ready_made_udf_is_in_the_tables(tmp_path):
    assert sorted(make_udfs(tmp_path)) == sorted(NAMES)


every_udf = pytest.mark.parametrize("udf", NAMES, indirect=True)
full = pytest.mark.full


def run(udf, array=None, **options):
    return ud.run_udf(recording() if array is None else array, udf, axes=AXES, unit=UNIT, **options)


@every_udf
@full
def test_results_have_the_shapes_and_units_of_the_table(udf):
    pytest.importorskip("xarray", reason="xarray is an extra")
    row, done = describe(udf), run(udf).compute()
    assert [result.name for result in row.results] == list(done)
    data = done.to_xarray() if row.results else {}
    full_names = {"*nav": ("y", "x"), "*sig": ("ky", "kx")}
    for result in row.results:
        variable = data[result.name]
        dims = [dim for name in result.shape for dim in full_names.get(name, (name,))]
        assert list(variable.dims) == dims
        assert variable.dtype == result.dtype
        assert variable.attrs.get("units") == result.unit
        assert done.buffers[result.name].kind == result.kind


@every_udf
@full
def test_sparse_backends_of_the_table_and_no_others(udf, tmp_path):
    pytest.importorskip("sparse", reason="sparse is an extra")
    row = describe(udf)
    array, expected = chunks_in(recording(), "sparse.COO", 2), run(udf).compute()
    for name in SPARSE:
        folder = tmp_path / name
        folder.mkdir()
        again = make_udfs(folder)[row.name]
        if name not in row.sparse:
            with pytest.raises(ud.UDFError, match="backend"):
                run(again, array, backends=name)
            continue
        done = run(again, array, backends=name).compute()
        for key in expected:
            np.testing.assert_allclose(done[key], expected[key], rtol=1e-6)


BUILTIN = {
    "UDFError": Exception,
    "ArgumentTypeError": TypeError,
    "ArgumentValueError": ValueError,
    "InvalidMaskError": ValueError,
    "MissingMergeError": NotImplementedError,
    "UndeclaredBufferError": KeyError,
    "NotAvailableError": AttributeError,
    "FileFormatError": ValueError,
    "MemoryLimitError": MemoryError,
    "SumOverflowError": OverflowError,
    "DeviceError": RuntimeError,
    "UDFRunCancelled": Exception,
    "UDFWarning": UserWarning,
}


@pytest.mark.parametrize("name", BUILTIN)
def test_each_error_is_public_a_builtin_one_too_and_travels(name):
    cls = getattr(errors, name)
    assert sorted(BUILTIN) == sorted(errors.__all__)
    assert issubclass(cls, (ud.UDFError, UserWarning))
    assert issubclass(cls, BUILTIN[name])
    back = pickle.loads(pickle.dumps(cls("a message of several words")))
    assert type(back) is cls
    assert str(back) == "a message of several words"
