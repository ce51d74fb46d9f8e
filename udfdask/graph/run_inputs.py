"""What a run reads: its array and the lazy parameters of its UDFs, and the files behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from udfdask.graph.input_files import data_files
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.nested_collections import is_lazy, lazy_places, member_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a run reads; nothing is checked yet."""

    array: Any
    """What the user passed as the data."""
    udfs: list[Any]
    """What the user passed as UDFs."""
    files: tuple[str, ...]
    """Files and stores that the data and lazy parameters are read from, as far as is known."""


def inputs_of(array: Any, udfs: Sequence[Any]) -> Inputs:
    """Return what a run of UDFs over an array reads."""
    lazy = [array, *_collections_of(udfs)] if is_lazy(array) else []
    return Inputs(array=array, udfs=list(udfs), files=data_files(*lazy))


def _collections_of(udfs: Sequence[Any]) -> list[Any]:
    """Return the dask collections among the parameters, those in containers included."""
    values = [value for udf in udfs if isinstance(udf, UDF) for value in udf._kwargs.values()]
    given = [value.data if isinstance(value, AuxData) else value for value in values]
    found = [value for value in given if is_lazy(value)]
    return found + [member_at(value, place) for value in given for place in lazy_places(value)]
