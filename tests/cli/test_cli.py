"""The command line: what it prints and writes, and how it says no."""

import inspect
import textwrap
from pathlib import Path

import numpy as np
import pytest

import udfdask as ud
from commands import call, line_of, tables
from remote_servers import serving
from udfdask.analyses import integrated_dpc
from udfdask.cli.udf_option import CATALOG
from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, StdDevUDF


def test_results_are_written(file, values, tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
    store, figure = tmp_path / "out.zarr", tmp_path / "out.png"
    output = call("run", file, "--out", store, "--plot", figure)
    assert f"wrote {store}" in output
    assert f"wrote {figure}" in output
    assert figure.read_bytes().startswith(b"\x89PNG")
    with xr.open_zarr(store, consolidated=False, chunks=None) as dataset:
        assert dataset["sum_intensity"].dims == ("sig_y", "sig_x")
        assert dataset["sumsig_intensity"].attrs == {
            "kind": "nav",
            "udf": "sumsig",
            "udf_class": "SumSigUDF",
            "parameters": "{}",
        }
        np.testing.assert_array_equal(dataset["sum_intensity"], values.sum((0, 1)))
        np.testing.assert_array_equal(dataset["sumsig_intensity"], values.sum((2, 3)))


REFUSED = [
    ("--plot link.png --overwrite", "is the source of the data"),
    ("--out link.npz --overwrite", "is the source of the data"),
    ("--udf record:filename=scan.npy,overwrite=true", "is the source of the data"),
    ("--plot old.png", "old.png already exists: choose another name"),
    ("--udf record:filename=old.npy --overwrite", "or overwrite it with overwrite=True"),
    ("--out a.npz --out a.npz", "cannot both be written"),
    ("--out a.zarr --plot a.zarr/a.png", "no folder"),
    ("--out a.npz --udf record:filename=a.npz", "cannot both be written"),
    ("--out above.zarr", "is the source of the data"),
    ("--out sub.zarr --overwrite", "so it is not replaced"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_what_is_refused_before_anything_runs(file, values, monkeypatch, options, words):
    monkeypatch.chdir(file.parent)
    (file.parent / "link.png").symlink_to("scan.npy")
    (file.parent / "link.npz").hardlink_to("scan.npy")
    (file.parent / "above.zarr").symlink_to(".")
    (file.parent / "old.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    np.save("old.npy", values[0])
    (file.parent / "sub").mkdir()
    (file.parent / "sub.zarr").mkdir()
    (file.parent / "sub.zarr" / "zarr.json").write_text("{}")
    before = {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()}
    with raise_if_dask_computes():
        output = call("run", "scan.npy", *options.split(), code=1)
    assert words in output
    assert {p: p.read_bytes() for p in file.parent.rglob("*") if p.is_file()} == before


def fails(monkeypatch, writer):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, fail)


def test_one_output_that_fails_keeps_no_other_from_being_written(file, tmp_path, monkeypatch):
    pytest.importorskip("xarray", reason="xarray is in the io extra")
    fails(monkeypatch, "xarray.Dataset.to_netcdf")
    outputs = ["--out", tmp_path / "a.nc", "--out", tmp_path / "b.npz"]
    assert "No space left" in call("run", file, *outputs, "--plot", tmp_path / "c.png", code=1)
    assert {path.name for path in tmp_path.iterdir()} == {"scan.npy", "b.npz", "c.png"}


@pytest.mark.parametrize(
    ("roi", "index"),
    [
        ("1:4,2:7", np.s_[1:4, 2:7]),
        ("-2:,::3", np.s_[-2:, ::3]),
        (" 0 , : ", np.s_[0, :]),
    ],
)
def test_a_region(file, values, tmp_path, roi, index):
    xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
    store = tmp_path / "out.zarr"
    output = call("run", file, f"--roi={roi}", "--chunks", "4,3,-1,-1", "--out", store)
    mask = np.zeros((6, 8), bool)
    mask[index] = True
    with xr.open_zarr(store, consolidated=False, chunks=None) as dataset:
        np.testing.assert_array_equal(dataset["sum_intensity"], values[mask].sum(axis=0))
        each = np.where(mask, values.sum((2, 3)), 0)
        np.testing.assert_array_equal(dataset["sumsig_intensity"], each)
        np.testing.assert_array_equal(dataset["roi"], mask)
    assert float(line_of(output, "sumsig")[-3]) == each[mask].min()


def test_the_size_of_pixels(file, values, tmp_path):
    out = tmp_path / "out.npz"
    sizes = ["--scale", "0.5 nm,1nm,2mrad,1 mrad", "--voltage", "300 kV"]
    call("run", file, "--udf", "integrateddpc", *sizes, "--out", out)
    known = [("y", "nm", 0.5), ("x", "nm", 1), ("ky", "mrad", 2), ("kx", "mrad", 1)]
    axes = [ud.Axis(name=name, unit=unit, scale=scale) for name, unit, scale in known]
    expected = integrated_dpc(open_file(file), axes=axes, voltage="300 kV").compute()
    with np.load(out) as arrays:
        np.testing.assert_array_equal(arrays["integrateddpc_phase"], expected["phase"])


def test_a_raw_file(tmp_path, values):
    path = tmp_path / "scan.raw"
    path.write_bytes(b"head" + values.astype(">u2").tobytes())
    shapes = ["--nav-shape", "6,8", "--sig-shape", "10,12", "--dtype", ">u2"]
    output = call("run", path, *shapes, "--offset", 4, "--udf", "sumsig")
    assert "read by raw binary" in output
    expected = values.sum(axis=(2, 3), dtype=np.int64)
    assert float(line_of(output, "sumsig")[-1]) == expected.max()
    wrong = call("run", path, *shapes, "--udf", "sumsig", code=1)
    assert f"ask for a file of 11520 bytes, but {path} has 11524" in wrong


def test_the_dataset_asked_for(tmp_path, values):
    h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["first"], f["second"] = values, values + 1
    assert "'first' (6, 8, 10, 12) uint16" in call("run", tmp_path / "a.h5", code=1)
    output = call("run", tmp_path / "a.h5", "--dataset", "second", "--udf", "sumsig")
    assert float(line_of(output, "sumsig")[-3]) == (values + 1).sum((2, 3)).min()


@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_local_schedulers(file, values, scheduler):
    output = call("run", file, "--scheduler", scheduler, "--chunks", "3,8,-1,-1", "--udf", "sumsig")
    assert float(line_of(output, "sumsig")[-1]) == values.sum((2, 3)).max()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ("nothing.npy", 1, "Error: there is no file"),
        ("scan.npy --udf disk", 2, "but r is missing"),
        ("scan.npy --udf rnig:ri=3,ro=4", 2, "did you mean 'ring'?"),
        ("scan.npy --udf disk:r=3,cx=99", 1, "no pixel of a frame of shape (10, 12)"),
        ("scan.npy --roi=1:x,2", 2, "'1:x,2' is not a region: write a slice"),
        ("scan.npy --roi=", 2, "is not a region"),
        ("scan.npy --chunks 4;4", 2, "Invalid value for '--chunks'"),
        ("scan.npy --chunks 4,4", 1, "(4, 4) do not fit the shape (6, 8, 10, 12)"),
        ("scan.npy --sig-shape 10,12", 1, "for any other file, pass none of them"),
        ("scan.npy --offset 8", 1, "pass all of them"),
        ("scan.npy --scale 1nm,1mrad", 2, "y, x, sig_y, sig_x"),
        ("scan.npy --scheduler treads", 1, "threads"),
        ("scan.npy --sig-dims 7", 1, "Error: sig_dims must be from 1 to 4"),
    ],
)
def test_mistakes_are_told_in_a_paragraph(file, monkeypatch, args, code, message):
    monkeypatch.chdir(file.parent)
    assert message in call("run", *args.split(), code=code)


@pytest.mark.usefixtures("warns_of_few_data")
def test_warnings_of_the_plan_are_told_once(file):
    output = call("run", file, "--udf", "pick", "--chunks", "6,8,2,-1")
    assert output.count("would do better: --chunks 6,8,-1,-1") == 1
    assert "rechunk" not in output


@pytest.mark.full
def test_the_demo_prints_python_that_does_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = call("demo", "--no-progress", "--plot", "demo.png")
    assert line_of(output, "sum", "intensity", "sig", "96 x 96")
    assert line_of(output, "sumsig", "intensity", "nav", "48 x 64")
    com = line_of(output, "com", "result", "nav", "48 x 64 x 2")
    assert float(com[-3]) == pytest.approx(-0.85, abs=0.2)
    assert float(com[-1]) == pytest.approx(0.85, abs=0.2)
    assert "wrote demo.png" in output
    assert Path("demo.png").read_bytes().startswith(b"\x89PNG")
    start = output.index("  import udfdask as ud")
    printed = textwrap.dedent(output[start : output.index("\n\n", start)])
    assert len(printed.splitlines()) == 5
    names = {}
    exec(printed.replace("progress=True", "progress=False"), names)
    recording = names["x"].compute()
    np.testing.assert_array_equal(names["pattern"]["intensity"], recording.sum(axis=(0, 1)))
    np.testing.assert_array_equal(names["image"]["intensity"], recording.sum(axis=(2, 3)))
    assert names["shift"]["result"].shape == (48, 64, 2)


def names(output):
    """The names of UDFs in a table, each once."""
    table = output[output.index("udf ") :].partition("\n\n")[0]
    return list(dict.fromkeys(line.split()[0] for line in table.splitlines()[1:]))


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


def test_the_plan_of_a_run(file):
    with raise_if_dask_computes():
        udfs = ["--udf", "com:r=4,cy=5,cx=6", "--udf", "stddev"]
        output = call("explain", file, *udfs, "--chunks", "2,4,-1,-1", "--roi", "3,:")
    x = open_file(file, chunks=(2, 4, -1, -1)).array
    plan = ud.explain(x, {"com": CoMUDF(r=4, cy=5, cx=6), "stddev": StdDevUDF()}, roi=np.s_[3, :])
    assert output == f"scan.npy: 6 x 8 positions of 10 x 12 uint16, read by NumPy\n\n{plan}\n"
    assert "2 of 6 are read" in output


def test_a_line_for_each_udf():
    lines = call("udfs").splitlines()
    assert [line.split()[0] for line in lines] == list(CATALOG)
    for line, cls in zip(lines, CATALOG.values(), strict=True):
        assert line.endswith(f"  {cls.__doc__.splitlines()[0]}")


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_each_is_described(name):
    """With its parameters and its results."""
    description = inspect.getdoc(CATALOG[name])
    parameters = inspect.signature(CATALOG[name]).parameters
    assert call("udfs", name) == f"{name}: {', '.join(parameters)}\n\n{description}\n"
    assert "\nNotes\n-----\n" in description


@pytest.fixture
def server(tmp_path):
    pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
    np.save(tmp_path / "scan.npy", np.ones((4, 6, 8, 10), "u1"))
    with serving(tmp_path) as files:
        yield files


def test_a_file_on_a_server(server, tmp_path):
    options = ["--udf", "sumsig", "--out", tmp_path / "sum.npz", "--no-progress"]
    found = call("run", f"{server.url}/scan.npy", *options)
    assert f"{server.url}/scan.npy: 4 x 6 positions of 8 x 10 uint8, read by NumPy" in found
    assert tables(found)[0][:2] == ["sumsig", "intensity"]
    (sums,) = np.load(tmp_path / "sum.npz").values()
    assert np.array_equal(sums, np.full((4, 6), 80))
    assert "scan.npy" in call("explain", f"{server.url}/scan.npy")


def test_options_for_the_server(server):
    server.header = ("X-Token", "abc")
    url = f"{server.url}/scan.npy"
    assert "the credentials in storage_options" in call("run", url, code=1)
    option = 'headers={"X-Token": "abc"}'
    assert "sumsig" in call("run", url, "--storage-option", option)
    wrong = call("run", url, "--storage-option", "anon", code=2)
    assert "Invalid value for '--storage-option'" in wrong
    path = server.folder / "scan.npy"
    assert "leave them out" in call("run", path, "--storage-option", "anon=true", code=1)
