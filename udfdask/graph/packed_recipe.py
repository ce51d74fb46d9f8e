"""Make a small recipe an argument of tasks that is pickled once, and unpickled once per process.

A scheduler pickles each task by itself. Without this, it would pickle the same recipe for each
chunk and each merge, and each worker would unpickle it again: half of the time that a tiny chunk
takes, and more if the class of a UDF is pickled by value, as those of notebooks are.
"""

from __future__ import annotations

import pickle
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle

from udfdask.config import inline_bytes
from udfdask.names.origins import is_found
from udfdask.once_per_process import OncePerProcess
from udfdask.plan.recipe import Recipe

GRID_BYTES = 512
"""Largest packed size of chunk grid and ROI in a recipe that is an argument of tasks.

The rest of a task takes three times as much: tasks must not grow with the scan.
"""

_received = OncePerProcess(16)
"""Packed recipes by their bytes: the tasks that a process receives share one, and its recipe, as
threads share the original."""


_bytes_of: WeakKeyDictionary[type, bytes] = WeakKeyDictionary()
"""For each class that was pickled by value, the packed recipe that gave it its attributes.

Such a class, for example one of a notebook, exists once per process: each recipe that is unpickled
gives it the attributes that it had when that recipe was packed.
"""


class PackedRecipe:
    """A recipe that tasks take as an argument; `now` returns the recipe."""

    __slots__ = ("_is_received", "_lock", "_packed", "_recipe")

    def __init__(self, packed: bytes | None, recipe: Recipe | None = None) -> None:
        self._packed = packed
        self._recipe = recipe
        self._is_received = False
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:  # raises the error of the object that cannot be pickled
            self._packed = cloudpickle.dumps(self._recipe)
        return (_shared, (self._packed,))

    @property
    def now(self) -> Recipe:
        """The recipe; a scheduler, which only passes it on, never unpickles it."""
        recipe = self._recipe
        if recipe is None or self._is_outdated(recipe):
            packed = self._packed
            assert packed is not None
            with self._lock:
                recipe = self._recipe
                if recipe is None or self._is_outdated(recipe):
                    self._recipe = recipe = pickle.loads(packed)
                    self._is_received = True
                    _bytes_of.update(dict.fromkeys(_by_value(recipe), packed))
        return recipe

    def _is_outdated(self, recipe: Recipe) -> bool:
        """Return whether another recipe has changed the attributes of a class since."""
        return self._is_received and any(
            _bytes_of.get(cls, self._packed) != self._packed for cls in _by_value(recipe)
        )


def _shared(packed: bytes) -> PackedRecipe:
    """Return the packed recipe that all tasks of this process with the same bytes share."""
    shared: PackedRecipe = _received.get(packed, lambda: PackedRecipe(packed))
    return shared


def _by_value(recipe: Recipe) -> list[type]:
    """Return the classes of UDFs that are not found in a module: they are pickled by value."""
    classes = (cls for udf in recipe.udfs for cls in udf.cls.__mro__)
    return [cls for cls in classes if not is_found(cls, cls.__qualname__)]


def pack_if_small(recipe: Recipe) -> PackedRecipe | None:
    """Return a recipe as an argument of each task; None if it is too large for that.

    Only pickling finds the data that functions and objects of the user contain. It stops at the
    limit.
    """
    limit = inline_bytes()
    if recipe.lazy_slots or recipe.grid.packed_size > GRID_BYTES or recipe.nbytes > limit:
        return None
    file = _LimitedFile(limit)
    try:
        cloudpickle.Pickler(file, protocol=5).dump(recipe)
    except _TooLargeError:
        return None
    except Exception:  # noqa: BLE001  # an object that only threads can use may raise anything
        return PackedRecipe(None, recipe)
    return PackedRecipe(b"".join(file.parts), recipe)


class _TooLargeError(Exception):
    """Stops pickling at the limit."""


class _LimitedFile:
    """A file in memory with a limit of its size."""

    def __init__(self, limit: int) -> None:
        self.parts: list[bytes] = []
        self._left = limit

    def write(self, data: Any) -> None:
        """Keep some bytes."""
        self._left -= memoryview(data).nbytes
        if self._left < 0:
            raise _TooLargeError
        self.parts.append(bytes(data))
