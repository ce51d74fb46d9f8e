"""What a run prints: three lines of plan, a row for each result, and nothing into a closed pipe."""

import subprocess
import sys

import numpy as np
import pytest

from commands import call
from making import LATE

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


def test_three_lines_of_plan(file):
    output = call("run", file, "--chunks", "2,8,-1,-1", "--roi", "0:4", "--no-progress")
    plan, table = output.split("\n\n")
    first, second, third = plan.splitlines()
    assert first == "scan.npy: 6 x 8 positions of 10 x 12 uint16, read by NumPy"
    assert second == "reads     7.50 kiB in 2 of 3 chunks, 32 of 48 frames"
    assert third.startswith("memory    ")
    assert table.startswith("udf ")


@pytest.mark.parametrize("option", ["--verbose", "-v"])
def test_all_of_the_plan(file, option):
    plan = call("explain", file)
    assert call("run", file, "--no-progress", option).startswith(plan + "\n")
    assert len(plan.splitlines()) > 6


@pytest.mark.usefixtures("warns_of_few_data")
def test_a_warning_is_told_once_in_typed_words(file):
    options = [file, "--udf", "pick", "--chunks", "6,8,2,-1"]
    for more in ([], ["--verbose"]):
        output = call("run", *options, *more)
        assert output.count(" --chunks ") == 1
        assert "array.rechunk" not in output
    assert call("explain", *options).count(" --chunks ") == 1


def test_the_same_udf_twice_gives_two_rows(file):
    output = call("run", file, "--udf", "sum", "--udf", "sum")
    rows = [line.split()[1:] for line in output.splitlines() if line.startswith("sum")]
    assert names(output) == ["sum", "sum_2"]
    assert len(rows) == 2
    assert rows[0] == rows[1]


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


@pytest.mark.parametrize(
    "text",
    [
        "disk:r=3",
        "disc:r=3",
        "Disk: r=3",
        "virtualdetector:shape=disk,r=3",
        "circle:r=3",
    ],
)
def test_spellings_of_a_detector(file, text):
    expected = call("run", file, "--udf", "disk:r=3", "--no-progress").splitlines()[-1]
    row = call("run", file, "--udf", text, "--no-progress").splitlines()[-1]
    assert row.split()[1:] == expected.split()[1:]


def test_a_detector_alone_runs_alone(file):
    assert names(call("run", file, "--udf", "disk:r=3")) == ["disk"]


@pytest.mark.parametrize("name", ["disk", "disc", "virtualdetector", "virtual-detector"])
def test_a_detector_is_described(name):
    assert call("udfs", name).startswith("virtualdetector: ")


@pytest.mark.parametrize("name", ["dsik", "disks", "rign"])
def test_near_misses_of_a_detector(name):
    near = "ring" if name == "rign" else "disk"
    assert f"did you mean '{near}'" in call("udfs", name, code=2)
    assert f"did you mean '{near}'" in call("run", "no.npy", "--udf", f"{name}:r=3", code=2)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["scan.npy", "--udf", "sum"], "did you mean: udfdask run scan.npy"),
        (["run", "scan.npy", "--overwite"], "--overwrite"),
    ],
)
def test_near_misses_of_commands_and_options(args, words):
    assert words in call(*args, code=2)


def test_small_chunks_are_joined(file):
    plan = call("explain", file, "--chunks", "1,1,-1,-1", "--merge-small", "1MB")
    assert "small chunks are joined by merge_small" in plan
    plain = call("run", file, "--no-progress")
    merged = call("run", file, "--no-progress", "--chunks", "1,1,-1,-1", "--merge-small", "1MB")
    assert merged[merged.index("udf ") :] == plain[plain.index("udf ") :]


WAITS = """
import pathlib, time

def total(frame):
    while not (pathlib.Path(__file__).parent / "go").exists():
        time.sleep(0.01)
    return float(frame.sum())
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
class TestPipes:
    @pytest.mark.parametrize("lines", [1, 3])
    @pytest.mark.parametrize("args", ["udfs", "udfs com", "--help", "run --help", "run {}"])
    def test_head(self, file, args, lines):
        command = f"{sys.executable} -m udfdask {args.format(file)} --no-progress | head -{lines}"
        command = command if "run /" in command else command.replace(" --no-progress", "")
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, check=False, timeout=LATE
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == lines

    def test_files_are_written_without_reader_of_the_results(self, file, tmp_path):
        (tmp_path / "mine.py").write_text(WAITS)
        udf = f"auto:f={tmp_path}/mine.py:total,output_shape=(),output_dtype=float64"
        options = ["--udf", udf, "--chunks", "2,8,-1,-1", "--no-progress", "--out", "a.npz"]
        command = [sys.executable, "-m", "udfdask", "run", str(file), *options]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, cwd=tmp_path, **streams) as running:
            plan = [running.stdout.readline() for _ in range(4)]
            running.stdout.close()
            (tmp_path / "go").touch()
            errors = running.stderr.read()
            running.wait(timeout=LATE)
        assert (plan[-1], errors) == (b"\n", b"")
        with np.load(tmp_path / "a.npz") as arrays:
            np.testing.assert_array_equal(arrays["auto_result"], np.load(file).sum(axis=(2, 3)))
