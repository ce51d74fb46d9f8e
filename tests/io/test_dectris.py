"""Master files of DECTRIS detectors: parts, scans, broken pixels and flat fields."""

import sys

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from commands import call
from udfdask.corrections import CorrectionSet
from udfdask.errors import ArgumentValueError, FileFormatError, UDFWarning
from udfdask.io import OpenedFile, open_file
from udfdask.udfs import SumSigUDF, SumUDF

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

N, SIG = 30, (6, 7)
BROKEN = (2, 3)
LARGEST = np.iinfo(np.uint16).max


def some_frames(dtype="u2"):
    frames = np.random.default_rng(3).integers(1, 99, (N, *SIG)).astype(dtype)
    frames[:, *BROKEN] = np.iinfo(dtype).max
    return frames


def filters():
    try:
        import hdf5plugin
    except ImportError:
        return {"compression": "gzip"}
    return dict(hdf5plugin.Bitshuffle(cname="lz4"))


def write_master(folder, frames, *, n_part=12, triggers=(N, 1), flat=None, applied=1, **how):
    """Write a master file and the files of its parts, as an EIGER and an ARINA write them."""
    with h5py.File(folder / "x_master.h5", "w") as f:
        detector = f.create_group("entry/instrument/detector")
        detector["flatfield_correction_applied"] = np.int8(applied)
        specific = detector.create_group("detectorSpecific")
        specific["ntrigger"], specific["nimages"] = map(np.uint32, triggers)
        mask = np.zeros(SIG, "u4")
        mask[BROKEN] = 2
        specific["pixel_mask"] = mask
        specific["flatfield"] = np.ones(SIG, "f4") if flat is None else flat
        for number, start in enumerate(range(0, len(frames), n_part), start=1):
            name = f"data_{number:06}"
            with h5py.File(folder / f"x_{name}.h5", "w") as part:
                values = frames[start : start + n_part]
                how = how or {"chunks": (1, *SIG), **filters()}
                data = part.create_dataset("entry/data/data", data=values, **how)
                data.attrs["image_nr_low"] = start + 1
            f[f"entry/data/{name}"] = h5py.ExternalLink(f"x_{name}.h5", "/entry/data/data")
    return folder / "x_master.h5"


@pytest.mark.parametrize("dtype", ["u2", "u4"])
@pytest.mark.parametrize("n_part", [12, 5, 1, N])
@pytest.mark.parametrize("chunks", [None, (2, 4, -1, -1)])
def test_parts_are_a_scan(tmp_path, dtype, n_part, chunks):
    frames = some_frames(dtype)
    master = write_master(tmp_path, frames, n_part=n_part)
    opened = open_file(master, nav_shape=(5, 6), chunks=chunks)
    assert_eq(opened.array, frames.reshape(5, 6, *SIG))
    assert opened.present is None
    if chunks:
        assert opened.array.chunks[:2] == ((2, 2, 1), (4, 2))
    again = open_file(master, nav_shape=(5, 6), chunks=chunks)
    assert opened.array.name == again.array.name
    assert_eq(open_file(master, nav_shape=N).array, frames)


@pytest.mark.parametrize(
    "how", [{}, {"chunks": (1, *SIG)}, {"chunks": (4, *SIG)}, {"maxshape": (None, *SIG)}]
)
@pytest.mark.parametrize(
    ("nav", "offset"), [((4, 6), 0), ((4, 6), 3), ((6, 6), -2), ((2, 3, 7), 5)]
)
def test_frames_that_are_missing(tmp_path, how, nav, offset):
    """As in a raw file, whatever the storage of the parts."""
    frames = some_frames()
    master = write_master(tmp_path, frames, **how)
    opened = open_file(master, nav_shape=nav, sync_offset=offset)
    frames.tofile(tmp_path / "x.raw")
    raw = open_file(
        tmp_path / "x.raw", nav_shape=nav, sig_shape=SIG, dtype="u2", sync_offset=offset
    )
    assert_eq(opened.array, raw.array.compute())
    np.testing.assert_array_equal(
        np.ones(nav) if opened.present is None else opened.present,
        np.ones(nav) if raw.present is None else raw.present,
    )


