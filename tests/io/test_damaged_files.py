"""NumPy, raw, CSR, TOML and NetCDF files, damaged: right values, or an error with the path."""

import os
import socket
import stat
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaging import FUZZ, LEAVES_FILES_OPEN, assert_same, damaged, outcome
from udfdask.errors import ArgumentTypeError, FileFormatError
from udfdask.io import from_raw, from_raw_csr, open_file

pytestmark = [pytest.mark.full, *LEAVES_FILES_OPEN]


VALUES = np.arange(2 * 3 * 4 * 5, dtype=np.uint16).reshape(2, 3, 4, 5)


def npy(values):
    """What numpy.save writes."""
    import io

    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


NPY = npy(VALUES)


def check_npy(path):
    values = outcome(path)
    if values is not None:
        assert_same(values, np.load(path, allow_pickle=False))
    return values


class TestNumPy:
    def test_each_length(self, tmp_path):
        path = tmp_path / "a.npy"
        for length in range(len(NPY)):
            path.write_bytes(NPY[:length])
            assert outcome(path) is None, length

    @FUZZ
    @given(st.data())
    @pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
    def test_damaged(self, tmp_path, data):
        path = tmp_path / "a.npy"
        path.write_bytes(data.draw(damaged(NPY, front=128)))
        check_npy(path)

    @pytest.mark.parametrize(
        "shape",
        [
            "(10**18,)",
            f"({10**18}, 4)",
            f"({2**63}, 2)",
            "(-1, 4)",
            "(-2, -60)",
            f"({2**32}, {2**32})",
            "(2.0, 60)",
            "('a',)",
            "()",
            "(1,) * 70",
        ],
    )
    def test_shapes_that_cannot_be(self, tmp_path, shape):
        header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
        path = tmp_path / "a.npy"
        path.write_bytes(content + bytes(240))
        with pytest.raises(FileFormatError, match=r"a\.npy"):
            open_file(path)

    @pytest.mark.parametrize("version", [0, 2, 3, 4, 255])
    def test_versions(self, tmp_path, version):
        path = tmp_path / "a.npy"
        path.write_bytes(NPY[:6] + bytes([version]) + NPY[7:])
        check_npy(path)

    @pytest.mark.parametrize(
        "values",
        [
            np.array([None, {}]),
            np.array(["a", "b"]),
            np.array([b"a"]),
            np.zeros(4, [("a", "u1"), ("b", "f4")]),
            np.array(3.0),
            np.zeros((4, 4), "V3"),
        ],
        ids=lambda values: f"{values.dtype.kind}{values.ndim}",
    )
    def test_no_numbers(self, tmp_path, values):
        np.save(tmp_path / "a.npy", values)
        with pytest.raises(FileFormatError, match=r"a\.npy"):
            open_file(tmp_path / "a.npy")

    @pytest.mark.parametrize(
        "values",
        [
            np.asfortranarray(VALUES),
            VALUES.astype(">f8"),
            np.zeros((3, 0, 4, 4)),
            np.arange(4).astype("M8[s]"),
            np.ones((2, 2), np.float16),
        ],
        ids=["Fortran", "big-endian", "no row", "times", "float16"],
    )
    def test_unusual_and_right(self, tmp_path, values):
        np.save(tmp_path / "a.npy", values)
        assert_same(check_npy(tmp_path / "a.npy"), values)

    def test_more_than_one_array(self, tmp_path):
        (tmp_path / "a.npy").write_bytes(NPY + NPY)
        assert_same(check_npy(tmp_path / "a.npy"), VALUES)


class TestRaw:
    HOW = {"nav_shape": (2, 3), "sig_shape": (4, 5), "dtype": "<u2"}

    def test_each_length(self, tmp_path):
        path = tmp_path / "a.raw"
        for length in range(VALUES.nbytes):
            path.write_bytes(VALUES.tobytes()[:length])
            assert outcome(path, **self.HOW) is None, length

    @FUZZ
    @given(st.data())
    def test_damaged(self, tmp_path, data):
        path = tmp_path / "a.raw"
        path.write_bytes(data.draw(damaged(VALUES.tobytes())))
        values = outcome(path, **self.HOW)
        if values is not None:
            assert_same(values, np.fromfile(path, "<u2").reshape(VALUES.shape))

    @pytest.mark.parametrize("dtype", ["O", "U3", "S2", "V4", "u1,f4", "(2,2)u1", ",u2", "x9"])
    def test_types_that_are_no_numbers(self, tmp_path, dtype):
        (tmp_path / "a.raw").write_bytes(bytes(240))
        with pytest.raises(ArgumentTypeError, match="dtype must be"):
            from_raw(tmp_path / "a.raw", nav_shape=2, sig_shape=3, dtype=dtype)


TYPES = ("<i4", "<i4", "<u2")
CSR = {
    name: np.array(values, dtype).tobytes()
    for name, values, dtype in zip(
        ("indptr", "indices", "data"),
        ([0, 2, 2, 5, 6], [1, 3, 0, 2, 5, 4], [7, 8, 9, 1, 2, 3]),
        TYPES,
        strict=True,
    )
}
TOML = """[params]
filetype = "raw_csr"
nav_shape = [2, 2]
sig_shape = [2, 3]
[raw_csr]
indptr_file = "indptr"
indptr_dtype = "<i4"
indices_file = "indices"
indices_dtype = "<i4"
data_file = "data"
data_dtype = "<u2"
"""


