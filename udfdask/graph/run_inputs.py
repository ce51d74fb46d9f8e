"""Find what a run reads: its array, lazy parameters and shifts, and the files of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from udfdask.descan import Descan
from udfdask.graph.dask_internals.arrays import graph_array
from udfdask.graph.input_files import data_files
from udfdask.plan.declarations import new_instance
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import is_lazy, lazy_places, member_at, with_members


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a run reads; nothing is checked yet."""

    array: Any
    """The data that the user passed; an expression array is lowered to a graph."""
    udfs: list[Any]
    """The UDFs that the user passed, their parameters lowered to graphs."""
    descan: Any
    """The shifts of frames that the user passed, lowered to a graph."""
    files: tuple[str, ...]
    """Files and stores that the data, lazy parameters and lazy shifts are read from, if they can be
    found."""


def inputs_of(array: Any, udfs: Sequence[Any], descan: Any = None) -> Inputs:
    """Return what a run of UDFs over an array reads, with expression arrays lowered to graphs."""
    array = graph_array(array)
    udfs = [_over_graphs(udf) for udf in udfs]
    shifts = descan.shifts if isinstance(descan, Descan) else descan
    lowered = graph_array(shifts)
    if lowered is not shifts:
        descan = replace(descan, shifts=lowered) if isinstance(descan, Descan) else lowered
    lazy = [array, *_collections_of(udfs)] if is_lazy(array) else []
    if lazy and is_lazy(lowered):
        lazy.append(lowered)
    return Inputs(array=array, udfs=udfs, descan=descan, files=data_files(*lazy))


def _over_graphs(udf: Any) -> Any:
    """Return a UDF whose parameters hold no expression arrays."""
    if not isinstance(udf, UDF):
        return udf
    kwargs = {name: _over_graph(value) for name, value in udf._kwargs.items()}
    same = all(kwargs[name] is value for name, value in udf._kwargs.items())
    return udf if same else new_instance(type(udf), kwargs)


def _over_graph(value: Any) -> Any:
    """Return a parameter with arrays over graphs in place of expression arrays."""
    if isinstance(value, AuxData):
        data = graph_array(value.data)
        return value if data is value.data else replace(value, data=data)
    if is_lazy(value):
        return graph_array(value)
    members = {place: member_at(value, place) for place in lazy_places(value)}
    lowered = {place: graph_array(member) for place, member in members.items()}
    changed = any(lowered[place] is not member for place, member in members.items())
    return with_members(value, lowered) if changed else value


def _collections_of(udfs: Sequence[Any]) -> list[Any]:
    """Return the dask collections among the parameters, those in containers included."""
    values = [value for udf in udfs if isinstance(udf, UDF) for value in udf._kwargs.values()]
    given = [value.data if isinstance(value, AuxData) else value for value in values]
    lazy = [value for value in given if is_lazy(value)]
    return lazy + [member_at(value, place) for value in given for place in lazy_places(value)]
