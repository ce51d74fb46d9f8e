"""Make the plan of a run: every choice is made and every user mistake is raised here.

Nothing is computed. The result is one frozen value, from which `graph` builds tasks and `explain`
prints its text.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph

from udfdask.advice import Advice, Door
from udfdask.base.names.naming import tokenize_value
from udfdask.base.types import is_lazy
from udfdask.geometry.axes import Calibration, shared_unit
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.good_chunks import Chunks
from udfdask.plan.arguments import Arguments, Options, read_arguments
from udfdask.plan.check_input import check_dtypes
from udfdask.plan.declarations import declare
from udfdask.plan.make_recipe import make_recipe
from udfdask.plan.parameters import parameter_text
from udfdask.plan.recipe import DESCAN, Recipe
from udfdask.udf import UDF
from udfdask.udf.written_methods import misspelled_methods


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All decisions of a run: the recipe of its tasks, and where its data come from."""

    recipe: Recipe
    """Geometry and UDFs, as workers get them."""
    names: tuple[str, ...]
    """Names of the UDFs in texts: those that the user gave, or those of their classes."""
    parameters: tuple[dict[str, Any], ...]
    """Parameters of each UDF, with all values of aux data: copies that only this run has."""
    parameter_texts: tuple[str, ...]
    """Parameters of each UDF as the user gave them: short JSON texts for files of results."""
    calibration: Calibration
    """Axes of the data and unit of the values; pixel numbers by default."""
    bare_lengths: tuple[Mapping[str, float], ...]
    """Lengths of detectors of each UDF that have no unit, although the signal axes have one."""
    units: tuple[dict[str, str | None], ...]
    """Units of the results of each UDF by name."""
    array_name: str
    """Name of the dask array that is processed."""
    aux: tuple[Any, ...]
    """Values of each of `recipe.aux_slots`, shape (*nav, *extra_shape): a NumPy array, or a dask
    array with the navigation chunks of the data."""
    joined: Chunks | None
    """The chunks after small ones are joined; None if the chunks of the array are processed."""
    absent: int
    """Number of scan positions that have no frame."""
    frames_loaded: int
    """Number of frames that are loaded, also of those that are not selected."""
    second_pass: bool
    """Whether the data are loaded a second time, because a parameter is a result over them."""
    files: tuple[str, ...]
    """Files and stores that the data and lazy parameters are read from, if they can be found."""
    advice: tuple[Advice, ...]
    """Likely mistakes in arguments and parameters, then what will be slow or need much memory."""
    door: Door
    """The entry point of the user, in whose terms advice is written."""
    notes: tuple[tuple[int, str], ...] = ()
    """What is often meant, but good to know about detectors: numbers of UDFs, and texts."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of all advice."""
        return tuple(one.said(self.door) for one in self.advice)

    @property
    def token(self) -> str:
        """Name of the run: equal for equal plans, different for all others."""
        return tokenize_value((self.array_name, self.recipe, self.aux, self.second_pass))


def make_plan(
    array: Any,
    udfs: Sequence[UDF],
    *,
    names: Sequence[str] | None = None,
    files: tuple[str, ...] = (),
    **options: Any,
) -> Plan:
    """Return the plan of a run of UDFs over a dask array of shape (*nav, *sig).

    `names` are names of the UDFs for `explain`. `files` are those that the array and parameters
    are read from. `options` are those of `Options`.
    """
    asked = Options(**options)
    given = read_arguments(array, udfs, asked, files)
    declared = [declare(udf, given.data, given.calibration, given.settings) for udf in given.udfs]
    recipe = make_recipe(declared, given.data, given.settings)
    check_dtypes(recipe)
    aux = _aux_values(given, recipe)
    advice = list(given.advice)
    for udf in given.udfs:
        advice += [Advice("misspelled method", (text,)) for text in misspelled_methods(udf)]
        advice += [Advice("parameters", (text,)) for text in udf._warnings(given.calibration)]
    return Plan(
        recipe=recipe,
        names=_names(recipe, names),
        parameters=tuple(udf._kwargs for udf in given.udfs),
        parameter_texts=tuple(map(parameter_text, udfs)),
        calibration=given.calibration,
        bare_lengths=tuple(_bare_lengths(udf, given) for udf in udfs),
        units=tuple(one.units for one in declared),
        array_name=array.name,
        aux=aux,
        joined=given.joined,
        absent=0 if asked.present is None else int(np.count_nonzero(~asked.present)),
        frames_loaded=_frames_loaded(array, recipe),
        second_pass=_needs_second_pass(array, recipe, aux, given.joined),
        files=files,
        advice=tuple(advice),
        door=asked.door,
    )


def _bare_lengths(udf: UDF, given: Arguments) -> Mapping[str, float]:
    """Return the lengths of detectors without a unit, where the signal axes share a unit."""
    nav = given.data.shape.nav.dims
    if type(udf)._coverages is UDF._coverages or not shared_unit(given.calibration.axes[nav:]):
        return {}
    meant = ("length", "width", "height", "start", "stop")
    values = {n: udf._kwargs.get(n) for n, meaning in udf.calibrated.items() if meaning in meant}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, (int, float, np.number)) and 0 < value < math.inf
    }