def dense(folder):
    """The frames of the files in a folder, entry by entry."""
    pointers, indices, values = (
        np.fromfile(folder / name, dtype) for name, dtype in zip(CSR, TYPES, strict=True)
    )
    frames = np.zeros((4, 6), np.uint16)
    for frame in range(4):
        for entry in range(pointers[frame], pointers[frame + 1]):
            frames[frame, indices[entry]] += values[entry]
    return frames.reshape(2, 2, 2, 3)


@pytest.fixture
def csr(tmp_path):
    pytest.importorskip("sparse", reason="sparse is an extra")
    for name, content in CSR.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "scan.toml").write_text(TOML)
    return tmp_path / "scan.toml"


class TestCSR:
    def test_whole(self, csr):
        assert_same(outcome(csr).todense(), dense(csr.parent))

    @pytest.mark.parametrize("name", CSR)
    def test_each_length(self, csr, name):
        for length in range(len(CSR[name])):
            (csr.parent / name).write_bytes(CSR[name][:length])
            assert outcome(csr, named=csr.parent) is None, length

    @FUZZ
    @given(st.data())
    def test_damaged(self, csr, data):
        name = data.draw(st.sampled_from(list(CSR)))
        for other, content in CSR.items():
            (csr.parent / other).write_bytes(content)
        (csr.parent / name).write_bytes(data.draw(damaged(CSR[name])))
        frames = outcome(csr, named=csr.parent)
        if frames is not None:
            assert_same(frames.todense(), dense(csr.parent))

    @FUZZ
    @given(st.data())
    def test_damaged_description(self, csr, data):
        csr.write_bytes(data.draw(damaged(TOML.encode())))
        with suppress(FileNotFoundError):  # another name of a file
            frames = outcome(csr, named=csr.parent)
            assert frames is None or frames.shape[-1] > 0

    @pytest.mark.parametrize("key", ["nav_shape", "sig_shape"])
    @pytest.mark.parametrize("value", ['"a"', "1.5", "[]", "[-1]", "[0]", "[[2]]", "{}", "true"])
    def test_shapes_of_the_wrong_type(self, csr, key, value):
        lines = [f"{key} = {value}" if key in line else line for line in TOML.splitlines()]
        csr.write_text("\n".join(lines))
        with pytest.raises(FileFormatError, match=r"scan\.toml|indptr"):
            open_file(csr)

    @pytest.mark.parametrize("key", ["indptr_file", "data_file", "indptr_dtype", "data_dtype"])
    @pytest.mark.parametrize(
        "value", ["1", "[]", '""', '"."', '"float16"', '"\\u0000"', "1979-05-27"]
    )
    def test_files_and_types_of_the_wrong_type(self, csr, key, value):
        lines = [f"{key} = {value}" if key in line else line for line in TOML.splitlines()]
        csr.write_text("\n".join(lines))
        with pytest.raises((FileFormatError, FileNotFoundError)) as caught:
            open_file(csr)
        assert csr.parent.name in str(caught.value)

    def test_float16(self, csr):
        files = [csr.parent / name for name in CSR]
        with pytest.raises(ArgumentTypeError, match=r"float16.*write the values again as float32"):
            from_raw_csr(
                *files,
                nav_shape=(2, 2),
                sig_shape=(2, 3),
                indptr_dtype="<i4",
                indices_dtype="<i4",
                dtype="<f2",
            )


@pytest.fixture
def netcdf(tmp_path):
    """A file with a scan of 3 axes and a coordinate."""
    netcdf_file = pytest.importorskip("scipy.io", reason="SciPy is an extra").netcdf_file
    pytest.importorskip("xarray", reason="xarray is an extra")
    with netcdf_file(tmp_path / "a.nc", "w") as file:
        for name, size in (("y", 2), ("ky", 3), ("kx", 4)):
            file.createDimension(name, size)
        file.createVariable("y", "f8", ("y",))[:] = [1.0, 1.5]
        file.createVariable("scan", "i2", ("y", "ky", "kx"))[:] = np.arange(24).reshape(2, 3, 4)
    return tmp_path / "a.nc"


def check_netcdf(path):
    from scipy.io import netcdf_file

    values = outcome(path, dataset="scan")
    if values is not None:
        with netcdf_file(path, mmap=True) as file:
            stored = file.variables["scan"][:].copy()
        assert_same(values, stored)
    return values


class TestNetCDF:
    def test_each_length(self, netcdf):
        content = netcdf.read_bytes()
        assert check_netcdf(netcdf) is not None
        for length in range(0, len(content), 3):
            netcdf.write_bytes(content[:length])
            check_netcdf(netcdf)

    @FUZZ
    @given(st.data())
    @pytest.mark.filterwarnings("ignore")
    def test_damaged(self, netcdf, data):
        content = netcdf.read_bytes()
        try:
            netcdf.write_bytes(data.draw(damaged(content)))
            check_netcdf(netcdf)
        finally:
            netcdf.write_bytes(content)


