"""Records come back bit for bit, damage is noticed, and the least recently used ones go first."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suites import examples
from udfdask.errors import ArgumentValueError
from udfdask.scheduling.records import folder as module
from udfdask.scheduling.records.folder import (
    MARK,
    SUFFIX,
    DamagedRecordError,
    Record,
    RecordFolder,
    can_store,
    check_folder,
    open_folder,
    read_record,
    remove_folder,
    remove_unused,
    write_record,
)

NAME = "0123456789abcdef"

scalars = hnp.scalar_dtypes() | st.sampled_from(
    [np.dtype(text) for text in ("<g", "<G", "V5", "S3", ">U2", "M8[25us]", ">m8[D]", "?")]
)
dtypes = scalars | hnp.nested_dtypes(subtype_strategy=scalars, max_leaves=4)


@st.composite
def raw_arrays(draw):
    """Arrays of any bits: NaN with any payload, both byte orders, no elements."""
    dtype = draw(dtypes)
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    size = int(np.prod(shape)) * dtype.itemsize
    bits = draw(st.binary(min_size=size, max_size=size))
    array = np.ndarray(shape, dtype, bits if size else None)
    turned = array.T if draw(st.booleans()) else array
    return turned[::2] if turned.ndim and draw(st.booleans()) else turned


def bits(array):
    return array.dtype, array.shape, array.tobytes()


# a structured dtype can have any text as the name of a field
@pytest.mark.filterwarnings("ignore:Stored array in format:UserWarning")
@given(
    st.dictionaries(st.from_regex("[a-z_]+", fullmatch=True), raw_arrays(), max_size=3),
    raw_arrays(),
)
@settings(max_examples=examples(300))
def test_a_record_comes_back_bit_for_bit(tmp_path_factory, arrays, aux):
    if not all(can_store(a.dtype) for a in (aux, *arrays.values())):
        return
    folder = RecordFolder(str(tmp_path_factory.mktemp("records")))
    folder.put(Record(NAME, arrays, {"aux": aux}))
    back = folder.get(NAME)
    assert list(back.arrays) == list(arrays)
    for name, array in arrays.items():
        assert bits(back.arrays[name]) == bits(array)
        assert back.arrays[name].flags.writeable  # kernels would compile again for read-only ones
    assert bits(back.aux["aux"]) == bits(aux)
    assert [p.name for p in Path(folder.path).iterdir()] == [f"{NAME}.record"]


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "a.record"
    write_record(Record(NAME, {"sum": np.arange(7.0)}, {"aux": np.zeros((0, 2), ">i2")}), path)
    return path


def is_noticed(stored):
    """Whether a file is refused; if not, its values must be right."""
    try:
        found = read_record(NAME, stored)
    except DamagedRecordError:
        return True
    assert bits(found.arrays["sum"]) == bits(np.arange(7.0))
    assert bits(found.aux["aux"]) == bits(np.zeros((0, 2), ">i2"))
    return False


def test_every_changed_value_is_noticed(stored):
    """Some bytes of an archive have no meaning, such as the time of writing."""
    content = stored.read_bytes()
    noticed = 0
    for place in range(len(content)):
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= change
            stored.write_bytes(damaged)
            noticed += is_noticed(stored)
    assert noticed > 2 * len(content)


def test_every_cut_is_noticed(stored):
    content = stored.read_bytes()
    for length in range(len(content)):
        stored.write_bytes(content[:length])
        assert is_noticed(stored)


def test_a_record_of_another_name_is_noticed_and_removed(stored):
    folder = RecordFolder(str(stored.parent))
    with pytest.raises(DamagedRecordError, match="is not the record a"):
        folder.get("a")
    assert folder.is_empty()
    with pytest.raises(DamagedRecordError, match="missing or damaged"):
        folder.get("a")


def test_objects_are_not_loaded(stored):
    """An archive from elsewhere can hold pickles, which would run code."""
    np.savez(stored, names=np.array([NAME, "arrays/sum"]), **{"arrays/sum": np.array([print])})
    stored.with_suffix(".record.npz").replace(stored)
    with pytest.raises(DamagedRecordError, match="allow_pickle"):
        read_record(NAME, stored)


def test_objects_cannot_be_stored():
    assert not can_store(np.dtype(object))
    assert not can_store(np.dtype([("a", "i4"), ("b", object)]))
    assert can_store(np.dtype([("a", "<i4", (2,)), ("b", [("c", ">f8")])]))


KIB = 1 << 10
LIMIT = 40 * KIB


def record(name, nbytes=3 * KIB):
    return Record(name, {"sum": np.zeros(nbytes, dtype="u1")}, {})


def names(folder):
    return {p.name.removesuffix(SUFFIX) for p in Path(folder.path).glob(f"*{SUFFIX}")}


@pytest.fixture
def folder(tmp_path):
    return open_folder(tmp_path / "cache", LIMIT)


@pytest.fixture
def full(folder):
    """Twelve records of 4 KiB each on the disk; the first is the oldest."""
    for k in range(12):
        module.write_record(record(str(k)), f"{folder.path}/{k}{SUFFIX}")
        os.utime(f"{folder.path}/{k}{SUFFIX}", (1000 + k, 1000 + k))
    return folder


def test_the_oldest_records_are_removed_down_to_90_percent(full):
    for _ in range(2):
        assert remove_unused(full.path, LIMIT) == 36 * KIB
        assert names(full) == set(map(str, range(3, 12)))


def test_use_makes_a_record_young(full):
    assert full.use("1")
    assert not full.use("missing")
    remove_unused(full.path, LIMIT)
    assert names(full) == {"1", *map(str, range(4, 12))}


def test_a_full_folder_is_limited(folder, monkeypatch):
    monkeypatch.setattr(module, "_left", {})
    for k in range(100):
        folder.put(record(str(k)))
    assert 5 <= len(names(folder)) <= 11
    folder.put(record("large", 41 * KIB))
    assert "large" not in names(folder)


def test_unfinished_files_are_removed_when_they_are_old(folder):
    for name, age in ((".a-1", 10**9), (".b-2", None)):
        file = Path(folder.path, name)
        file.touch()
        if age:
            os.utime(file, (age, age))
    remove_unused(folder.path, LIMIT)
    assert [p.name for p in Path(folder.path).iterdir()] == [".b-2"]


def test_a_merge_replaces_its_sources(tmp_path):
    folder = open_folder(tmp_path / "resumed", None)
    for name in ("a", "b"):
        folder.put(record(name))
    folder.put(record("a+b"), ["a", "b", "never written"])
    assert names(folder) == {"a+b"}
    assert not folder.is_empty()


def test_another_processor_stores_nothing(folder, monkeypatch):
    """On a cluster, the client makes the names."""
    monkeypatch.setattr(module, "processor", lambda: "another one")
    pickle.loads(pickle.dumps(folder)).put(record("a"))
    assert folder.is_empty()


def test_a_folder_that_was_removed_or_made_in_part_is_a_folder(tmp_path):
    path = tmp_path / "cache"
    path.mkdir()
    for _ in range(2):
        assert check_folder(path) == path
        open_folder(path, LIMIT).put(record("a"))
        (path / "records").rename(tmp_path / "moved")  # killed while it was removed
        assert check_folder(path) == path
        (tmp_path / "moved").rename(path / "records")
        remove_folder(path)
        assert not path.exists()
        remove_folder(path)


def test_nothing_of_others_is_removed(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "mine").touch()
    with pytest.raises(ArgumentValueError, match="with other files"):
        open_folder(folder, LIMIT)
    remove_folder(folder)
    assert (folder / "mine").exists()
    (folder / MARK).touch()
    remove_folder(folder)
    assert [p.name for p in folder.iterdir()] == ["mine"]
