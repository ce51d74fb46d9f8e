"""Every exception and warning that udfdask raises by its own decision.

The tree, with the builtin that each can also be caught as::

    UDFError
    ├── ArgumentTypeError      TypeError            an argument of the wrong type
    ├── ArgumentValueError     ValueError           an argument with an impossible value
    │   └── InvalidMaskError                        a valid-data mask of wrong dtype or shape
    ├── MissingMergeError      NotImplementedError  buffers that nobody knows how to merge
    ├── UndeclaredBufferError  KeyError             a result that was never declared
    ├── NotAvailableError      AttributeError       asked for before it exists
    ├── FileFormatError        ValueError           a file that nothing can read
    ├── SumOverflowError       OverflowError        a sum of integers that does not fit 64 bits
    ├── DeviceError            RuntimeError         CUDA was asked for and cannot be had
    ├── ClusterError           RuntimeError         a cluster lost its scheduler, or data
    └── UDFRunCancelled                             a run that was stopped from outside

    UDFWarning (UserWarning)                        a plan that will run, but badly

An exception raised inside a method that a user wrote is not in this tree: it keeps its own type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def missing_package(package: str, *, purpose: str, extra: str = "io") -> ImportError:
    """Take the name of a package that cannot be imported; return an error that says what to do."""
    return ImportError(
        f'{purpose} needs {package}, which is not installed: pip install "udfdask[{extra}]"',
        name=package,
    )


def outdated_package(package: str, version: str, *, needed: str, purpose: str) -> ImportError:
    """Take a package and the version that is too old; return an error that says what to do."""
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
    """Base class of all errors that udfdask raises itself."""


class ArgumentTypeError(UDFError, TypeError):
    """An argument, or something a UDF declared, has the wrong type."""


class ArgumentValueError(UDFError, ValueError):
    """An argument, or something a UDF declared or returned, has an impossible value."""


class InvalidMaskError(ArgumentValueError):
    """A valid-data mask is not boolean or does not broadcast to its array."""


class MissingMergeError(UDFError, NotImplementedError):
    """A UDF has buffers that the default merge cannot combine, and no merge of its own."""


class UndeclaredBufferError(UDFError, KeyError):
    """A UDF returned, or a user asked for, a buffer that was never declared."""

    def __str__(self) -> str:
        # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class NotAvailableError(UDFError, AttributeError):
    """Something of a UDF was asked for at a time when it does not exist."""


class FileFormatError(UDFError, ValueError):
    """A file exists, but nothing here can read it as it was asked for."""


class SumOverflowError(UDFError, OverflowError):
    """A sum of integers needs more than 64 bits, and would have come out wrong."""


class DeviceError(UDFError, RuntimeError):
    """CUDA was asked for, but CuPy, a device, or arrays of that dtype on it cannot be had."""


class ClusterError(UDFError, RuntimeError):
    """A cluster lost its scheduler, or data that a run needs, before the run was over."""


class UDFRunCancelled(UDFError):
    """A run was stopped from outside before all chunks were merged.

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
    """A plan is right but will be slow or need much memory; the message says what to change."""


UDFException = UDFError
"""Upstream's name of `UDFError`."""
