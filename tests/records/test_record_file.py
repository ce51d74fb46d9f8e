"""A record comes back bit for bit, and every damage is noticed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suites import examples
from udfdask.records.folder import RecordFolder
from udfdask.records.record_file import (
    DamagedRecordError,
    Record,
    can_store,
    read_record,
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


@given(st.binary(max_size=300))
def test_other_files_are_no_records(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("records") / "a"
    path.write_bytes(content)
    with pytest.raises(DamagedRecordError):
        read_record(NAME, path)


def test_a_record_of_another_name_is_noticed_and_removed(stored):
    folder = RecordFolder(str(stored.parent))
    with pytest.raises(DamagedRecordError, match="is not the record a"):
        folder.get("a")
    assert folder.is_empty()
    with pytest.raises(DamagedRecordError, match="does not exist"):
        folder.get("a")


def test_nothing_is_left_if_writing_fails(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_record(Record(NAME, {}, {}), tmp_path / "missing" / "a.record")
    (tmp_path / "b.record").mkdir()
    with pytest.raises(OSError, match=r"b\.record"):
        write_record(Record(NAME, {}, {}), tmp_path / "b.record")
    assert [path.name for path in tmp_path.iterdir()] == ["b.record"]


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
