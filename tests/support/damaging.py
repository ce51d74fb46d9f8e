"""Files damaged as disks and broken copies damage them, and the only two outcomes there may be."""

import gc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from udfdask.errors import ArgumentValueError, UDFError
from udfdask.io import hyperspy_file, open_file
from udfdask.once_per_process import OncePerProcess

# Files are written anew for each example, so that the folder may be the same.
FUZZ = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


LEAVES_FILES_OPEN = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.usefixtures("files_closed"),
]
"""Marks for tests of readers that fail and leave files open."""


@pytest.fixture(scope="module")
def files_closed():
    """Files are closed here, where leaving them open is no error, also those of loaded signals."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hyperspy_file, "_loaded", OncePerProcess(4))
        yield
    gc.collect()


@st.composite
def damaged(draw, content: bytes, *, front: int = 512):
    """The content cut short, or with up to four bytes changed, half of them near the front."""
    if draw(st.integers(0, 2)) == 0:
        return content[: draw(st.integers(0, len(content) - 1))]
    changed = bytearray(content)
    last = len(content) - 1
    place = st.integers(0, min(front, last)) | st.integers(0, last)
    for _ in range(draw(st.integers(1, 4))):
        changed[draw(place)] = draw(st.sampled_from([0, 1, 0x39, 0x7F, 0xFF]) | st.integers(0, 255))
    return bytes(changed)


def outcome(path, *, named=None, **how):
    """The values of a file, or None if an error of our tree names it."""
    with warnings.catch_warnings():
        # Readers warn of what they then fail at, or of what does not matter.
        warnings.simplefilter("ignore")
        try:
            return open_file(path, **how).array.compute(scheduler="synchronous")
        except UDFError as error:
            said = error
    # What was passed as dataset= is no fault of the file's; its name will do.
    place = path.name if isinstance(said, ArgumentValueError) else str(named or path)
    assert place in str(said)
    assert "\n" not in str(said)
    assert len(str(said)) < 1500
    return None


def assert_same(values, expected):
    """Equal in every bit that counts: what is damaged may well be NaN."""
    assert values.shape == expected.shape
    assert values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)
