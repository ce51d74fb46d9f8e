"""HDF5 files whose values are in other files: virtual datasets, links, parts of a recording."""

import os
import pickle

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from udfdask.errors import FileFormatError
from udfdask.io import open_file
from udfdask.udfs import SumUDF

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

FRAMES = np.random.default_rng(7).integers(1, 99, (6, 4, 5)).astype(np.uint16)


def virtual(file, name, sources, shape=FRAMES.shape):
    """Write a virtual dataset whose sources, each a file and a name, follow each other."""
    layout = h5py.VirtualLayout(shape, FRAMES.dtype)
    n = shape[0] // len(sources)
    for number, (other, inside) in enumerate(sources):
        source = h5py.VirtualSource(other, inside, (n, *shape[1:]))
        layout[number * n : (number + 1) * n] = source
    file.create_virtual_dataset(name, layout)


def write_sources(folder, kind):
    """Write ``scan.h5`` with a dataset ``scan`` of all frames; return the file of its values."""
    (folder / "raw").mkdir()
    with h5py.File(folder / "raw" / "frames.h5", "w") as f:
        f["entry/data"] = FRAMES
    with h5py.File(folder / "scan.h5", "w", libver="latest") as f:
        if kind == "virtual":
            virtual(f, "scan", [("raw/frames.h5", "entry/data")])
        elif kind == "virtual over virtual in another file":
            with h5py.File(folder / "raw" / "middle.h5", "w") as middle:
                virtual(middle, "inner", [("./frames.h5", "/entry/data")])
            virtual(f, "scan", [("raw/middle.h5", "inner")])
        elif kind == "external link of a group, and a soft link":
            f["group"] = h5py.ExternalLink("raw/frames.h5", "/entry")
            f["a/soft"] = h5py.SoftLink("/group/data")
            f["b/softer"] = h5py.SoftLink("/a/soft")
            virtual(f, "scan", [("scan.h5", "b/softer")])
        elif kind == "links over three files":
            with h5py.File(folder / "raw" / "middle.h5", "w") as middle:
                middle["there"] = h5py.ExternalLink("frames.h5", "entry/data")
            f["link"] = h5py.ExternalLink("raw/middle.h5", "there")
            virtual(f, "scan", [(".", "link")])
        else:
            f["scan"] = h5py.ExternalLink("raw/frames.h5", "/entry/data")
    return folder / "raw" / "frames.h5"


KINDS = [
    "virtual",
    "virtual over virtual in another file",
    "external link of a group, and a soft link",
    "links over three files",
    "link alone",
]


@pytest.mark.parametrize("kind", KINDS)
def test_values_in_another_file(tmp_path, kind):
    frames = write_sources(tmp_path, kind)
    array = open_file(tmp_path / "scan.h5", dataset="scan").array
    assert_eq(pickle.loads(pickle.dumps(array)), FRAMES)
    os.utime(frames, ns=(1, 1))  # as after a change of its values
    with pytest.raises(FileFormatError, match=r"frames\.h5 has changed"):
        array.compute(scheduler="synchronous")
    assert open_file(tmp_path / "scan.h5", dataset="scan").array.name != array.name
    with h5py.File(frames, "r+") as f:
        f.move("entry/data", "moved")
    with pytest.raises(FileFormatError, match=r"scan|link|inner"):
        open_file(tmp_path / "scan.h5", dataset="scan")
    frames.unlink()
    with pytest.raises(FileFormatError, match=r"frames\.h5 had .* cannot be opened \(No such file"):
        array.compute(scheduler="synchronous")  # HDF5 would give zeros
    with pytest.raises(FileFormatError, match=r"frames\.h5|link|softer"):
        open_file(tmp_path / "scan.h5", dataset="scan")
    with pytest.raises(FileFormatError, match=r"frames\.h5|link|group"):
        open_file(tmp_path / "scan.h5")


@pytest.mark.parametrize("beside", ["link", "file"])
@pytest.mark.parametrize("kind", ["virtual", "link alone", "links over three files"])
def test_values_beside_a_symbolic_link(tmp_path, kind, beside):
    """As in the folders of git-annex and of workflows, where each file is a link."""
    write_sources(tmp_path, kind)
    scan = tmp_path / "elsewhere" / "scan.h5"
    scan.parent.mkdir()
    if beside == "link":
        (tmp_path / "scan.h5").rename(scan.parent / "key")
        (tmp_path / "scan.h5").symlink_to("elsewhere/key")
        scan = tmp_path / "scan.h5"
    else:
        scan.symlink_to("../scan.h5")
    opened = open_file(scan, dataset="scan")
    assert opened.title == "scan"
    assert_eq(opened.array, FRAMES)


def test_a_source_that_is_too_short(tmp_path):
    with h5py.File(tmp_path / "part.h5", "w") as f:
        f["data"] = FRAMES[:5]
    layout = h5py.VirtualLayout((4, 4, 5), "u2")
    layout[:] = h5py.VirtualSource("part.h5", "data", FRAMES.shape)[2:]
    with h5py.File(tmp_path / "scan.h5", "w", libver="latest") as f:
        f.create_virtual_dataset("scan", layout)
    with pytest.raises(FileFormatError, match=r"data of .*part\.h5, which .*\(5, 4, 5\)"):
        open_file(tmp_path / "scan.h5")