def test_the_scan_of_the_file(tmp_path):
    """Each line has a trigger, and each of its pixels an image."""
    frames = some_frames()
    opened = open_file(write_master(tmp_path, frames, triggers=(6, 5)), chunks=(4, -1, -1, -1))
    assert_eq(opened.array, frames.reshape(6, 5, *SIG))
    assert opened.array.chunks[0] == (4, 2)
    assert [axis.name for axis in opened.axes] == ["y", "x", "sig_y", "sig_x"]
    assert open_file(tmp_path / "x_master.h5", nav_shape=(5, 6)).array.shape[:2] == (5, 6)
    part = open_file(tmp_path / "x_master.h5", dataset="entry/data/data_000003")
    assert_eq(part.array, frames[24:])


@pytest.mark.parametrize(
    ("triggers", "n_frames", "suggested"),
    [
        ((N, 1), N, r"nav_shape=\(5, 6\), or nav_shape=30"),
        ((1, N), N, r"nav_shape=\(5, 6\), or"),
        ((6, 5), 27, r"nav_shape=\(6, 5\), sync_offset=0"),
        ((1, 29), 29, r"nav_shape=\(5, 5\), sync_offset=0"),
    ],
)
def test_a_scan_that_the_file_does_not_know(tmp_path, triggers, n_frames, suggested):
    frames = some_frames()[:n_frames]
    master = write_master(tmp_path, frames, triggers=triggers)
    with pytest.warns(UDFWarning, match=suggested) as caught:
        opened = open_file(master)
    assert caught[0].filename == __file__
    assert_eq(opened.array, frames)


@pytest.mark.parametrize(
    ("description", "energy", "unit", "voltage"),
    [
        ("Dectris ARINA Si", 300e3, "eV", 300e3),
        ("DECTRIS SINGLA 1M", 200.0, "keV", 200e3),
        ("Dectris ARINA", 0.0, "eV", None),
        ("Dectris EIGER2 Si 4M", 12.4e3, "eV", None),
    ],
)
def test_the_voltage_of_electrons(tmp_path, description, energy, unit, voltage):
    master = write_master(tmp_path, some_frames())
    with h5py.File(master, "r+") as f:
        f["entry/instrument/detector/description"] = np.bytes_(description)
        f["entry/instrument/beam/incident_energy"] = energy
        f["entry/instrument/beam/incident_energy"].attrs["units"] = np.bytes_(unit)
    assert open_file(master, nav_shape=N).voltage == voltage


def test_chunks_are_decoded_without_hdf5(tmp_path, monkeypatch):
    """So that all threads decode at the same time."""
    master = write_master(tmp_path, some_frames())
    opened = open_file(master, nav_shape=(5, 6))
    monkeypatch.setattr("udfdask.io.hdf5.HDF5Dataset._from_library", None)
    assert_eq(opened.array, some_frames().reshape(5, 6, *SIG))


def test_a_scan_of_another_size(tmp_path):
    master = write_master(tmp_path, some_frames())
    with pytest.raises(ArgumentValueError, match=r"has 25 positions, but x_master has 30 frames"):
        open_file(master, nav_shape=(5, 5))
    (tmp_path / "x_data_000002.h5").unlink()
    with pytest.raises(FileFormatError, match=r"x_data_000002\.h5"):
        open_file(master, nav_shape=(5, 6))


def test_nav_shape_of_any_file(tmp_path):
    np.save(tmp_path / "scan.npy", some_frames())
    opened = open_file(tmp_path / "scan.npy", nav_shape=(5, 6), chunks=(2, -1, -1, -1))
    assert_eq(opened.array, some_frames().reshape(5, 6, *SIG))
    assert opened.array.chunks[0] == (2, 2, 1)


def test_corrections(tmp_path):
    """The detector has multiplied by the flat field already if the file says so."""
    frames = some_frames()
    flat = np.random.default_rng(4).uniform(0.5, 2, SIG).astype("f4")
    flat[BROKEN] = np.nan
    for applied in (1, 0):
        master = write_master(tmp_path, frames, flat=flat, applied=applied)
        opened = open_file(master, nav_shape=(5, 6))
        corrections = opened.corrections
        np.testing.assert_array_equal(np.argwhere(corrections.excluded_pixels), [BROKEN])
        gain = 1 if applied else flat
        assert applied == (corrections.gain is None)
        found = ud.run_udf(opened, SumUDF(), corrections=corrections)["intensity"].compute()
        truth = (frames * gain).sum(axis=0, dtype=float)
        around = [truth[y, x] for y in (1, 2, 3) for x in (2, 3, 4) if (y, x) != BROKEN]
        truth[BROKEN] = np.mean(around)
        np.testing.assert_allclose(found, truth, rtol=1e-5)
    part = opened[1:3, :, 1:, 3]
    np.testing.assert_array_equal(part.corrections.excluded_pixels, np.arange(1, 6) == 2)
    np.testing.assert_array_equal(part.corrections.gain, flat[1:, 3])
    assert opened[2].corrections is opened.corrections
    assert "excluded_pixels=1" in repr(opened)


