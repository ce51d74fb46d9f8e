"""NeXus, as facilities and programs write it: which dataset, which axes, which signal."""

import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.errors import FileFormatError
from udfdask.io import open_file

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

FRAMES = np.random.default_rng(3).integers(0, 99, (6, 4, 5)).astype(np.uint16)
SPECTRA = np.random.default_rng(4).integers(0, 99, (20, 64)).astype(np.uint16)

TEXTS = {
    "str": str,
    "bytes": lambda text: np.bytes_(text.encode()),
    "array of str": lambda text: np.array([text], object),
    "array of bytes": lambda text: np.array([text.encode()]),
    "padded": lambda text: np.bytes_(f"{text}  ".encode()),
}
"""How programs in Python, C and Fortran write a string."""


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "scan.nxs", "w") as opened:
        yield opened


def group(file, name, kind="NXdata", **attrs):
    """A group of a class of NeXus."""
    made = file.require_group(name)
    made.attrs["NX_class"] = kind
    made.attrs.update(attrs)
    return made


def opened(file, **kwargs):
    path = file.filename
    file.close()
    return open_file(path, **kwargs)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_in_any_form(file, text):
    data = group(file, "entry/data", signal=text("counts"))
    data["counts"], data["mask"], data["x"] = FRAMES, FRAMES, np.arange(6) * 3.0
    data["counts"].attrs["units"], data["x"].attrs["units"] = text("µm"), text("nm")
    data.attrs["axes"] = text("x:.:.")
    scan = opened(file)
    assert_eq(scan.array, FRAMES)
    x = scan.axes[0]
    assert (scan.unit, x.name, x.unit, x.scale) == ("µm", "x", "nm", 3.0)


@pytest.mark.parametrize("kind", ["S2", h5py.string_dtype("ascii")])
def test_units_in_latin_1(file, kind):
    file["data"] = FRAMES
    file["data"].attrs.create("units", "µm".encode("latin-1"), dtype=kind)
    assert opened(file).unit == "µm"


@pytest.mark.parametrize(("kind", "first"), [("f8", 0), ("u1", 120)])
def test_edges_of_bins(file, kind, first):
    """Also such whose sums are too large for their type."""
    data = group(file, "entry/data", signal="counts", axes=["time", ".", "."])
    data["counts"], data["time"] = FRAMES, (first + 2 * np.arange(7)).astype(kind)
    scan = opened(file)
    assert (scan.axes[0].scale, scan.axes[0].offset) == (2, first + 1)


def test_indices_count_and_not_the_order_of_axes(file):
    data = group(file, "entry/data", signal="frames", axes=[".", "kx", "ky"])
    data.attrs.update({"ky_indices": 1, "kx_indices": [2]})
    data["frames"], data["ky"], data["kx"] = FRAMES, np.arange(4), 7.0 - 0.5 * np.arange(5)
    found = [(axis.name, axis.scale) for axis in opened(file).axes]
    assert found == [("x", 1), ("ky", 1), ("kx", -0.5)]


def test_axes_of_the_dataset_if_the_group_names_none(file):
    data = group(file, "entry/data", signal="frames", axes="")
    data["frames"], data["t"] = FRAMES, 0.5 * np.arange(6)
    data["frames"].attrs["axes"] = "t:.:."
    assert [axis.scale for axis in opened(file).axes] == [0.5, 1, 1]


def test_names_that_are_not_utf_8(file):
    """They have no path, and are left out."""
    file["frames"] = FRAMES
    file.create_dataset(b"frames\xe9", data=np.zeros((9, 9, 9)))
    file[b"nowhere\xe9"] = h5py.ExternalLink("absent.h5", "/frames")
    scan = opened(file)
    assert_eq(scan.array, FRAMES)


@pytest.mark.parametrize("spectrum", ["group", "dataset", None])
def test_the_signal_decides(file, spectrum):
    data = group(file, "entry/data", signal="counts", auxiliary_signals=["errors", "angle"])
    data["counts"], data["angle"], data["errors"] = SPECTRA, SPECTRA, np.zeros((20, 128))
    file["entry/sample/orientation_matrix"] = np.eye(3)[None]
    if spectrum:
        (data if spectrum == "group" else data["counts"]).attrs["interpretation"] = b"spectrum"
    scan = opened(file)
    assert scan.reader.endswith("entry/data/counts")
    assert (scan.array.shape, scan.sig_dims) == ((20, 64), 1)


def test_a_map_of_spectra_and_one_of_images(file):
    for name, kind in (("spectra", "spectrum"), ("images", "image")):
        group(file, name, signal="data", interpretation=kind)["data"] = FRAMES
    path = file.filename
    with pytest.raises(FileFormatError, match=r"dataset=.*'images/data'.*'spectra/data'"):
        opened(file)
    assert open_file(path, dataset="spectra").sig_dims == 1
    assert open_file(path, dataset="images/data").sig_dims == 2
    assert open_file(path, dataset="spectra", sig_dims=2).sig_dims == 2


