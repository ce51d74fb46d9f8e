"""Shifts of frames on the command line: which files are taken, and how mistakes are reported."""

import contextlib

import numpy as np
import pytest
from click.testing import CliRunner

import udfdask as ud
from udfdask.cli import main
from udfdask.descan import Descan
from udfdask.io import open_file
from udfdask.udfs import CoMUDF, SumUDF

NAV, SIG = (4, 6), (16, 20)
Y, X = np.indices(NAV)
SHIFTS = np.stack([Y - 1.5, X - 2.25], axis=-1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a scan whose disk moves, and with files of shifts."""
    folder = tmp_path_factory.mktemp("descan")
    rows, columns = np.indices(SIG)
    d = np.hypot(rows - 8 - SHIFTS[..., :1, None], columns - 10 - SHIFTS[..., 1:, None])
    np.save(folder / "scan.npy", (np.clip(4.5 - d, 0, 1) * 200).astype("uint16"))
    unknown, infinite = SHIFTS.copy(), SHIFTS.copy()
    unknown[0, 0], infinite[1, 2] = np.nan, np.inf
    files = {
        "shifts": SHIFTS,
        "unknown": unknown,
        "infinite": infinite,
        "moved": np.moveaxis(SHIFTS, -1, 0),
        "short": SHIFTS[:2],
        "complex": SHIFTS * 1j,
        "words": np.full((*NAV, 2), "left"),
    }
    for name, values in files.items():
        np.save(folder / f"{name}.npy", values)
    np.savez(folder / "one.npz", anything=SHIFTS)
    np.savez(folder / "two.npz", here=SHIFTS, there=unknown)
    np.savez(folder / "empty.npz")
    (folder / "broken.npz").write_bytes((folder / "one.npz").read_bytes()[:99])
    np.save(folder / "twin.npy", SHIFTS)
    (folder / "twin.npy").rename(folder / "wrong.npz")
    (folder / "short.npz").mkdir()
    return folder


def command(folder, *args):
    """Run udfdask in the folder."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    return done


def summed(folder, *args):
    """The sum of the frames that a command writes."""
    command(folder, "run", "scan.npy", "--udf", "sum", "--out", "o.npz", "--overwrite", *args)
    with np.load(folder / "o.npz") as found:
        return found["sum_intensity"]


def expected(folder, descan, **options):
    opened = open_file(folder / "scan.npy")
    return ud.run_udf(opened, SumUDF(), descan=descan, **options).compute()["intensity"]


@pytest.mark.parametrize(
    "file", ["shifts.npy", pytest.param("two.npz:here", marks=pytest.mark.full)]
)
def test_frames_are_shifted_as_in_python(folder, file):
    np.testing.assert_array_equal(
        summed(folder, "--descan", file, "--roi", "1:3,:"),
        expected(folder, SHIFTS, roi=(slice(1, 3), slice(None))),
    )


def test_the_output_of_an_earlier_run(folder):
    """Also with a UDF that has other buffers, and with parts of a pixel."""
    command(folder, "run", "scan.npy", "--udf", "com", "--udf", "sum", "--out", "com.npz")
    found = ud.run_udf(open_file(folder / "scan.npy"), CoMUDF()).compute()["raw_shifts"]
    np.testing.assert_array_equal(
        summed(folder, "--descan", "com.npz", "--descan-subpixel"),
        expected(folder, Descan(found, subpixel=True)),
    )


@pytest.mark.full
def test_the_only_array_of_a_file(folder):
    np.testing.assert_array_equal(summed(folder, "--descan", "one.npz"), expected(folder, SHIFTS))


@pytest.fixture
def refused(folder, monkeypatch):
    """A function that returns the message of a command that ends with an exit code."""
    monkeypatch.chdir(folder)

    def call(code, *args):
        done = CliRunner().invoke(main, args)
        assert done.exit_code == code, done.output
        assert isinstance(done.exception, SystemExit)
        return " ".join(done.output.split())

    return call


USAGE = [
    ("found.zarr", "'found.zarr' is not a file of shifts: write the name of an .npy file"),
    ("", "'' is not a file of shifts"),
    ("shifts.npy:a", "'shifts.npy:a' is not a file of shifts"),
    ("no.npy", "'no.npy' cannot be read: there is no file"),
    ("no.npz", "'no.npz' cannot be read: there is no file"),
    ("two.npz", "'two.npz' has the arrays here, there: write which one, as two.npz:NAME"),
    ("two.npz:hree", "'two.npz' has no array 'hree', but here, there"),
    ("empty.npz", "'empty.npz' has the arrays (none)"),
    ("broken.npz", "'broken.npz' cannot be read"),
    ("wrong.npz", "'wrong.npz' cannot be read"),
    ("short.npz", "'short.npz' cannot be read"),
    ("words.npy", "'words.npy' cannot be read"),
]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        pytest.param(*case, marks=[pytest.mark.full] * (k not in (0, 5)))
        for k, case in enumerate(USAGE)
    ],
)
def test_a_wrong_file_is_found_before_the_data_are_opened(refused, file, message):
    found = refused(2, "run", "nothing.npy", "--descan", file)
    assert f"Invalid value for '--descan': {message}" in found


def test_parts_of_a_pixel_of_nothing(refused):
    found = refused(2, "run", "nothing.npy", "--descan-subpixel")
    assert "--descan-subpixel needs --descan" in found


PLANNED = [
    ("moved", "descan has shifts of shape (2, 4, 6), but a scan of shape (4, 6) with 2 signal"),
    ("infinite", "descan has an infinite shift at scan position (1, 2)"),
    ("short", "descan has shifts of shape (2, 6, 2)"),
    ("complex", "descan has shifts of dtype complex128, expected real numbers in pixels"),
]


@pytest.mark.parametrize(
    ("name", "message"),
    [pytest.param(*case, marks=[pytest.mark.full] * (k > 1)) for k, case in enumerate(PLANNED)],
)
def test_wrong_shifts_are_found_before_the_run(refused, folder, name, message):
    found = refused(1, "run", "scan.npy", "--descan", f"{name}.npy", "--out", f"{name}-o.npz")
    assert message in found
    assert not (folder / f"{name}-o.npz").exists()


@pytest.mark.full
def test_unknown_shifts_are_counted(folder):
    done = command(folder, "run", "scan.npy", "--descan", "unknown.npy")
    assert "warning: descan has no shift (NaN) for 1 of 24 frames" in done.stderr


def test_the_shifts_are_not_replaced(refused, folder):
    before = (folder / "one.npz").read_bytes()
    args = ("--descan", "one.npz", "--out", "one.npz", "--overwrite")
    assert "one.npz" in refused(1, "run", "scan.npy", *args)
    assert (folder / "one.npz").read_bytes() == before
