"""Every error of the package is one of a tree, a builtin one too, and travels."""

import inspect
import pickle
import sys

import pytest

import udfdask as ud
from udfdask import errors
from udfdask.io import open_file

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass)]

BUILTIN = {
    "UDFError": Exception,
    "ArgumentTypeError": TypeError,
    "ArgumentValueError": ValueError,
    "InvalidMaskError": ValueError,
    "MissingMergeError": NotImplementedError,
    "UndeclaredBufferError": KeyError,
    "NotAvailableError": AttributeError,
    "FileFormatError": ValueError,
    "MemoryLimitError": MemoryError,
    "SumOverflowError": OverflowError,
    "DeviceError": RuntimeError,
    "UDFRunCancelled": Exception,
    "UDFWarning": UserWarning,
}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_each_is_public_a_builtin_one_and_travels(cls):
    assert cls.__name__ in errors.__all__
    assert issubclass(cls, (ud.UDFError, UserWarning))
    assert issubclass(cls, BUILTIN[cls.__name__])
    back = pickle.loads(pickle.dumps(cls("a message of several words")))
    assert type(back) is cls
    assert str(back) == "a message of several words"


def test_hyperspy_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "hyperspy.api", None)
    (tmp_path / "scan.hspy").write_bytes(b"1")
    with pytest.raises(ImportError, match="hyperspy"):
        open_file(tmp_path / "scan.hspy")