@pytest.mark.parametrize("default", ["absolute", "of the only entry"])
def test_default_paths_are_followed(file, default):
    raw = group(file, "entry/raw", signal="data")
    raw["data"] = np.zeros((7, 8, 9))
    group(file, "entry/data", signal="counts")["counts"] = FRAMES
    entry = group(file, "entry", "NXentry", default="data")
    if default == "absolute":
        file.attrs["default"], entry.attrs["default"] = "/entry", np.bytes_("/entry/data")
    assert_eq(opened(file).array, FRAMES)


@pytest.mark.parametrize("default", ["entry", "curve", 3])
def test_defaults_that_lead_nowhere(file, default):
    """Programs that plot curves have those as default."""
    file.attrs["default"] = default
    group(file, "entry", "NXentry", default=".")["data"] = FRAMES
    group(file, "curve", signal="sum")["sum"] = np.zeros(9)
    assert_eq(opened(file).array, FRAMES)


@pytest.mark.parametrize("size", [8, 80])
def test_a_default_that_is_an_image(file, size):
    """A preview is not the recording, but an image with a small matrix next to it is."""
    group(file, "entry", "NXentry", default="data")
    group(file, "entry/data", signal="counts")["counts"] = np.zeros((size, 9), "u1")
    file["entry/detector/frames"] = FRAMES
    assert opened(file).array.shape == ((6, 4, 5) if size == 8 else (80, 9))


@pytest.mark.parametrize("one", [1, np.bytes_("1")])
def test_the_signal_of_older_files(file, one):
    data = group(file, "entry/data")
    data["counts"], data["errors"] = FRAMES, FRAMES
    data["counts"].attrs.update(signal=one, axes="frame:y:x")
    data["frame"] = 2.0 * np.arange(6)
    scan = opened(file)
    assert scan.reader.endswith("counts")
    assert [axis.name for axis in scan.axes] == ["frame", "y", "x"]
    assert scan.axes[0].scale == 2


def test_a_default_behind_a_link_is_not_the_largest(file):
    file.attrs["default"] = "entry"
    entry = group(file, "entry", "NXentry", default="data")
    data = group(file, "entry/merlin", signal="counts", axes=["y", ".", "."])
    data["counts"], data["y"] = FRAMES, 0.5 * np.arange(6)
    group(file, "entry/reference", signal="counts")["counts"] = np.ones((16, 4, 5))
    entry["data"] = h5py.SoftLink("/entry/merlin")
    scan = opened(file)
    assert_eq(scan.array, FRAMES)
    assert (scan.axes[0].name, scan.axes[0].scale) == ("y", 0.5)


@pytest.mark.parametrize("default", ["", "entry/camera"])
def test_a_picture_is_not_a_recording(file, default):
    file.attrs["default"] = default
    group(file, "entry/detector", "NXdetector")["data"] = np.concatenate([FRAMES] * 60)
    camera = group(file, "entry/camera", signal="picture")
    camera["picture"] = np.ones((40, 50, 3), "u1")
    camera["picture"].attrs["interpretation"] = "rgb-image"
    assert opened(file).array.shape == (360, 4, 5)


def test_a_signal_that_is_a_link(file):
    """The axes are in NXdata, the frames somewhere else, as in files of BLISS and SOLEIL."""
    file["1.1/instrument/eiger/data"] = FRAMES
    data = group(file, "1.1/measurement/images", signal="eiger", axes=["x", ".", "."])
    data["eiger"] = h5py.SoftLink("/1.1/instrument/eiger/data")
    data["x"] = 3.0 * np.arange(6)
    scan = opened(file)
    assert_eq(scan.array, FRAMES)
    assert (scan.axes[0].name, scan.axes[0].scale) == ("x", 3)


def test_a_signal_that_is_lost(file):
    group(file, "entry/other", signal="data")["data"] = FRAMES
    data = group(file, "entry/data", signal="data")
    data["data"] = h5py.SoftLink("/entry/instrument/data")
    file["entry/instrument/data"] = h5py.ExternalLink("gone.h5", "/data")
    path = file.filename
    with pytest.raises(FileFormatError, match=r"scan\.nxs: entry/data/data is missing"):
        opened(file)
    assert_eq(open_file(path, dataset="entry/other").array, FRAMES)


@pytest.mark.parametrize("kind", ["NXdata", "NXcollection"])
def test_several_recordings_are_not_chosen_from(file, kind):
    for n, frames in enumerate([FRAMES, FRAMES[:3]]):
        group(file, f"scan_{n}", kind, signal="data")["data"] = frames
    with pytest.raises(FileFormatError, match=r"several recordings: pass dataset= as one of"):
        opened(file)


def test_parts_of_a_recording_differ(file):
    data = group(file, "entry/data")
    data["data_000001"], data["data_000002"] = FRAMES, FRAMES.astype("f4")
    with pytest.raises(FileFormatError, match="differ in shape or dtype"):
        opened(file)
