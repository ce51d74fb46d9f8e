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
    ├── JournalError           ValueError           a journal of another run, or one in use
    ├── MemoryLimitError       MemoryError          a run that needs more than its `max_memory=`
    ├── SumOverflowError       OverflowError        a sum of integers that does not fit 64 bits
    ├── DeviceError            RuntimeError         CUDA is needed but not available
    ├── ClusterError           RuntimeError         a cluster lost its scheduler, or data
    ├── RunTimeoutError        TimeoutError         a run took longer than its `timeout=`
    └── UDFRunCancelled                             a run that was stopped before its end

    UDFWarning (UserWarning)                        a plan that is slow or needs much memory

An exception from a method that a user wrote is not in this tree: it keeps its own type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def missing_package(package: str, *, purpose: str, extra: str = "io") -> ImportError:
    """Return the error for a missing package; its message says how to install the package."""
    return ImportError(
        f'{purpose} needs {package}, which is not installed: pip install "udfdask[{extra}]"',
        name=package,
    )


def outdated_package(package: str, version: str, *, needed: str, purpose: str) -> ImportError:
    """Return the error for an outdated package; its message says how to update the package."""
    return ImportError(
        f"{purpose} needs {package}>={needed}, but {version} is installed: "
        f'pip install "{package}>={needed}"',
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
    """Base class of all udfdask errors."""


class ArgumentTypeError(UDFError, TypeError):
    """An argument, or a declaration of a UDF, has the wrong type."""


class ArgumentValueError(UDFError, ValueError):
    """An argument, or a declaration or return value of a UDF, has an invalid value."""


class InvalidMaskError(ArgumentValueError):
    """A valid-data mask is not boolean or does not broadcast to its array."""


class MissingMergeError(UDFError, NotImplementedError):
    """A UDF has buffers that the default merge cannot combine, and has no `merge` method."""


class UndeclaredBufferError(UDFError, KeyError):
    """A UDF returned a buffer, or a user requested a buffer, that was never declared."""

    def __str__(self) -> str:
        # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class NotAvailableError(UDFError, AttributeError):
    """An attribute of a UDF was used at a time when it does not exist."""


class FileFormatError(UDFError, ValueError):
    """A file exists, but udfdask cannot read it in the requested way."""


class JournalError(UDFError, ValueError):
    """A journal belongs to another run, is damaged, or is used by another process."""


# MemoryError comes first: it is made in its own way, which distributed needs to send the error
class MemoryLimitError(MemoryError, UDFError):
    """A run would need more memory than its `max_memory=`; the message says what would fit."""


class SumOverflowError(UDFError, OverflowError):
    """A sum of integers needs more than 64 bits, so its result would be wrong."""


class DeviceError(UDFError, RuntimeError):
    """CUDA is needed, but CuPy or a device is missing, or CuPy does not support the dtype."""


class ClusterError(UDFError, RuntimeError):
    """A cluster lost its scheduler, or data that a run needs, before the end of the run."""


class RunTimeoutError(UDFError, TimeoutError):
    """A run took longer than its `timeout=`; the message names the UDFs and chunks that ran."""


class UDFRunCancelled(UDFError):
    """A run was stopped by the user or the cluster before all chunks were merged.

    Parameters
    ----------
    *args : object
        The message.
    chunks_merged : int
        Number of chunks that had been merged.

    Attributes
    ----------
    chunks_merged : int
        Number of chunks that had been merged.
    """

    def __init__(self, *args: object, chunks_merged: int = 0) -> None:
        super().__init__(*args)
        self.chunks_merged = chunks_merged


class UDFWarning(UserWarning):
    """A plan is correct but slow or needs much memory; the message says what to change."""


UDFException = UDFError
"""LiberTEM's name of `UDFError`."""
