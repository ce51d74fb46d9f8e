"""Define every exception and warning class of udfdask.

The tree, with the builtin exception that also catches each class::

    UDFError
    ├── ArgumentTypeError      TypeError            an argument of the wrong type
    ├── ArgumentValueError     ValueError           an argument with an invalid value
    │   └── InvalidMaskError                        a valid-data mask of wrong dtype or shape
    ├── MissingMergeError      NotImplementedError  buffers without a way to merge them
    ├── UndeclaredBufferError  KeyError             a result that was never declared
    ├── NotAvailableError      AttributeError       something used before it exists
    ├── FileFormatError        ValueError           a file that cannot be read
    ├── MemoryLimitError       MemoryError          a run that needs more than its `max_memory=`
    ├── SumOverflowError       OverflowError        a sum of integers that does not fit 64 bits
    ├── DeviceError            RuntimeError         CUDA is needed but not available
    └── UDFRunCancelled                             a run that was stopped before its end

    UDFWarning (UserWarning)                        a plan that is slow or needs much memory

An exception from a method that a user wrote is not in this tree: it keeps its own type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from udfdask.advice import Advice

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "DeviceError",
    "FileFormatError",
    "InvalidMaskError",
    "MemoryLimitError",
    "MissingMergeError",
    "NotAvailableError",
    "SumOverflowError",
    "UDFError",
    "UDFRunCancelled",
    "UDFWarning",
    "UndeclaredBufferError",
]

_SECRETS = re.compile(r"(?<=://)[^/\s@'\"]+@|\?[^\s'\"]+")
"""A user name and password in a URL, and its query, which can contain a signature."""


def without_secrets(text: str) -> str:
    """Return a text with URLs, without passwords and queries."""
    return _SECRETS.sub("", text)


def missing_package(package: str, *, purpose: str, extra: str = "io") -> ImportError:
    """Return the error for a missing package; its message says how to install the package."""
    return ImportError(
        f'{purpose} needs {package}, which is not installed: pip install "udfdask[{extra}]"',
        name=package,
    )


def unknown_arguments(
    caller: str, unknown: Iterable[str], known: Iterable[str], *, remedy: str
) -> ArgumentTypeError:
    """Take names that a function does not know, and those it does; return an error with guesses."""
    import difflib  # only a mistake needs it

    names, choices = sorted(unknown), list(known)
    guesses = [difflib.get_close_matches(name, choices, n=1) for name in names]
    meant = ", ".join(repr(found[0]) for found in guesses if found)
    return ArgumentTypeError(
        f"{caller}() has no argument {', '.join(map(repr, names))}"
        + (f"; did you mean {meant}?" if meant else ".")
        + f" {remedy}"
    )


class UDFError(Exception):
    """Base class of all udfdask errors.

    Examples
    --------
    >>> import udfdask as ud
    >>> issubclass(ud.ArgumentValueError, (ud.UDFError, ValueError))
    True
    """


class ArgumentTypeError(UDFError, TypeError):
    """An argument, or a declaration of a UDF, has the wrong type.

    Examples
    --------
    >>> import numpy as np, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> ud.run_udf(np.ones((2, 3, 4, 4)), SumUDF())
    Traceback (most recent call last):
    udfdask.errors.ArgumentTypeError: expected a dask array of shape (*nav, *sig), ...
    """


class ArgumentValueError(UDFError, ValueError):
    """An argument, or a declaration or return value of a UDF, has an invalid value.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> ud.run_udf(da.ones((2, 3, 4, 4)), SumUDF(), sig_dims=9)
    Traceback (most recent call last):
    udfdask.errors.ArgumentValueError: ...
    """


class InvalidMaskError(ArgumentValueError):
    """A valid-data mask is not boolean or does not broadcast to its array.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> class Total(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"total": self.buffer(kind="nav")}
    ...     def process_frame(self, frame):
    ...         self.results.total[:] = frame.sum()
    ...     def get_results(self):
    ...         return {"total": self.with_mask(self.results.total, mask=[1.0, 0.0])}
    >>> ud.run_udf(da.ones((2, 4, 4)), Total())["total"].compute()
    Traceback (most recent call last):
    udfdask.errors.InvalidMaskError: ...
    """


class MissingMergeError(UDFError, NotImplementedError):
    """A UDF has buffers that the default merge cannot combine, and has no `merge` method.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> class Total(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"total": self.buffer(kind="sig")}
    ...     def process_frame(self, frame):
    ...         self.results.total += frame
    >>> ud.run_udf(da.ones((2, 3, 4, 4)), Total())
    Traceback (most recent call last):
    udfdask.errors.MissingMergeError: Total has buffers that the default merge cannot combine: ...
    """


class UndeclaredBufferError(UDFError, KeyError):
    """A UDF returned a buffer, or a user requested a buffer, that was never declared.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> ud.run_udf(da.ones((2, 3, 4, 4)), SumUDF())["sum"]
    Traceback (most recent call last):
    udfdask.errors.UndeclaredBufferError: ...
    """

    def __str__(self) -> str:
        # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class NotAvailableError(UDFError, AttributeError):
    """An attribute of a UDF was used at a time when it does not exist.

    Examples
    --------
    >>> import udfdask as ud
    >>> ud.UDF().meta
    Traceback (most recent call last):
    udfdask.errors.NotAvailableError: self.meta does not exist yet: ...
    """


class FileFormatError(UDFError, ValueError):
    """A file exists, but udfdask cannot read it in the requested way.

    Examples
    --------
    >>> import tempfile, udfdask as ud
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scan.npy")
    ...     _ = path.write_text("no numbers")
    ...     ud.io.open_file(path)
    Traceback (most recent call last):
    udfdask.errors.FileFormatError: ...
    """


# MemoryError comes first: it is made in its own way, which distributed needs to send the error
class MemoryLimitError(MemoryError, UDFError):
    """A run would need more memory than its `max_memory=`; the message says what helps.

    Parameters
    ----------
    *args : object
        The message.
    advice : Advice, optional
        The same as a value: bytes by name, and the changes that help.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((64, 64, 32, 32), chunks=(32, 64, 32, 32))
    >>> ud.run_udf(x, SumUDF(), max_memory="1 MB")
    Traceback (most recent call last):
    udfdask.errors.MemoryLimitError: the run needs ..., more than max_memory='1 MB': ...
    """

    def __init__(self, *args: object, advice: Advice | None = None) -> None:
        super().__init__(*args)
        self.advice = advice


class SumOverflowError(UDFError, OverflowError):
    """A sum of integers needs more than 64 bits, so its result would be wrong.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.full((4, 2, 2), 2**62, dtype="int64")
    >>> ud.run_udf(x, SumUDF()).compute()
    Traceback (most recent call last):
    udfdask.errors.SumOverflowError: ...
    """


class DeviceError(UDFError, RuntimeError):
    """CUDA is needed, but CuPy or a device is missing, or CuPy does not support the dtype.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((2, 3, 4, 4))
    >>> try:
    ...     result = ud.run_udf(x, SumSigUDF(), backends="cupy").compute()
    ... except ud.errors.DeviceError:  # no CuPy, or no device: use the CPU
    ...     result = ud.run_udf(x, SumSigUDF()).compute()
    >>> result["intensity"].sum()
    np.float64(96.0)
    """


class UDFRunCancelled(UDFError):
    """A run was stopped by the user or the cluster before all chunks were merged.

    Parameters
    ----------
    *args : object
        The message.
    chunks_merged : int
        Number of chunks that had been merged.

    Examples
    --------
    >>> import udfdask as ud
    >>> ud.UDFRunCancelled("stopped", chunks_merged=3).chunks_merged
    3
    """

    def __init__(self, *args: object, chunks_merged: int = 0) -> None:
        super().__init__(*args)
        self.chunks_merged = chunks_merged


class UDFWarning(UserWarning):
    """A plan is correct but slow or needs much memory; the message says what to change.

    Examples
    --------
    >>> import warnings, dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ud.UDFWarning)
    ...     _ = ud.run_udf(da.ones((2, 3, 4, 4)), SumUDF(), roi=np.zeros((2, 3), bool))
    >>> print(caught[0].category.__name__, "|", caught[0].message)
    UDFWarning | the roi ...
    """