def test_more_sources_than_a_process_may_open(tmp_path):
    """HDF5 reads zeros in place of those that it cannot open."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    for number in range(60):
        with h5py.File(tmp_path / f"{number}.h5", "w") as f:
            f["data"] = FRAMES[:1]
    with h5py.File(tmp_path / "scan.h5", "w", libver="latest") as f:
        virtual(f, "scan", [(f"{number}.h5", "data") for number in range(60)], (60, 4, 5))
    array = open_file(tmp_path / "scan.h5").array
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 20, limits[1]))
    try:
        with pytest.raises(FileFormatError, match="Too many open files"):
            array.compute(scheduler="synchronous")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert_eq(array, np.repeat(FRAMES[:1], 60, axis=0))


@pytest.fixture
def master(tmp_path):
    """A master file as DECTRIS writes it, with two files of data."""
    parts = {1: FRAMES[:4], 2: FRAMES[4:]}
    with h5py.File(tmp_path / "d_master.h5", "w") as f:
        f["entry/instrument/detector/detectorSpecific/flatfield"] = np.ones((40, 50), "f4")
        f["entry/instrument/detector/detectorSpecific/pixel_mask"] = np.ones((40, 50), "u4")
        f["entry/instrument/detector/detectorModule/flatfield"] = np.ones((9, 40, 50), "f4")
        for number, frames in parts.items():
            with h5py.File(tmp_path / f"d_data_{number:06}.h5", "w") as part:
                part.create_dataset("entry/data/data", data=frames, chunks=(1, 4, 5))
            link = h5py.ExternalLink(f"d_data_{number:06}.h5", "/entry/data/data")
            f[f"entry/data/data_{number:06}"] = link
        f["entry/data"].attrs["NX_class"] = np.bytes_("NXdata")
    return tmp_path / "d_master.h5"


@pytest.mark.parametrize("signal", [None, "data_000001"])
@pytest.mark.parametrize("chunks", [None, (5, 2, -1)])
def test_parts_are_one_recording(master, signal, chunks):
    if signal:
        with h5py.File(master, "r+") as f:
            f["entry/data"].attrs["signal"] = signal
    opened = open_file(master, chunks=chunks)
    assert_eq(opened.array, FRAMES)
    assert chunks is None or opened.array.chunks == ((5, 1), (2, 2), (5,))
    total = ud.run_udf(opened, SumUDF())["intensity"].compute()
    np.testing.assert_array_equal(total, FRAMES.sum(axis=0))
    assert opened.array.name == open_file(master, chunks=chunks).array.name
    assert_eq(open_file(master, dataset="entry/data").array, FRAMES)
    assert_eq(open_file(master, dataset="entry/data/data_000002").array, FRAMES[4:])
    os.utime(master.parent / "d_data_000002.h5", ns=(1, 1))
    assert open_file(master, chunks=chunks).array.name != opened.array.name


def test_parts_behind_a_default(master):
    with h5py.File(master, "r+") as f:
        f.attrs["default"] = "entry/plot"
        f["entry/plot"] = h5py.SoftLink("/entry/data")
        f["entry/data"].attrs["signal"] = "data_000001"
    assert_eq(open_file(master).array, FRAMES)


@pytest.mark.parametrize("number", [1, 2])
def test_a_missing_part(master, number):
    (master.parent / f"d_data_{number:06}.h5").unlink()
    match = rf"entry/data/data_{number:06} is missing, .* d_data_{number:06}\.h5"
    with pytest.raises(FileFormatError, match=match):
        open_file(master)
    assert open_file(master, dataset=f"entry/data/data_{3 - number:06}").array.shape[1:] == (4, 5)


def test_a_gap_between_parts(master):
    with h5py.File(master, "r+") as f:
        f["entry/data/data_000004"] = FRAMES
    with pytest.raises(FileFormatError, match=r"entry/data .*dataset="):
        open_file(master)


def test_sources_that_are_found_only_from_the_working_folder(tmp_path, monkeypatch):
    """From another one, HDF5 reads fill values, or the values of another file."""
    write_sources(tmp_path, "virtual")
    (tmp_path / "scans").mkdir()
    (tmp_path / "scan.h5").rename(tmp_path / "scans" / "scan.h5")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match=r"frames\.h5, which does not exist"):
        open_file("scans/scan.h5")


@pytest.mark.parametrize("target", ["/", "/entry"])
def test_circles_of_links(tmp_path, target):
    with h5py.File(tmp_path / "a.h5", "w") as a, h5py.File(tmp_path / "b.h5", "w") as b:
        a["entry/small"] = FRAMES[:, 0]
        a["entry/b"] = h5py.ExternalLink("b.h5", target)
        b["entry/frames"] = FRAMES
        b["entry/a"] = h5py.ExternalLink("./../" + tmp_path.name + "/a.h5", "/")
        b["entry/up"] = h5py.SoftLink("/")
    assert_eq(open_file(tmp_path / "a.h5").array, FRAMES)
