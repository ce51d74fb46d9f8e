"""Recordings of real instruments, through the command line and through the API.

They are not part of the repository: `UDFDASK_TEST_DATA` is the folder that holds them.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import udfdask as ud
from udfdask.io import OpenedFile, open_file
from udfdask.udfs import SumSigUDF, SumUDF

FOLDER = os.environ.get("UDFDASK_TEST_DATA")

pytestmark = [
    pytest.mark.skipif(FOLDER is None, reason="UDFDASK_TEST_DATA names no folder of recordings"),
]


class Recording(NamedTuple):
    """A file and what is known of it from elsewhere."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    sig_dims: int
    ragged: tuple[int, ...]
    """Chunks that divide neither navigation nor signal evenly."""
    units: tuple[str | None, ...]


RECORDINGS = [
    Recording("001_4x2_6bit.mib", (2, 4, 256, 256), "|u1", 2, (1, 3, 100, 77), (None,) * 4),
    Recording(
        "002_merlin_test_roi_sig256x128_nav4x2_hot_pixel_52x_39y.mib",
        (2, 4, 128, 256),
        ">u2",
        2,
        (2, 3, 60, 100),
        (None,) * 4,
    ),
    Recording("bcf_v2_50x50px.bcf", (50, 50, 2048), "|u1", 1, (17, 23, 900), ("µm", "µm", "keV")),
    Recording("test1.blo", (3, 2, 144, 144), "|u1", 2, (2, 2, 100, 50), ("nm", "nm", "cm", "cm")),
]


@pytest.fixture(params=RECORDINGS, ids=lambda recording: recording.name)
def recording(request) -> Recording:
    return request.param


@pytest.fixture(params=["as loaded", "ragged"])
def chunks(request, recording) -> tuple[int, ...] | None:
    return None if request.param == "as loaded" else recording.ragged


def opened(recording: Recording, chunks: tuple[int, ...] | None) -> OpenedFile:
    return open_file(Path(FOLDER) / recording.name, chunks=chunks)


def expected_sums(data: np.ndarray, sig_dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact sums over navigation and over signal."""
    nav = data.ndim - sig_dims
    return (
        data.sum(axis=tuple(range(nav)), dtype=np.uint64),
        data.sum(axis=tuple(range(nav, data.ndim)), dtype=np.uint64),
    )


def test_every_file_of_the_folder_is_tested():
    beside = {".hdr", ".md"}
    names = {path.name for path in Path(FOLDER).iterdir() if path.suffix not in beside}
    assert names == {recording.name for recording in RECORDINGS}


def test_what_is_opened(recording, chunks):
    file = opened(recording, chunks)
    assert file.array.shape == recording.shape
    assert file.array.dtype == np.dtype(recording.dtype)
    assert file.sig_dims == recording.sig_dims
    assert tuple(axis.unit for axis in file.axes) == recording.units
    assert file.array.npartitions == 1 if chunks is None else file.array.npartitions > 8


def test_through_the_api(recording, chunks):
    file = opened(recording, chunks)
    lazy = ud.run_udf(file.array, [SumUDF(), SumSigUDF()], sig_dims=file.sig_dims)
    total, each = ud.compute(*lazy)
    total_expected, each_expected = expected_sums(file.array.compute(), file.sig_dims)
    np.testing.assert_array_equal(total["intensity"], total_expected)
    np.testing.assert_array_equal(each["intensity"], each_expected)


@pytest.mark.parametrize("dataset", [0, "1", "EDX", None])
def test_signals_of_the_map(dataset):
    file = open_file(Path(FOLDER) / "bcf_v2_50x50px.bcf", dataset=dataset)
    shapes = {0: (50, 50), "1": (825, 1100), "EDX": (50, 50, 2048), None: (50, 50, 2048)}
    assert file.array.shape == shapes[dataset]
    assert file.sig_dims == (1 if file.array.ndim == 3 else 2)
