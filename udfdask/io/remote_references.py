"""Recognize references to parts of other files, as kerchunk and VirtualiZarr write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from udfdask.io.remote_errors import reaching
from udfdask.io.remote_location import Location

SUFFIXES = (".json", ".parquet", ".parq")
"""Suffixes of files and folders with references."""

_OPTIONS = {
    "fs",
    "remote_options",
    "remote_protocol",
    "target",
    "target_options",
    "target_protocol",
    "template_overrides",
}
"""Options of fsspec's file system for references."""


def reference_location(url: str, options: Mapping[str, Any] | None) -> Location:
    """Return the location of the zarr store that the references at a URL describe.

    `options` are those of fsspec's file system for references. Any others are for the file with
    the references and for the files that they point to.
    """
    given = dict(options or {})
    if not _OPTIONS.intersection(given):
        given = {"target_options": given, "remote_options": given}
    target = given.pop("target_options", {})
    if not url.endswith(".json") and not {"fs", "remote_protocol"}.intersection(given):
        with reaching(f"reference::{url}"):
            given["remote_protocol"] = _protocol_of_data(url, target)
    return Location.of(f"reference::{url}", {url.partition("://")[0]: target, **given})


def _protocol_of_data(url: str, options: Mapping[str, Any]) -> str | None:
    """Return the protocol of the files to which references in parquet point.

    fsspec 2026.9 looks at the references in the order of a set, and fails if it meets a group.
    """
    from fsspec.core import split_protocol, url_to_fs
    from fsspec.implementations.reference import LazyReferenceMapper

    fs, root = url_to_fs(url, **options)
    references = LazyReferenceMapper(root, fs)
    for name in references.zmetadata:
        array = name.removesuffix("/.zarray")
        if array == name:
            continue
        try:
            paths = references.open_refs(array, 0).get("path", ())
        except FileNotFoundError:  # an array without chunks
            continue
        for path in paths:
            if isinstance(path, str):
                return split_protocol(path)[0] or "file"
    return None
