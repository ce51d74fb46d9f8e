"""Folders that hold a zarr store: all of it or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError

METADATA = ("zarr.json", ".zarray", ".zgroup")


def is_zarr(path: Path) -> bool:
    """Whether a path is a folder that holds a zarr array or group."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Take where a store is to be; return it absolute, or raise if it cannot be written there."""
    if "://" in str(path):
        raise ArgumentValueError(
            f"{path} is no local folder: stores elsewhere are written by xarray, with "
            "result.to_xarray().to_zarr(...)"
        )
    target = Path(path).expanduser().absolute()
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {target.parent} to write {target.name} in: make it first"
        )
    if target.exists() and not is_zarr(target):
        raise FileExistsError(
            f"{target} is there already and is no zarr store, so it is not replaced: "
            "choose another name"
        )
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"{target} is there already: choose another name, or ask for it to be overwritten"
        )
    return target


def check_storable(name: str, dtype: np.dtype[Any]) -> None:
    """Take a variable's name and type; raise if a store cannot hold it."""
    if dtype.kind not in "biufcmM":
        raise ArgumentTypeError(
            f"result {name!r} is of type {dtype}, which is not written to zarr: only booleans, "
            "numbers and times are. Leave this UDF out, or save its result yourself"
        )
