"""Start a UDF on a chunk, with its task data and preprocessed buffers; end it after its work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.convert import in_backend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.udf_instance import Instance
from udfdask.errors import ArgumentTypeError, UDFError
from udfdask.once_per_process import OncePerProcess
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray
from udfdask.udf.base import overrides
from udfdask.udf.params import TaskData

_shared = OncePerProcess(16)
"""What `get_shared_task_data` returned, by run, number of the UDF and array backend."""


def start_udf(
    recipe: Recipe, number: int, chunk: int, aux: dict[str, AnyArray], backend: Backend
) -> Instance:
    """Return a UDF that is ready to process a chunk, with task data and preprocessed buffers."""
    instance = Instance(recipe, number, chunk, chunk + 1, aux, backend)
    udf = instance.udf
    if overrides(udf, "get_tiling_preferences"):
        # Its answer is ignored, because law 14 wants the tiles of the plan everywhere. It is called
        # because LiberTEM calls it here: the method may set attributes.
        instance.call("get_tiling_preferences")
    shared = _shared_task_data(instance)
    udf.task_data = TaskData(shared)
    if overrides(udf, "get_task_data"):
        own = _call_for_dict(instance, "get_task_data")
        both = sorted(set(shared) & set(own))
        if both:
            raise UDFError(
                f"{instance.declared.name}.get_task_data() and get_shared_task_data() both return "
                f"{both}: give them different names"
            )
        udf.task_data = TaskData({**shared, **own})
    if overrides(udf, "preprocess"):
        instance.call("preprocess")
    return instance


def _shared_task_data(instance: Instance) -> dict[str, Any]:
    """Return the task data that all chunks of a run share in this process, created by the first."""
    udf, run = instance.udf, instance.recipe.token
    if not overrides(udf, "get_shared_task_data"):
        return {}

    def make() -> tuple[dict[str, Any], set[str]]:
        # without a cursor: the data must not depend on which chunk came first
        udf.meta._position = None
        instance.view_all_aux()
        try:
            made = _call_for_dict(instance, "get_shared_task_data")
            instance.dense.wait()  # threads with other streams use the arrays without waiting
            return made, set(udf.meta._looks)
        finally:
            udf.meta._position = instance.cursor
            instance.view_all()

    # CuPy arrays belong to the module that made them; tests replace it
    key = (run, instance.number, instance.backend, udf.xp)
    made: dict[str, Any]
    made, looks = _shared.get(key, make) if run else make()
    udf.meta._looks |= looks
    return made


def _call_for_dict(instance: Instance, method: str) -> dict[str, Any]:
    """Return the task data that a method returns, after a check."""
    returned = instance.call(method)
    if not isinstance(returned, Mapping):
        raise ArgumentTypeError(
            f"{instance.declared.name}.{method}() must return a dictionary, not "
            f"{type(returned).__name__}"
        )
    return dict(returned)


def end_udf(instance: Instance) -> Partial:
    """Return the partial result of a UDF that has processed the whole chunk."""
    udf, cursor = instance.udf, instance.cursor
    cursor.part, cursor.part_index = None, 0
    if overrides(udf, "postprocess"):
        cursor.start, cursor.stop = 0, instance.recipe.grid.n_rows(*cursor.chunks)
        instance.view_all()
        instance.call("postprocess")
    if overrides(udf, "cleanup"):
        instance.call("cleanup")
    arrays, backend = instance.arrays, instance.recipe.merge_backend(instance.number)
    if backend != NUMPY or instance.dense != NUMPY:
        specs = instance.declared.allocated
        arrays = {k: in_backend(a, specs[k].backend(backend)) for k, a in arrays.items()}
    aux = instance.aux if instance.declared.carries_aux else {}
    looked_beyond, generation = bool(udf.meta._looks), instance.recipe.generation
    return Partial(arrays, *cursor.chunks, dict(aux), looked_beyond, generation)
