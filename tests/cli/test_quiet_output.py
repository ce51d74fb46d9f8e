"""What a run prints: three lines of plan, a row for each result, and nothing into a closed pipe."""

import numpy as np
import pytest

from commands import call

SHAPE = (6, 8, 10, 12)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "scan.npy"
    np.save(path, np.random.default_rng(5).integers(0, 1000, SHAPE).astype(np.uint16))
    return path


def names(output):
    """The names of UDFs in a table, each once."""
    table = output[output.index("udf ") :].partition("\n\n")[0]
    return list(dict.fromkeys(line.split()[0] for line in table.splitlines()[1:]))


def test_four_lines_of_plan(file):
    output = call("run", file, "--chunks", "2,8,-1,-1", "--roi", "0:4", "--no-progress")
    plan, table = output.split("\n\n")
    first, chunks, reads, memory = plan.splitlines()
    assert first == "scan.npy: 6 x 8 positions of 10 x 12 uint16, read by NumPy"
    assert chunks == "chunks    2 of 3 are read; 32 of 48 frames selected"
    assert reads == "reads     7.50 kiB, in one pass"
    assert memory.startswith("memory    ")
    assert table.startswith("udf ")


TYPED = ["--udf sum", "--udf disk:r=3", "--udf disc:r=2", "--udf stddev", "--udf sum"]


def test_a_name_does_not_change_when_another_udf_is_added(file, tmp_path):
    """Rows and names are in the order in which the options were typed."""
    found = {}
    for n in range(1, len(TYPED) + 1):
        options = [word for option in TYPED[:n] for word in option.split()]
        output = call("run", file, *options, "--out", tmp_path / "a.npz", "--overwrite")
        assert names(output) == ["sum", "disk", "disk_2", "stddev", "sum_2"][:n]
        with np.load(tmp_path / "a.npz") as arrays:
            for name, array in found.items():
                np.testing.assert_array_equal(arrays[name], array)
            found.update(arrays)
    assert {"sum_intensity", "disk_intensity", "disk_2_intensity", "sum_2_intensity"} < set(found)


def test_small_chunks_are_joined(file):
    plan = call("explain", file, "--chunks", "1,1,-1,-1", "--merge-small", "1MB")
    assert "small chunks are joined by merge_small" in plan
    plain = call("run", file, "--no-progress")
    merged = call("run", file, "--no-progress", "--chunks", "1,1,-1,-1", "--merge-small", "1MB")
    assert merged[merged.index("udf ") :] == plain[plain.index("udf ") :]
