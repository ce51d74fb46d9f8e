"""What a run prints: three lines of plan, a row for each result, and nothing into a closed pipe."""

import os
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


TYPED = ["--udf sum", "--udf disk,r=3", "--udf disc:r=2", "--udf stddev", "--udf sum"]


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
        "disc,r=3",
        "Disk: r=3",
        "virtualdetector:disc,r=3",
        "circle:r=3",
        "DISK, r=3",
    ],
)
def test_spellings_of_a_detector(file, text):
    expected = call("run", file, "--udf", "disk,r=3", "--no-progress").splitlines()[-1]
    row = call("run", file, "--udf", text, "--no-progress").splitlines()[-1]
    assert row.split()[1:] == expected.split()[1:]


def test_a_detector_alone_runs_alone(file):
    assert names(call("run", file, "--udf", "disk,r=3")) == ["disk"]


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
        (["explian", "scan.npy"], "explain"),
        (["run", "scan.npy", "--overwite"], "--overwrite"),
    ],
)
def test_near_misses_of_commands_and_options(args, words):
    assert words in call(*args, code=2)


WRONG = [
    ["--udf", "con"],
    ["--udf", "com:r=-3"],
    ["--udf", "disk"],
    ["--roi", "a"],
    ["--chunks", "4;4"],
    ["--scheduler", "treads"],
    ["--resume"],
    ["--cache", "c", "--live"],
    ["--nav-shape", "3,4"],
    ["--dtype", "uint15"],
    ["--sig-dims", "0"],
    ["--out", "a"],
    ["--plot", "a.jpg"],
    ["--max-memory", "much"],
    ["--merge-small", "much"],
    ["--every", "-1"],
    ["--no-such-option"],
]
NOT_READ = ["--roi", "no.npy", "--udf", "applymasks:no.npy", "--udf", "auto:no.py:f"]


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
def test_usage_errors_come_before_any_reading(wrong):
    """None of the files is there, and none is missed."""
    output = call("run", "no-scan.npy", *NOT_READ, *wrong, code=2)
    assert "Error: " in output
    assert "no.npy" not in output
    assert "no.py" not in output
    assert "no-scan" not in output


def test_files_of_options_are_read_before_the_data():
    assert "'no.npy' cannot be read" in call("run", "no-scan.npy", "--roi", "no.npy", code=2)
    assert "no.npy" in call("run", "no-scan.npy", "--udf", "applymasks:no.npy", code=2)


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


def start(*args, **streams):
    """Start the command as a program of its own."""
    return subprocess.Popen([sys.executable, "-m", "udfdask", *map(str, args)], **streams)


def without_reader(*args, errors_too=False):
    """Run the command with a pipe that nobody reads: its exit code and standard error."""
    read, write = os.pipe()
    os.close(read)
    with start(*args, stdout=write, stderr=write if errors_too else subprocess.PIPE) as command:
        os.close(write)
        _, errors = command.communicate(timeout=LATE)
    return command.returncode, None if errors_too else errors.decode()


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

    @pytest.mark.parametrize("args", [["udfs"], ["udfs", "com"], ["--help"], ["explain", "{}"]])
    def test_no_reader(self, file, args):
        code, errors = without_reader(*(arg.format(file) for arg in args))
        assert errors == ""
        assert code == (1 if "--help" in args else 141)  # click prints the help

    @pytest.mark.parametrize("more", [[], ["--live", "--every", "0"]], ids=["plain", "live"])
    def test_a_run_without_reader(self, file, more):
        assert without_reader("run", file, "--no-progress", *more) == (141, "")

    @pytest.mark.parametrize("more", [[], ["--live", "--every", "0"]], ids=["plain", "live"])
    def test_files_are_written_without_reader(self, file, tmp_path, more):
        outs = ["--out", tmp_path / "a.npz", "--out", tmp_path / "a.nc"]
        options = ["--udf", "sumsig", "--chunks", "1,8,-1,-1", *outs, *more]
        assert without_reader("run", file, *options, errors_too=True) == (0, None)
        with np.load(tmp_path / "a.npz") as arrays:
            found = arrays["sumsig_intensity"]
        np.testing.assert_array_equal(found, np.load(file).sum(axis=(2, 3)))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "a.npz"]

    @pytest.mark.parametrize("more", [[], ["--live", "--every", "0"]], ids=["plain", "live"])
    @pytest.mark.parametrize("outs", [[], ["--out", "a.npz"]], ids=["no file", "file"])
    def test_a_reader_that_has_read_the_plan(self, file, tmp_path, more, outs):
        (tmp_path / "mine.py").write_text(WAITS)
        udf = f"auto:f={tmp_path}/mine.py:total,output_shape=(),output_dtype=float64"
        options = ["--udf", udf, "--chunks", "2,8,-1,-1", "--no-progress", *more, *outs]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with start("run", file, *options, cwd=tmp_path, **streams) as command:
            plan = [command.stdout.readline() for _ in range(4)]
            command.stdout.close()
            (tmp_path / "go").touch()
            errors = command.stderr.read()
            code = command.wait(timeout=LATE)
        assert plan[-1] == b"\n"
        assert (code, errors) == (0 if outs else 141, b"")
        assert (tmp_path / "a.npz").exists() == bool(outs)
