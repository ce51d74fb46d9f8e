"""Raw files: the same numbers as in the file, read when and where they are needed."""

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io import from_raw
from udfdask.testing.strategies import chunkings, shapes


@pytest.fixture
def scan():
    return np.random.default_rng(1).integers(0, 60000, (5, 7, 6, 4)).astype(np.uint16)


@pytest.fixture
def file(tmp_path, scan):
    path = tmp_path / "scan.raw"
    scan.tofile(path)
    return path


RIGHT = {"nav_shape": (5, 7), "sig_shape": (6, 4), "dtype": "uint16"}
BYTES = {"nav_shape": 34, "sig_shape": 40, "dtype": "u1", "offset": 48}
LAYOUTS = [
    RIGHT,
    RIGHT | {"chunks": (1, 7, 6, 4)},
    RIGHT | {"nav_shape": (7, 5)},
    RIGHT | {"sig_shape": (4, 6)},
    RIGHT | {"dtype": ">u2"},
    RIGHT | {"sig_shape": (24,)},
    BYTES | {"sig_shape": 48},
    BYTES | {"frame_header": 8},
    BYTES | {"frame_footer": 8},
]


def opened(file, **kwargs):
    return from_raw(file, **RIGHT, **kwargs)


def test_any_other_argument_gives_another_name(file):
    assert len({from_raw(file, **layout).name for layout in LAYOUTS}) == len(LAYOUTS)


def test_automatic_chunks_are_whole_frames_in_one_piece(file):
    frame = 6 * 4 * 2
    with dask.config.set({"array.chunk-size": 3 * frame}):
        assert opened(file).chunks == ((1,) * 5, (3, 3, 1), (6,), (4,))
    with dask.config.set({"array.chunk-size": 2 * 7 * frame}):
        assert opened(file).chunks == ((2, 2, 1), (7,), (6,), (4,))
    with dask.config.set({"array.chunk-size": 4 * 7 * frame}):
        assert opened(file).chunks == ((3, 2), (7,), (6,), (4,))


@pytest.mark.parametrize(
    "wrong",
    [
        {"nav_shape": (5, 8)},
        {"offset": 8},
        {"frame_header": 2},
    ],
)
def test_a_size_that_does_not_fit(file, wrong):
    with pytest.raises(FileFormatError):
        from_raw(file, **(RIGHT | wrong))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"nav_shape": (5, 0)}, ArgumentValueError),
        ({"sig_shape": ()}, ArgumentValueError),
        ({"nav_shape": (5, 7.5)}, ArgumentTypeError),
        ({"dtype": "u16"}, ArgumentTypeError),
        ({"dtype": object}, ArgumentTypeError),
        ({"offset": -1}, ArgumentValueError),
        ({"frame_footer": 1.5}, TypeError),
        ({"chunks": (1, 2)}, ArgumentValueError),
    ],
)
def test_wrong_arguments(file, wrong, error):
    with pytest.raises(error):
        from_raw(file, **(RIGHT | wrong))


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_any_layout_is_what_fromfile_reads(data, tmp_path_factory):
    shape = data.draw(shapes())
    dtype = np.dtype(data.draw(st.sampled_from(["u1", "<u2", ">u2", ">i4", "<f4", ">f8", "<c8"])))
    skips = st.integers(0, 9)
    offset, header, footer = data.draw(st.tuples(skips, skips, skips))
    record = np.dtype(
        [("header", "V", header), ("frame", dtype, tuple(shape.sig)), ("footer", "V", footer)]
    )
    n_frames = int(np.prod(shape.nav, dtype=int))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    path = tmp_path_factory.mktemp("raw") / "scan.raw"
    path.write_bytes(rng.integers(0, 100, offset + n_frames * record.itemsize, "u1").tobytes())
    wanted = np.fromfile(path, record, offset=offset)["frame"].reshape(tuple(shape))
    array = from_raw(
        path,
        nav_shape=tuple(shape.nav),
        sig_shape=tuple(shape.sig),
        dtype=dtype,
        offset=offset,
        frame_header=header,
        frame_footer=footer,
        chunks=data.draw(chunkings(tuple(shape))),
    )
    assert array.dtype == wanted.dtype
    np.testing.assert_array_equal(array.compute(scheduler="synchronous"), wanted)


def test_headers_are_not_copied(tmp_path, scan):
    padded = np.pad(scan.reshape(35, -1).view("u1"), ((0, 0), (16, 0)))
    (tmp_path / "f").write_bytes(padded.tobytes())
    array = opened(tmp_path / "f", frame_header=16, chunks=(5, 7, 6, 4))
    block = dask.get(dict(array.dask), (array.name, 0, 0, 0, 0))
    assert block.strides == (7 * 64, 64, 8, 2)
    assert not block.flags.owndata
    assert not block.flags.writeable