def test_corrections_of_other_frames(tmp_path):
    """A mask of the whole detector does not fit frames of a region, and one without bad pixels
    changes nothing."""
    master = write_master(tmp_path, some_frames())
    with h5py.File(master, "r+") as f:
        detector = f["entry/instrument/detector/detectorSpecific"]
        detector["pixel_mask"][...] = 0
        assert open_file(master, nav_shape=N).corrections is None
        del detector["pixel_mask"]
        detector["pixel_mask"] = np.ones((9, 9), "u4")
    assert open_file(master, nav_shape=N).corrections is None


def test_corrections_that_a_run_does_not_get(tmp_path):
    opened = open_file(write_master(tmp_path, some_frames()), nav_shape=(5, 6))
    with pytest.warns(UDFWarning, match=r"excluded_pixels=1.*corrections=opened\.corrections"):
        stored = ud.run_udf(opened, SumSigUDF())
    assert stored["intensity"].compute().min() > LARGEST
    for given in (opened.corrections, CorrectionSet()):
        ud.run_udf(opened, SumSigUDF(), corrections=given)


def test_the_command_line_corrects(tmp_path):
    run = ("run", write_master(tmp_path, some_frames()), "--nav-shape", "5,6", "--udf", "sum")
    assert "warning: the run does not use" in call(*run, "--out", tmp_path / "stored.npz")
    assert "warning" not in call(*run, "--out", tmp_path / "corrected.npz", "--correct")
    sums = []
    for name in ("stored", "corrected"):
        with np.load(tmp_path / f"{name}.npz") as results:
            sums.append(results["sum_intensity"])
    np.testing.assert_array_equal(np.argwhere(sums[0] != sums[1]), [BROKEN])


def test_a_part_of_corrections_by_coordinates():
    import dask.array as da

    from udfdask import Axis

    axes = tuple(Axis(name=name) for name in "abc")
    corrections = CorrectionSet(excluded_pixels=(4, 1))
    how = {"sig_dims": 2, "reader": "", "title": "", "axes": axes, "corrections": corrections}
    part = OpenedFile(array=da.ones((2, 5, 4)), **how)[:, 3:]
    np.testing.assert_array_equal(np.argwhere(part.corrections.excluded_pixels), [[1, 1]])


def test_hdf5plugin_is_named_if_it_is_missing(tmp_path, monkeypatch):
    pytest.importorskip("hdf5plugin", reason="hdf5plugin is not in any extra")
    master = write_master(tmp_path, some_frames())
    monkeypatch.setitem(sys.modules, "hdf5plugin", None)
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda number: number < 256)
    monkeypatch.setattr("udfdask.io.hdf5.hdf5_decoder", lambda filters: None)
    match = r"x_data_000001\.h5 is compressed with .*32008.* needs hdf5plugin.*pip install"
    with pytest.raises(ImportError, match=match):
        open_file(master, nav_shape=N)


def test_a_virtual_dataset_of_the_parts(tmp_path):
    """As NXmx files have it."""
    frames = some_frames()
    master = write_master(tmp_path, frames, triggers=(5, 6))
    with h5py.File(master, "r+", libver="latest") as f:
        layout = h5py.VirtualLayout(frames.shape, "u2")
        for number in (1, 2, 3):
            begin = 12 * (number - 1)
            n = len(frames[begin : begin + 12])
            source = h5py.VirtualSource(f"x_data_{number:06}.h5", "entry/data/data", (n, *SIG))
            layout[begin : begin + n] = source
        f.create_virtual_dataset("entry/data/data", layout)
    opened = open_file(master)
    assert opened.reader.endswith("entry/data/data")
    assert_eq(opened.array, frames.reshape(5, 6, *SIG))
    assert opened.corrections is not None
