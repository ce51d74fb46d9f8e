"""Results in .npz files: whole or not at all."""

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError
from udfdask.io import Variable, write_npz

RESULTS = {
    "one": {"file": Variable(dims=("x",), values=np.arange(3))},
    "two": {
        "allow_pickle": Variable(dims=(), values=np.float64(2)[...]),
        "parts": Variable(dims=("x",), values=np.zeros(3, [("a", "i4"), ("b", "f8", 2)])),
    },
}


def test_what_is_written_is_read(tmp_path):
    path = write_npz(tmp_path / "a.npz", RESULTS)
    with np.load(path) as arrays:
        assert set(arrays) == {"one_file", "two_allow_pickle", "two_parts"}
        for udf, buffers in RESULTS.items():
            for name, variable in buffers.items():
                np.testing.assert_array_equal(arrays[f"{udf}_{name}"], variable.values)
                assert arrays[f"{udf}_{name}"].dtype == variable.values.dtype


def test_a_name_does_not_depend_on_other_udfs(tmp_path):
    with np.load(write_npz(tmp_path / "a.npz", {"one": RESULTS["one"]})) as arrays:
        np.testing.assert_array_equal(arrays["one_file"], [0, 1, 2])


def test_names_that_numpy_uses_itself(tmp_path):
    results = {"allow": {"pickle": RESULTS["one"]["file"]}}
    with np.load(write_npz(tmp_path / "a.npz", results)) as arrays:
        np.testing.assert_array_equal(arrays["allow_pickle"], [0, 1, 2])


def test_a_file_is_replaced_if_asked(tmp_path):
    path = write_npz(tmp_path / "a.npz", RESULTS)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="already exists"):
        write_npz(path, {"one": RESULTS["one"]})
    assert path.read_bytes() == before
    write_npz(path, {"one": RESULTS["one"]}, overwrite=True)
    with np.load(path) as arrays:
        assert list(arrays) == ["one_file"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("no/a.npz", FileNotFoundError, "there is no folder .*: create it first"),
        (".", FileExistsError, "is a folder: choose another name"),
    ],
)
def test_where_nothing_can_be_written(tmp_path, name, error, message):
    with pytest.raises(error, match=message):
        write_npz(tmp_path / name, RESULTS, overwrite=True)


def test_objects(tmp_path):
    lists = np.array([[1], [2, 3]], dtype=object)
    with pytest.raises(ArgumentTypeError, match="'one_v' contains Python objects"):
        write_npz(tmp_path / "a.npz", {"one": {"v": Variable(dims=("x",), values=lists)}})
    assert not list(tmp_path.iterdir())
