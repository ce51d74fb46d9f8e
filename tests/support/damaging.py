"""Files damaged as disks and broken copies damage them, and the only two outcomes there may be."""

import gc
import warnings

import pytest

from udfdask.base.once_per_process import OncePerProcess
from udfdask.errors import ArgumentValueError, UDFError
from udfdask.io import hyperspy_file, open_file

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
