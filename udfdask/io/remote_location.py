"""Say where remote data are: a URL, and the options of its file system."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

import cloudpickle

from udfdask.errors import ArgumentTypeError, ArgumentValueError, without_secrets
from udfdask.io.remote_errors import reaching

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_SHORTENED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^/]")
"""A URL that has become a path."""

_LOCAL = ("file://", "local://")
"""Beginnings of URLs of files on this machine."""

SILENCE = 60
"""Number of seconds in which a server of HTTP must send something."""

_MOST_OPTIONS = 1 << 16
"""Maximum size of pickled options in bytes, because each task contains them."""


def is_remote(path: Any) -> TypeGuard[str]:
    """Return whether a user's path is a URL, but not that of a file on this machine."""
    return isinstance(path, str) and "://" in path and local_path(path) == path


def local_path(path: Any) -> Any:
    """Return the path in a URL such as ``file:///data/scan.npy``; anything else as it is."""
    if isinstance(path, Path) and _SHORTENED.match(str(path)) and not path.exists():
        raise ArgumentTypeError(
            f"{str(path)!r} looks like a URL in a pathlib.Path, which removes one slash: pass the "
            "URL as a str"
        )
    if not isinstance(path, str) or "::" in path or not path.startswith(_LOCAL):
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
        """Return the location of a URL; raise if its protocol or the options are invalid."""
        import fsspec

        if options is not None and not isinstance(options, Mapping):
            raise ArgumentTypeError(
                "storage_options must be a dict of options of the file system, got "
                f'{type(options).__name__}: pass for example {{"anon": True}}'
            )
        protocols = fsspec.available_protocols()
        for part in url.split("::"):
            match = _URL.match(part)
            name = match[1] if match else part
            if match and name not in protocols:
                near = difflib.get_close_matches(name, protocols, n=1)
                raise ArgumentValueError(
                    f"{without_secrets(url)} has the unknown protocol {name!r}"
                    + (f"; did you mean {near[0]!r}?" if near else ".")
                    + " Use s3, gs, https, file, memory or another protocol of fsspec"
                )
        # each process has its own event loop, which fsspec runs
        kept = {name: value for name, value in (options or {}).items() if name != "asynchronous"}
        try:
            packed = cloudpickle.dumps(kept)
        except Exception as error:  # objects of users raise anything
            raise ArgumentTypeError(
                f"storage_options cannot be sent to other processes: {error}. Pass texts and "
                "numbers, such as a key and a secret, in place of open sessions"
            ) from error
        if len(packed) > _MOST_OPTIONS:
            raise ArgumentValueError(
                f"storage_options have {len(packed)} bytes, and each task would contain them: "
                "write the references to a .json file, and pass the name of this file"
            )
        return cls(url=url, packed=packed)

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
        """The path in the first part of the URL, with the bucket or host."""
        protocol, _, rest = self.url.partition("::")[0].partition("://")
        if protocol in ("http", "https"):
            rest = re.split("[?#]", rest)[0]
        return PurePosixPath(rest)

    @property
    def title(self) -> str:
        """The name of the data, without a suffix."""
        parts = [part for part in self.url.split("::") if re.search("://.", part)]
        return Location(url=parts[0], packed=b"").path.stem if parts else "references"

    def file_system(self) -> tuple[Any, str]:
        """Return the asynchronous file system, which fsspec makes once per process, and the path.

        Call its methods with `fsspec.asyn.sync`, in its event loop.
        """
        import fsspec

        with reaching(self.shown):
            try:
                fs, path = fsspec.url_to_fs(self.url, **_with_time_limit(self.url, self.options))
            except TypeError as error:
                raise ArgumentValueError(
                    f"storage_options do not suit {self.shown}: {without_secrets(str(error))}. See "
                    "the documentation of this file system in fsspec"
                ) from error
        return as_async(fs), path.rstrip("/")


def _with_time_limit(url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a file system, of HTTP with a time limit for silence of the server.

    The default of aiohttp is 5 minutes for a whole request, which also ends slow ones.
    """
    last = url.rpartition("::")[2]
    protocol = last.partition("://")[0]
    if protocol not in ("http", "https"):
        return options
    if last != url:  # options of each part of a chain
        return {**options, protocol: _with_time_limit(last, options.get(protocol, {}))}
    client = options.get("client_kwargs", {})
    if "timeout" in client:
        return options
    from aiohttp import ClientTimeout

    limit = ClientTimeout(total=None, sock_connect=30, sock_read=SILENCE)
    return {**options, "client_kwargs": {**client, "timeout": limit}}


def as_async(fs: Any) -> Any:
    """Return a file system with asynchronous methods."""
    if fs.async_impl:
        return fs
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

    return AsyncFileSystemWrapper(fs, asynchronous=False)


def look_up(fs: Any, path: str) -> None:
    """Let a file system of references read what it needs to know about a path.

    It reads references in parquet when it needs them, and cannot do so in its own event loop.
    """
    references = getattr(fs, "references", None)
    if references is not None:
        references.get(path)
