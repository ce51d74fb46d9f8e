"""Damaged zarr stores: their metadata, their chunks, and what lies around them."""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaging import FUZZ, assert_same, damaged, outcome
from udfdask.errors import FileFormatError
from udfdask.io import open_file
from zarr_writing import needs_zarr_3, write_group

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
pytestmark = [pytest.mark.full, needs_zarr_3]

VALUES = np.random.default_rng(5).integers(0, 50, (2, 4, 6, 8)).astype(np.uint16)
FORMATS = ["v2", "v3", "sharded"]
INSIDE = {"v2": ".zarray", "v3": "zarr.json", "sharded": "zarr.json"}


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


def test_whole(store):
    assert_same(check(store[0]), VALUES)


ODD = [None, -1, 0, 1.5, 10**18, 2**70, "a", "", [], {}, [[]], True, [None], [-1] * 4, [0] * 4]
ODD += [
    [10**18] * 4,
    [10**18, 4, 6, 8],
    ["a"] * 4,
    [1.5] * 4,
    [2, 4, 6],
    [2, 4, 6, 8, 1],
    [True] * 4,
]
ODD += ["object", "<U4", "datetime64[s]", "|V4", ">u2", "f2", "string", {"name": "foo"}, [{}]]


def places(value, path=()):
    """Paths of all values in a JSON object."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*path, key))


def changed(described, path, odd):
    """The object with another value at a path; left out if that is Ellipsis."""
    copy = json.loads(json.dumps(described))
    if not path:
        return None if odd is ... else odd
    parent = copy
    for key in path[:-1]:
        parent = parent[key]
    if odd is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = odd
    return copy


@pytest.mark.full
@pytest.mark.parametrize("kind", FORMATS)
def test_each_value_of_the_metadata(stores, tmp_path, kind):
    """Left out, or replaced by something odd; all the odd ones for the grid, three for the rest."""
    path = tmp_path / "scan.zarr"
    shutil.copytree(stores[kind], path)
    file = path / "scan" / INSIDE[kind]
    whole = file.read_text()
    described = json.loads(whole)
    for number, place in enumerate(places(described)):
        grid = any(key in ("shape", "chunks", "chunk_shape", "dimension_names") for key in place)
        some = (
            ODD if grid and len(place) < 5 else [ODD[(number + n) % len(ODD)] for n in (0, 9, 21)]
        )
        for odd in (..., *some):
            file.write_text(json.dumps(changed(described, place, odd)))
            try:
                check(path)
            except Exception as error:  # say which one it was
                raise AssertionError((place, odd)) from error


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"\0"])
def test_metadata_that_are_no_json_object(store, content):
    path, kind = store
    (path / "scan" / INSIDE[kind]).write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"(?i)scan\.zarr/scan/{INSIDE[kind]} .*copy"):
        open_file(path)


def test_metadata_cut_at_each_length(store):
    path, kind = store
    file = path / "scan" / INSIDE[kind]
    whole = file.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        file.write_bytes(whole[:length])
        assert check(path) is None


def test_metadata_that_are_gone(store):
    """The coordinate beside it was opened instead."""
    path, kind = store
    (path / "scan" / INSIDE[kind]).unlink()
    with pytest.raises(
        FileFormatError, match=r"scan\.zarr/scan contains chunks, but none of zarr\.js"
    ):
        open_file(path)
    with pytest.raises(FileFormatError, match=r"scan contains chunks, but none of"):
        open_file(path, dataset="scan")
    assert_same(open_file(path, dataset="x").array.compute(), np.arange(4.0))


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


@FUZZ
@given(data=st.data(), kind=st.sampled_from(FORMATS))
def test_damaged_metadata(stores, tmp_path, data, kind):
    path = tmp_path / "scan.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(stores[kind], path)
    file = path / "scan" / INSIDE[kind]
    file.write_bytes(data.draw(damaged(file.read_bytes())))
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


@pytest.mark.parametrize("instead", ["a folder", "a link to nothing", "a file above it"])
def test_a_chunk_that_is_no_file(store, instead):
    """zarr takes all of them for chunks that were never written, and gives zeros."""
    path, kind = store
    chunk = chunk_files(path)[0]
    chunk.unlink()
    if instead == "a folder":
        chunk.mkdir()
    elif instead == "a link to nothing":
        chunk.symlink_to("gone")
    elif kind == "v2":
        pytest.skip("its chunks lie in no folder")
    else:
        shutil.rmtree(path / "scan" / "c")
        (path / "scan" / "c").write_bytes(b"1")
    with pytest.raises(FileFormatError, match="should be a chunk of the array"):
        open_file(path).array.compute(scheduler="synchronous")


def bombs():
    """Chunks that inflate to 64 MiB, and how the store of 768-byte chunks packs its own."""
    import numcodecs

    zeros = bytes(1 << 26)
    yield "v3", zarr.codecs.ZstdCodec(), numcodecs.Zstd().encode(zeros)
    yield "v3", zarr.codecs.GzipCodec(), numcodecs.GZip().encode(zeros)
    yield "v3", zarr.codecs.BloscCodec(), numcodecs.Blosc().encode(zeros)
    yield "v2", numcodecs.LZ4(), numcodecs.LZ4().encode(zeros)
    yield "v2", numcodecs.Zstd(), numcodecs.Zstd().encode(zeros)
    yield "v2", numcodecs.Blosc(), numcodecs.Blosc().encode(zeros)


def test_a_chunk_that_inflates_far_is_refused_before(tmp_path, monkeypatch):
    import numcodecs

    for number, (kind, codec, content) in enumerate(bombs()):
        path = write(tmp_path / f"{number}.zarr", kind, compressors=codec)
        assert_same(open_file(path).array.compute(scheduler="synchronous"), VALUES)
        for chunk in chunk_files(path):
            chunk.write_bytes(content)
        array = open_file(path).array
        with monkeypatch.context() as patch:
            for name in ("Zstd", "Blosc", "LZ4", "GZip"):
                patch.setattr(
                    getattr(numcodecs, name), "decode", lambda *_: pytest.fail("inflated")
                )
            with pytest.raises(
                FileFormatError, match=r"has \d+ bytes and states .* of 67108864 bytes, far"
            ):
                array.compute(scheduler="synchronous")


def test_a_bomb_in_a_shard(tmp_path):
    import numcodecs

    crc32c = pytest.importorskip("google_crc32c", reason="zarr checks shards with it")

    path = write(tmp_path / "scan.zarr", "sharded", compressors=zarr.codecs.ZstdCodec())
    content = numcodecs.Zstd().encode(bytes(1 << 26))
    index = np.array([0, len(content), 2**64 - 1, 2**64 - 1], "<u8").tobytes()
    checksum = crc32c.value(index).to_bytes(4, "little")
    chunk_files(path)[0].write_bytes(content + index + checksum)
    array = open_file(path).array
    for part in (array, array[:1, :1]):
        with pytest.raises(FileFormatError, match=r"\d+ bytes and states .* of 67108864 bytes"):
            part.compute(scheduler="synchronous")


def test_a_group_in_a_group_and_another_format_inside(tmp_path):
    root = zarr.create_group(str(tmp_path / "a.zarr"), zarr_format=3)
    root.create_group("deep").create_group("deeper")
    write_group(tmp_path / "a.zarr" / "deep" / "old", {"scan": (VALUES, (1, 4, 6, 8))}, 2)
    opened = open_file(tmp_path / "a.zarr")
    assert opened.reader == "zarr, array deep/old/scan"
    assert_same(opened.array.compute(), VALUES)


def test_links_that_lead_back(store):
    path, _ = store
    (path / "loop").symlink_to(path, target_is_directory=True)
    (path / "self").symlink_to("self")
    assert_same(check(path), VALUES)


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


def test_metadata_in_a_pipe(store):
    path, kind = store
    (path / "scan" / INSIDE[kind]).unlink()
    os.mkfifo(path / "scan" / INSIDE[kind])
    assert outcome(path) is None


@pytest.mark.parametrize("content", ["x.npy", "x.zip", "x.mib"])
def test_a_store_with_another_suffix(stores, tmp_path, content):
    shutil.copytree(stores["v3"], tmp_path / content)
    assert_same(check(tmp_path / content), VALUES)
