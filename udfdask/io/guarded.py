"""Lazy arrays of other packages, with the errors of their tasks told as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, Task, TaskRef, convert_legacy_graph
from dask.array.optimization import GETTERS

from udfdask.io.damage import reading


def guarded(array: da.Array, path: str, reader: str) -> da.Array:
    """Take a lazy array of a file; return it with errors of reading that name the file.

    Name, keys and chunks stay. Its graph is built at once: a task for each chunk that the package
    reads.
    """
    graph = convert_legacy_graph(dict(array.__dask_graph__()))
    told = {key: _guard(node, path, reader) for key, node in graph.items()}
    return da.Array(told, array.name, array.chunks, meta=array._meta)


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A function that reads a file."""

    function: Callable[..., Any]
    path: str
    reader: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with reading(self.path, self.reader):
            return self.function(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class _GuardedArray:
    """Something in a file that is sliced, such as a dataset of h5py."""

    array: Any
    path: str
    reader: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return a part; xarray reads when its parts become arrays, and not before."""
        with reading(self.path, self.reader, part=f"at {index}"):
            return np.asarray(self.array[index])


def _guard(node: Any, path: str, reader: str) -> Any:
    """Take a node of a graph; return it with its errors told as ours.

    Functions that slice stay as they are: dask knows them, and reads no more than is needed.
    """
    if isinstance(node, DataNode):
        sliced = hasattr(node.value, "__getitem__") and hasattr(node.value, "dtype")
        if sliced and not isinstance(node.value, np.ndarray):
            return DataNode(node.key, _GuardedArray(node.value, path, reader))
    elif type(node) is Task and not _slices_another(node):
        return Task(
            node.key,
            _Guarded(node.func, path, reader),
            *node.args,
            _data_producer=node.data_producer,
            **node.kwargs,
        )
    return node


def _slices_another(task: Any) -> bool:
    """Whether a task does nothing but slice what another node of the graph gives."""
    return task.func in GETTERS and isinstance(task.args[0], TaskRef)
