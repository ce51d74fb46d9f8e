"""Damaged zarr stores: their metadata, their chunks, and what lies around them."""

import shutil
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaging import FUZZ, assert_same, damaged, outcome
from udfdask.errors import FileFormatError
from udfdask.io import open_file
from zarr_writing import needs_zarr_3

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
pytestmark = [pytest.mark.full, needs_zarr_3]

VALUES = np.random.default_rng(5).integers(0, 50, (2, 4, 6, 8)).astype(np.uint16)
FORMATS = ["v2", "v3", "sharded"]


def write(path, kind, **options):
    """A store with a scan and its coordinate in a group."""
    group = zarr.create_group(str(path), zarr_format=2 if kind == "v2" else 3)
    shards = {"shards": (1, 4, 6, 8)} if kind == "sharded" else {}
    dims = {} if kind == "v2" else {"dimension_names": ("y", "x", "ky", "kx")}
    array = group.create_array(
        "scan",
        shape=VALUES.shape,
        dtype=VALUES.dtype,
        chunks=(1, 2, 6, 8),
        **shards,
        **dims,
        **options,
    )
    array[:] = VALUES
    if kind == "v2":
        array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x", "ky", "kx"]
    group.create_array("x", data=np.arange(4.0))
    return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A whole store of each kind, to be copied."""
    folder = tmp_path_factory.mktemp("whole")
    return {kind: write(folder / f"{kind}.zarr", kind) for kind in FORMATS}


@pytest.fixture(params=FORMATS)
def store(request, stores, tmp_path):
    """A copy of a store, and of what kind it is."""
    shutil.copytree(stores[request.param], tmp_path / "scan.zarr")
    return tmp_path / "scan.zarr", request.param


def check(path, array="scan"):
    """Right values are those that zarr gives for the array itself."""
    values = outcome(path)
    if values is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_same(values, zarr.open_array(str(path / array), mode="r")[...])
    return values


def chunk_files(path):
    """Files of the scan that hold values."""
    files = [p for p in sorted((path / "scan").rglob("*")) if p.is_file()]
    return [p for p in files if p.name not in ("zarr.json", ".zarray", ".zattrs")]


@pytest.mark.full
@FUZZ
@given(data=st.data(), kind=st.sampled_from(FORMATS))
def test_damaged_chunks(stores, tmp_path, data, kind):
    path = tmp_path / "scan.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(stores[kind], path)
    chunk = data.draw(st.sampled_from(chunk_files(path)))
    chunk.write_bytes(data.draw(damaged(chunk.read_bytes(), front=32)))
    check(path)


def test_a_cut_chunk_is_named(store):
    path, _ = store
    broken = chunk_files(path)[1]
    broken.write_bytes(broken.read_bytes()[:20])
    array = open_file(path).array
    with pytest.raises(FileFormatError, match=f"{broken.relative_to(path)}"):
        array.compute(scheduler="synchronous")


def test_a_chunk_that_is_missing_was_never_written(store):
    path, kind = store
    chunk_files(path)[0].unlink()
    expected = VALUES.copy()
    expected[0, : 4 if kind == "sharded" else 2] = 0
    assert_same(check(path), expected)


@pytest.mark.parametrize("kind", ["v2", "v3"])
def test_consolidated_metadata_that_lie(stores, tmp_path, kind):
    path = tmp_path / "scan.zarr"
    shutil.copytree(stores[kind], path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(str(path))
    file = path / (".zmetadata" if kind == "v2" else "zarr.json")
    lying = file.read_text().replace("uint16", "float32").replace("<u2", "<f4")
    assert lying != file.read_text()
    file.write_text(lying)
    assert_same(check(path), VALUES)


@pytest.mark.parametrize(
    "values",
    [
        np.array(["a", "b"]),
        np.array([b"ab", b"c"]),
        np.zeros(3, [("a", "u1"), ("b", "f4")]),
        np.float64(3),
    ],
    ids=lambda values: str(values.dtype),
)
@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
def test_no_numbers(tmp_path, values):
    zarr.create_array(str(tmp_path / "a.zarr"), data=np.asarray(values), zarr_format=2)
    with pytest.raises(FileFormatError, match=r"expected (numbers|an array of frames).*a\.zarr"):
        open_file(tmp_path / "a.zarr")


@pytest.mark.parametrize(
    ("dtype", "fill"), [(">u2", 0), ("i2", -7), (">f8", -1.5), ("f4", np.nan), ("M8[s]", 0)]
)
@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
def test_unusual_and_right(tmp_path, dtype, fill):
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=(3, 4, 4),
        chunks=(2, 3, 4),
        dtype=dtype,
        fill_value=fill,
        zarr_format=2,
    )
    array[0] = np.arange(16).reshape(4, 4).astype(dtype)
    values = outcome(tmp_path / "a.zarr")
    assert_same(values, array[:])


def test_an_axis_without_a_position(tmp_path):
    zarr.create_array(str(tmp_path / "a.zarr"), shape=(2, 0, 4, 4), chunks=(1, 1, 4, 4), dtype="u1")
    assert outcome(tmp_path / "a.zarr").shape == (2, 0, 4, 4)


@pytest.mark.parametrize("content", ["x.npy", "x.zip", "x.mib"])
def test_a_store_with_another_suffix(stores, tmp_path, content):
    shutil.copytree(stores["v3"], tmp_path / content)
    assert_same(check(tmp_path / content), VALUES)