def _names(recipe: Recipe, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of UDFs in texts; those of the same class have numbers."""
    if given is not None:
        return tuple(given)
    classes = [udf.name for udf in recipe.udfs]
    return tuple(
        f"{name} {classes[:k].count(name) + 1}" if classes.count(name) > 1 else name
        for k, name in enumerate(classes)
    )


def _frames_loaded(array: da.Array, recipe: Recipe) -> int:
    """Return the number of frames in the chunks with selected frames, or some for other chunks."""
    grid, halos = recipe.grid, recipe.halos(range(len(recipe.udfs)))
    if isinstance(array._meta, np.ndarray):  # joined chunks of other types are whole
        grid = Grid.of(array.chunks[: len(grid.shape)], grid.roi, grid.present)
    frames = int(grid.loaded.sum())
    if halos:
        from udfdask.geometry.halo import loaded_for_others  # few runs need it

        indices = loaded_for_others(halos, grid)
        frames += sum(math.prod(grid.bounds_at(index)[1]) for index in indices)
    return frames


def _aux_values(given: Arguments, recipe: Recipe) -> tuple[Any, ...]:
    """Return the values of each of `recipe.aux_slots`, lazy ones with the chunks of the data."""
    of_udfs = [slot for slot in recipe.aux_slots if slot[0] != DESCAN]
    values = [given.udfs[k]._kwargs[name].over(recipe.shape) for k, name in of_udfs]
    if given.shifts is not None:
        values.append(given.shifts)
    nav = recipe.grid.nav_chunks
    return tuple(
        one.rechunk((*nav, *((n,) for n in one.shape[len(nav) :]))) if is_lazy(one) else one
        for one in values
    )


# A parameter may be computed from the data of the run. If it is a result over the whole dataset,
# every block would stay in memory until the last one has been read. Such a run therefore loads the
# blocks in a second pass: its loading tasks are clones with other names.


def _needs_second_pass(
    array: da.Array, recipe: Recipe, aux: Sequence[Any], joined: Chunks | None
) -> bool:
    """Return whether the data are loaded once more for a parameter that is a result over them."""
    return any(_shares_data(array, recipe.lazy_value(*slot)) for slot in recipe.lazy_slots) or any(
        # the tasks of joined chunks load the data for themselves
        is_lazy(values)
        and _shares_data(array, values)
        and (joined is not None or _needs_most_blocks(array, values, recipe))
        for values in aux
    )


def _shares_data(array: da.Array, value: Any) -> bool:
    """Return whether a lazy parameter and the data are computed from the same tasks."""
    return bool(set(array.dask.layers) & set(getattr(value.__dask_graph__(), "layers", ())))


def _needs_most_blocks(array: da.Array, values: da.Array, recipe: Recipe) -> bool:
    """Return whether both the first and the last chunk wait for most blocks of other chunks.

    Most blocks would then wait in memory, in whatever order chunks are processed.
    """
    grid, names = recipe.grid, set(array.dask.layers) & set(values.dask.layers)
    places = [grid.index(chunk) for chunk in range(grid.n_chunks)]
    sigs = [*itertools.product(*(range(len(sizes)) for sizes in recipe.sig_chunks))]
    shared: dict[Any, str] = {}  # tasks by their layer; those that are alone in one are together
    for name in names:
        keys = array.dask.layers[name].get_output_keys()
        shared.update(dict.fromkeys(keys, name if len(keys) > 1 else ""))
    # a new one: dask keeps all keys in a graph that is asked for them
    graph = HighLevelGraph.merge(array.dask, values.dask)

    def for_aux(places: Iterable[tuple[int, ...]]) -> set[Any]:
        extra = (0,) * (values.ndim - len(grid.shape))
        return _needed(graph, {(values.name, *place, *extra) for place in places}) & shared.keys()

    def most(keys: Iterable[Any]) -> int:
        """Return the number of those in one layer: one for each block."""
        return max(Counter(map(shared.get, keys)).values(), default=0)

    def waits(place: tuple[int, ...]) -> bool:
        own = _needed(graph, {(array.name, *place, *sig) for sig in sigs})
        return 2 * most(for_aux([place]) - own) > most(every - own)

    every = for_aux(places)
    return waits(places[0]) and waits(places[-1])


def _needed(graph: HighLevelGraph, keys: set[Any]) -> set[Any]:
    """Return keys with those of all tasks that they need; dask's `cull` may keep more."""
    needed, known = set(keys), graph.get_all_external_keys()
    for name in reversed([*TopologicalSorter(graph.dependencies).static_order()]):
        if wanted := set(graph.layers[name].get_output_keys() & needed):
            _, inputs = graph.layers[name].cull(wanted, known)
            needed.update(inputs, *inputs.values())
    return needed
