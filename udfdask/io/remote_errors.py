"""Turn the errors of servers and file systems into errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from udfdask.errors import FileFormatError, UDFError, missing_package, without_secrets
from udfdask.io.damaged_files import in_words

_OURS = ("aiohttp", "fastparquet", "fsspec", "s3fs")
"""Packages in the extra `remote`."""

_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"}
_CONNECTION = {
    "ClientConnectionError",
    "ConnectionError",
    "EndpointConnectionError",
    "FSTimeoutError",
    "HTTPClientError",
    "TimeoutError",
    "gaierror",
}
"""Names of classes of errors of several packages, which are imported only where they are used."""

_WRONG = {"TypeError", "ValueError", "OverflowError"}
"""Errors about options and addresses that make no sense."""


@contextmanager
def reaching(shown: str, *, part: str = "") -> Iterator[None]:
    """Turn errors about remote data into one of a few kinds, with a remedy.

    FileNotFoundError: there is no such object. FileFormatError: the user may not read it, or its
    contents are damaged. ConnectionError: the server cannot be reached. ImportError: a package is
    missing.
    """
    try:
        yield
    except (UDFError, MemoryError, Warning):
        raise
    except ImportError as error:
        raise _missing_package(shown, error) from error
    except Exception as error:
        # File systems and decoders have no common base class of errors.
        raise _explained(shown, part, error) from error


def is_missing(error: BaseException) -> bool:
    """Return whether an error says that there is no such object.

    The file system of HTTP raises FileNotFoundError for all errors.
    """
    if isinstance(error, NotADirectoryError | IsADirectoryError):
        return True
    if not isinstance(error, FileNotFoundError):
        return False
    causes = list(_causes(error))[1:]
    statuses = {status for cause in causes if (status := _status(cause))}
    return statuses <= {404, 410} and not any(_is_a(c, _CONNECTION | _WRONG) for c in causes)


def _explained(shown: str, part: str, error: Exception) -> Exception:
    """Return the error for users."""
    causes = list(_causes(error))
    words = without_secrets(in_words(_most_telling(causes)))
    what = f"{shown}, {part}," if part else shown
    if is_missing(error):
        hint = "check the URL"
        if shown.startswith("memory://"):
            hint += "; data in memory:// exist only in the process that wrote them"
        if shown.startswith("reference::"):
            hint += ", and whether it contains references to zarr chunks"
        return FileNotFoundError(f"there is no {what.rstrip(',')}: {hint}")
    if any(_is_a(cause, _CREDENTIALS) for cause in causes):
        return FileFormatError(
            f"{what} needs credentials, and none were found: set them in the environment of all "
            'processes, or pass storage_options={"key": ..., "secret": ...}, or {"anon": True} for '
            f"public data ({words})"
        )
    denied = any(isinstance(cause, PermissionError) for cause in causes)
    if denied or {401, 403} & set(map(_status, causes)):
        return FileFormatError(
            f"{what} may not be read with these credentials ({words}): check the permissions on "
            "the server, and pass credentials in storage_options"
        )
    if any(_is_a(cause, _CONNECTION) for cause in causes):
        return ConnectionError(
            f"the server of {what} cannot be reached ({words}): check the address, the network, "
            "and the endpoint in storage_options"
        )
    return FileFormatError(
        f"{what} cannot be read: {words}. Check whether the data are complete, and whether the "
        "storage_options suit the server"
    )


def _missing_package(shown: str, error: ImportError) -> ImportError:
    """Return the error for a package that a file system needs."""
    names = [cause.name for cause in _causes(error) if isinstance(cause, ImportError)]
    package = next((name for name in reversed(names) if name), None)
    purpose = f"reading {shown}"
    if package is None:
        return ImportError(f"{purpose} needs a package that is not installed: {error}")
    package = package.partition(".")[0]
    if package in _OURS:
        return missing_package(package, purpose=purpose, extra="remote")
    return ImportError(
        f"{purpose} needs {package}, which is not installed: pip install {package}", name=package
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _most_telling(causes: list[BaseException]) -> BaseException:
    """Return the error whose message to show."""
    for cause in causes:
        if _status(cause) or _is_a(cause, _CONNECTION | _CREDENTIALS | _WRONG):
            return cause
    return causes[0]


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an answer; None for other errors."""
    for name in ("status", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int):
            return status
    return None


def _is_a(error: BaseException, names: set[str]) -> bool:
    """Return whether an error is of a class with one of some names."""
    return any(kind.__name__ in names for kind in type(error).__mro__)