SUFFIXES = [
    *("npy", "npz", "h5", "hdf5", "nc", "cdf", "zarr", "toml", "raw", "mib", "blo", "bcf", "hspy"),
    *("zspy", "emd", "tif", "tiff", "dm3", "dm4", "ser", "emi", "mrc", "rpl", "unf", "msa", "nxs"),
    *("dens", "tvips", "prz", "sur", "spd", "spc", "img", "dat", "png", "jpg", "xml", "hdr", ""),
]


class TestWrongContent:
    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize("content", [b"", b"1", b"text of no use, but of a few words\n" * 9])
    def test_short_files_of_every_suffix(self, tmp_path, suffix, content):
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(content)
        with suppress(ImportError):  # a package for this format only
            assert outcome(path) is None

    @pytest.mark.parametrize("suffix", ["zarr", "mib", "h5", "tif", "raw"])
    def test_numpy_files_with_another_suffix(self, tmp_path, suffix):
        (tmp_path / f"a.{suffix}").write_bytes(NPY)
        assert_same(outcome(tmp_path / f"a.{suffix}"), VALUES)

    def test_a_zip_called_npy(self, tmp_path):
        with (tmp_path / "a.npy").open("wb") as stream:
            np.savez(stream, a=VALUES)
        assert outcome(tmp_path / "a.npy") is None

    def test_hdf5_called_mib(self, tmp_path):
        h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
        with h5py.File(tmp_path / "a.mib", "w") as file:
            file["scan"] = VALUES
        assert_same(outcome(tmp_path / "a.mib"), VALUES)

    @pytest.mark.parametrize("suffix", ["npy", "h5", "mib", "toml", "nc", "hspy", "raw"])
    def test_a_folder_instead_of_a_file(self, tmp_path, suffix):
        (tmp_path / f"a.{suffix}").mkdir()
        assert outcome(tmp_path / f"a.{suffix}") is None


PATHS = ["a\0.npy", "~nobody-there/a.npy", "", "x" * 5000]
NO_PATH = r"a path must be a str or a pathlib\.Path"


class TestNoFiles:
    """A pipe is waited for without end when it is opened."""

    def test_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "a.npy")
        with pytest.raises(FileFormatError, match=r"a\.npy is a pipe"):
            open_file(tmp_path / "a.npy")
        with pytest.raises(FileFormatError, match="pipe"):
            from_raw(tmp_path / "a.npy", nav_shape=2, sig_shape=2, dtype="u1")

    def test_a_socket(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("a.mib")
            with pytest.raises(FileFormatError, match="a socket"):
                open_file("a.mib")

    def test_a_loop_of_links(self, tmp_path):
        (tmp_path / "a.npy").symlink_to("b.npy")
        (tmp_path / "b.npy").symlink_to("a.npy")
        with pytest.raises(FileFormatError, match=r"a\.npy.*not a path to a file"):
            open_file(tmp_path / "a.npy")

    @pytest.mark.parametrize(
        ("path", "error", "match"),
        [
            ("/dev/zero", FileFormatError, "/dev/zero is a pipe, a socket or a device"),
            *((path, FileFormatError, "path") for path in PATHS),
            *((path, ArgumentTypeError, NO_PATH) for path in (None, 3, b"a.npy", ["a.npy"])),
            (np.ones((2, 3)), ArgumentTypeError, r"got ndarray: .*an array needs no opening"),
        ],
    )
    def test_paths_that_cannot_be(self, path, error, match):
        with pytest.raises(error, match=match):
            open_file(path)

    def test_a_link_to_nothing(self, tmp_path):
        (tmp_path / "a.npy").symlink_to("gone.npy")
        with pytest.raises(FileNotFoundError, match="check the path"):
            open_file(tmp_path / "a.npy")

    @pytest.mark.full
    def test_without_permission(self, tmp_path):
        """In another process, which is not root's any more."""
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        np.save(tmp_path / "a.npy", VALUES)
        (tmp_path / "folder.zarr").mkdir(mode=0o700)
        (tmp_path / "a.npy").chmod(stat.S_IRUSR)
        for folder in (tmp_path, *tmp_path.parents[:-2]):
            folder.chmod(0o755)
        program = (
            "import os, sys\n"
            "from udfdask.errors import FileFormatError\n"
            "from udfdask.io import open_file\n"
            "import udfdask.io.numpy_file, numpy, dask.array\n"
            "os.setuid(65534)\n"
            "for name in sys.argv[1:]:\n"
            "    try:\n"
            "        open_file(name)\n"
            "    except FileFormatError as error:\n"
            "        print(error)\n"
        )
        names = [str(tmp_path / "a.npy"), str(tmp_path / "folder.zarr")]
        done = subprocess.run(
            [sys.executable, "-c", program, *names], capture_output=True, text=True, check=True
        )
        lines = done.stdout.splitlines()
        assert [line.split(" cannot be read by this user")[0] for line in lines] == names
