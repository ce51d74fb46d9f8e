"""The reference has a page for each public name; its tables say what runs of the UDFs show."""

import re
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from chunk_backends import chunks_in
from public_names import members_of, public_objects, reached_objects
from stand_in import numpy_standing_in_for_cupy
from udf_facts import AXES, SPARSE, UNIT, describe, make_udfs, recording
from udfdask import config, udfs
from udfdask.plotting import result_panels
from udfdask.udf import UDF

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
NAMES = [name for name in udfs.__all__ if name.endswith("UDF")]
DERIVATIVES = {"divergence", "curl"}  # of an image, which get_results computes


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


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("udfdask.Result", "valid_mask"),
        ("udfdask.Result", "compute"),
        ("udfdask.Explanation", "memory"),
        ("udfdask.udf.meta.UDFMeta", "coordinates"),
        ("udfdask.udf.meta.UDFMeta", "get_valid_nav_mask"),
        ("udfdask.Slice", "sig"),
        ("udfdask.Shape", "nav"),
        ("udfdask.Axis", "to_pixels"),
        ("udfdask.io.OpenedFile", "present"),
        ("udfdask.Snapshot", "damage"),
        ("udfdask.hyperspy.SignalIterator", "update_parameters"),
        ("udfdask.UDF", "buffer"),
        ("udfdask.UDF", "BACKEND_CUPY"),
    ],
)
def test_pages_of_classes_describe_their_members(name, member):
    objects = {**public_objects(), **reached_objects()}
    found = members_of(objects[name], set(objects.values()))
    assert member in (*found.attributes, *found.methods, *found.constants)


def test_pages_of_ready_made_udfs_leave_out_what_the_base_class_describes():
    objects = public_objects()
    found = members_of(
        udfs.CoMUDF, {value for value in objects.values() if isinstance(value, type)}
    )
    assert found.methods == ("with_params", "get_field_results")
    assert not found.constants


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
def test_pictures_show_the_results_that_the_table_names(udf):
    row, done = describe(udf), run(udf).compute()
    titles = [panel.title for panel in result_panels({"it": done}, AXES, 2)]
    shown = {r.name for r in row.results if any(re.match(rf"it: {r.name}\b", t) for t in titles)}
    assert shown == {result.name for result in row.results if result.plotted}


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


@every_udf
@full
def test_cupy_of_the_table(udf):
    row = describe(udf)
    with numpy_standing_in_for_cupy():
        if row.cupy:
            assert "cupy" in run(udf, backends="cupy").explain().text
        else:
            with pytest.raises(ud.UDFError, match="backend"):
                run(udf, backends="cupy")


@every_udf
@full
def test_windows_of_the_table(udf):
    row = describe(udf)
    nav = [r.name for r in row.results if r.kind == "nav" and r.name not in DERIVATIVES]
    if not nav:
        assert not row.window  # and nothing shows which frames it saw
        return
    frames = recording().compute()
    other = frames.copy()
    other[4, 4] = np.arange(256).reshape(16, 16)
    changed = np.zeros((8, 8), bool)
    one, two = (run(udf, _in_chunks(values)).compute() for values in (frames, other))
    for name in nav:
        differs = ~np.isclose(one[name], two[name], equal_nan=True)
        changed |= differs.reshape(8, 8, -1).any(axis=2)
    ys, xs = changed.nonzero()
    size = {"": (1, 1)}.get(row.window) or tuple(map(int, row.window.split(" x ")))
    assert (np.ptp(ys) + 1, np.ptp(xs) + 1) == size


def _in_chunks(values):
    return da.from_array(values, chunks=recording().chunks)


@every_udf
@full
def test_merges_of_the_table(udf, monkeypatch):
    row, cls, calls = describe(udf), type(udf), []
    own = [name for name in ("merge", "merge_all") if getattr(cls, name, None) is not None]
    for name in own:
        original = getattr(cls, name)
        if original is getattr(UDF, name, None):
            continue

        def counting(self, *args, original=original):
            calls.append(1)
            return original(self, *args)

        monkeypatch.setattr(cls, name, counting)
    run(udf).compute(scheduler="synchronous")
    assert bool(calls) == row.merges
