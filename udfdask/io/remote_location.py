"""Say where remote data are: a URL, and the options of its file system of fsspec."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, TypeGuard

import cloudpickle

from udfdask.errors import ArgumentValueError, FileFormatError, UDFError, without_secrets
from udfdask.io.file_identity import in_words

REFERENCES = (".json", ".parquet", ".parq")
"""Suffixes of files and folders with references to parts of other files."""


def is_remote(path: Any) -> TypeGuard[str]:
    """Return whether a user's path is a URL, but not that of a file on this machine."""
    return isinstance(path, str) and "://" in path and local_path(path) == path


def local_path(path: Any) -> Any:
    """Return the path in a URL such as ``file:///data/scan.npy``; anything else as it is."""
    if not isinstance(path, str) or "::" in path or not path.startswith(("file://", "local://")):
        return path
    from fsspec.core import strip_protocol

    return strip_protocol(path)


def refuse_options(path: Any, options: Mapping[str, Any] | None) -> None:
    """Raise if there are options for a file on this machine."""
    if options:
        raise ArgumentValueError(
            f"storage_options are for URLs such as s3://bucket/scan.zarr, but {os.fspath(path)!r} "
            "is a file on this machine: leave them out"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A URL with the options of its file system."""

    url: str
    """The URL, as the user wrote it."""
    packed: bytes = field(repr=False)
    """The pickled options, which can contain passwords."""

    @classmethod
    def of(cls, url: str, options: Mapping[str, Any] | None = None) -> Location:
        """Return the location of a URL."""
        return cls(url=url, packed=cloudpickle.dumps(dict(options or {})))

    @property
    def options(self) -> dict[str, Any]:
        """The options of the file system."""
        found: dict[str, Any] = cloudpickle.loads(self.packed)
        return found

    @property
    def shown(self) -> str:
        """The URL for messages: without a password, and without a signature in its query."""
        return without_secrets(self.url)

    @property
    def path(self) -> PurePosixPath:
        """The path in the first part of the URL that has one, with the bucket or host."""
        parts = [part for part in self.url.split("::") if re.search("://.", part)]
        protocol, _, rest = (parts[0] if parts else "://references").partition("://")
        return PurePosixPath(re.split("[?#]", rest)[0] if protocol.startswith("http") else rest)

    def file_system(self) -> tuple[Any, str]:
        """Return the file system, which fsspec makes once per process, and the path in it."""
        import fsspec

        with reaching(self.shown):
            fs, path = fsspec.url_to_fs(self.url, **self.options)
        return fs, path.rstrip("/")

    def zarr_store(self) -> Any:
        """Return the store for zarr, which calls the file system in its own event loop."""
        from zarr.storage import FsspecStore

        options = self.options
        if self.url.startswith("reference:"):  # a file system that calls others in the same loop
            options["remote_options"] = {"asynchronous": True, **options.get("remote_options", {})}
        return FsspecStore.from_url(self.url, storage_options=options, read_only=True)


def reference_location(url: str, options: Mapping[str, Any] | None) -> Location:
    """Return the location of the zarr store that the references at a URL describe.

    `options` are those of fsspec's file system for references, such as `target_options` and
    `remote_options`. Any others are for the file with the references and for the data.
    """
    given = dict(options or {})
    if not any(name.startswith(("target_", "remote_", "template_", "fs")) for name in given):
        given = {"target_options": given, "remote_options": given}
    target = given.pop("target_options", {})
    if not url.endswith(".json") and not {"fs", "remote_protocol"}.intersection(given):
        with reaching(f"reference::{url}"):
            given["remote_protocol"] = _protocol_of_data(url, target)
    return Location.of(f"reference::{url}", {url.partition("://")[0]: target, **given})


def _protocol_of_data(url: str, options: Mapping[str, Any]) -> str | None:
    """Return the protocol of the files to which references in parquet point.

    By default, fsspec 2026.9 looks for it in all references, and fails if there is a group.
    """
    from fsspec.core import split_protocol, url_to_fs
    from fsspec.implementations.reference import LazyReferenceMapper

    fs, root = url_to_fs(url, **options)
    references = LazyReferenceMapper(root, fs)
    for name, metadata in references.zmetadata.items():
        first = name.removesuffix(".zarray") + ".".join("0" * len(metadata.get("shape", ())))
        reference = references.get(first) if name.endswith("/.zarray") else None
        if isinstance(reference, list):
            return split_protocol(reference[0])[0] or "file"
    return None


@contextmanager
def reaching(shown: str, *, part: str = "") -> Iterator[None]:
    """Turn errors about remote data into errors that name the location.

    FileNotFoundError: there is no such object. ImportError: a package is missing. ConnectionError:
    the server cannot be reached. FileFormatError: anything else, such as a damaged chunk.
    """
    try:
        yield
    except (UDFError, MemoryError, Warning):
        raise
    except ImportError as error:
        raise ImportError(
            f'reading {shown} needs a package: {error}; pip install "udfdask[remote]"',
            name=error.name,
        ) from error
    except Exception as error:  # file systems and decoders have no common base class of errors
        first: BaseException = error
        while first.__cause__ or first.__context__:
            first = first.__cause__ or first.__context__ or first
        words = "; ".join(dict.fromkeys(without_secrets(in_words(e)) for e in (error, first)))
        kind: type[Exception] = FileFormatError
        answers = (FileNotFoundError, PermissionError)
        if any(isinstance(e, OSError) and not isinstance(e, answers) for e in (error, first)):
            kind = ConnectionError
        # the file system of HTTP raises FileNotFoundError for all errors
        elif isinstance(error, FileNotFoundError) and getattr(first, "status", 404) == 404:
            kind = FileNotFoundError
        raise kind(
            f"{shown}{f', {part},' if part else ''} cannot be read ({words}): check the URL, the "
            'network, the credentials in storage_options ({"anon": True} for public data), and '
            "whether the data are complete"
        ) from error
