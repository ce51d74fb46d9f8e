"""Recognize references to parts of other files, as kerchunk and VirtualiZarr write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    return Location.of(f"reference::{url}", {url.partition("://")[0]: target, **given})
