"""Everything a worker must know to run a chunk or a merge: one frozen value, shared by all tasks.

It is made from UDFs and sizes alone, without dask: `run_chunk(make_recipe(udfs, shape=...), 0,
[array])` runs a whole array in a test. Only the declaring methods of the UDFs run here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from udfdask.auxdata import AuxData, check_size
from udfdask.axes import Axis
from udfdask.buffers import BufferSpec
from udfdask.corrections import CorrectionSet
from udfdask.corrections.checked import PLANES, checked, lazy_planes, with_planes
from udfdask.corrections.given import NUMBERS
from udfdask.corrections.neighbours import straddles
from udfdask.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MissingMergeError,
    UDFError,
    UndeclaredBufferError,
)
from udfdask.grid import BoolArray, Grid
from udfdask.meta import UDFMeta
from udfdask.params import Params
from udfdask.shapes import Shape
from udfdask.tiling import TilingScheme, choose_tiling
from udfdask.types import MergeMode
from udfdask.udf import UDF, UDFMethod

CORRECTIONS = -1
"""Stands for the corrections where a number says whose lazy parameter it is."""

MANY_BLOCKS = 4
"""Signal chunks per task beyond which UDFs that can are run one signal chunk a task."""


@dataclass(frozen=True, kw_only=True)
class UDFRecipe:
    """One UDF of a run, as declared."""

    cls: type[UDF]
    """Class of the UDF."""
    kwargs: dict[str, Any]
    """Its parameters; each task makes `cls(**kwargs)`."""
    lazy_params: tuple[str, ...]
    """Parameters that are dask collections and reach tasks as computed values."""
    aux: dict[str, AuxData]
    """Parameters that are aux data, without their values."""
    method: UDFMethod
    """Which `process_*` method runs."""
    input_dtype: np.dtype[Any]
    """Dtype in which it sees the data."""
    buffers: dict[str, BufferSpec]
    """Declared buffers by name."""
    merge: MergeMode
    """`none`: nav buffers are results as they are. `rows`: own merge, chunk by chunk. `chain`:
    own merge, one chunk after another. `tree`: own merge. `all`: merge_all."""
    split_every: int | None
    """Fan-in of a tree; None for one step."""
    finish: bool
    """Whether `get_results` runs."""
    elementwise: bool
    """Whether it runs chunk by chunk."""
    axes: dict[str, tuple[Axis, ...]]
    """What the extra dimensions of each result are."""

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.cls.__name__

    @cached_property
    def allocated(self) -> dict[str, BufferSpec]:
        """Buffers that exist while processing and merging."""
        return {k: s for k, s in self.buffers.items() if s.use != "result_only"}

    @property
    def nav_aux(self) -> tuple[str, ...]:
        """Names of the aux data with a value for each frame, of which a task has its own rows."""
        return tuple(name for name, aux in self.aux.items() if aux.kind == "nav")

    @property
    def carries_aux(self) -> bool:
        """Whether something behind the chunks needs the rows of the aux data as well."""
        return bool(self.nav_aux) and (self.merge != "none" or self.finish)

    @property
    def outputs(self) -> dict[str, BufferSpec]:
        """Buffers that are results."""
        return {k: s for k, s in self.buffers.items() if s.use != "private"}

    @property
    def has_nav(self) -> bool:
        """Whether a buffer with rows exists while processing."""
        return any(s.kind == "nav" for s in self.allocated.values())

    @property
    def has_whole(self) -> bool:
        """Whether a sig or single buffer exists while processing."""
        return any(s.kind != "nav" for s in self.allocated.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All UDFs of a run and the geometry that they share."""

    grid: Grid
    """Navigation chunks and ROI."""
    shape: Shape
    """Shape of the data set."""
    dtype: np.dtype[Any]
    """Dtype of the data set."""
    sig_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each signal axis, in pixels."""
    tiling: TilingScheme
    """Tile shape."""
    by_sig_chunk: bool
    """Whether each signal chunk of a navigation block has a task of its own."""
    threads: int
    """Threads that numerics libraries may use in a task."""
    guarded: bool
    """Whether a UDF might start threads at all, which are then held to that number."""
    udfs: tuple[UDFRecipe, ...]
    """The UDFs, in the order of the call."""
    corrections: CorrectionSet | None = None
    """What is done to the data before UDFs see them; excluded pixels as coordinates."""
    token: str = ""
    """Name of the run, under which a process keeps what its chunks share; empty for none."""

    @property
    def aux_slots(self) -> tuple[tuple[int, str], ...]:
        """Number of the UDF and name of the parameter of each piece of aux data of a chunk."""
        return tuple((k, name) for k, u in enumerate(self.udfs) for name in u.nav_aux)

    @property
    def lazy_slots(self) -> tuple[tuple[int, str], ...]:
        """Number of the UDF, or CORRECTIONS, and name of each lazy parameter."""
        own = [(k, name) for k, u in enumerate(self.udfs) for name in u.lazy_params]
        return (*own, *((CORRECTIONS, name) for name in lazy_planes(self.corrections)))

    def lazy_value(self, number: int, name: str) -> Any:
        """Return the dask collection of one of `lazy_slots`."""
        if number == CORRECTIONS:
            return getattr(self.corrections, name)
        value = self.udfs[number].kwargs[name]
        return value.data if isinstance(value, AuxData) else value

    @property
    def now(self) -> Recipe:
        """The recipe itself, where tasks may also be given one whose parameters change."""
        return self

    @property
    def nbytes(self) -> int:
        """About what the recipe weighs on the wire: arrays among the parameters, and the ROI."""
        roi = 0 if self.grid.roi is None else self.grid.roi.size // 8
        planes = [getattr(self.corrections, name, None) for name in (*PLANES, "excluded_pixels")]
        return roi + _weight(planes) + sum(_weight(u.kwargs) for u in self.udfs)

    def with_params(self, values: Mapping[tuple[int, str], Any]) -> Recipe:
        """Return the recipe with computed values in place of lazy parameters.

        Keys are those of `lazy_slots`.
        """
        udfs = list(self.udfs)
        planes = {name: value for (k, name), value in values.items() if k == CORRECTIONS}
        corrections = self.corrections
        if corrections is not None and planes:
            corrections = with_planes(corrections, planes, self.shape.sig, self.dtype)
        for (number, name), value in values.items():
            if number == CORRECTIONS:
                continue
            u = udfs[number]
            is_aux = value is not None and name in u.aux
            given = u.aux[name].with_data(value) if is_aux else value
            udfs[number] = replace(u, kwargs={**u.kwargs, name: given})
        return replace(self, udfs=tuple(udfs), corrections=corrections)


def _weight(value: Any) -> int:
    """Return the bytes of the arrays and strings in a parameter."""
    if hasattr(value, "__dask_graph__"):  # computed on a worker
        return 0
    if isinstance(value, Mapping):
        return sum(_weight(v) for v in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sum(_weight(v) for v in value)
    if isinstance(value, (str, bytes)):
        return len(value)
    size = getattr(value, "nbytes", 0)  # a descriptor of classes such as np.float32
    return int(size) if isinstance(size, (int, np.integer)) else 0


def make_recipe(
    udfs: Sequence[UDF],
    *,
    shape: Sequence[int],
    dtype: Any,
    sig_dims: int = 2,
    nav_chunks: Sequence[Sequence[int]] | None = None,
    sig_chunks: Sequence[Sequence[int]] | None = None,
    roi: BoolArray | None = None,
    tile_bytes: int = 1 << 20,
    split_every: int | bool = 8,
    threads: int = 1,
    lazy_params: Sequence[Sequence[str]] | None = None,
    whole_bytes: float = math.inf,
    corrections: CorrectionSet | None = None,
) -> Recipe:
    """Return the recipe of a run; sizes as dask has them, one chunk by default.

    `whole_bytes` is the size of a navigation block in bytes from which a task takes one signal
    chunk, if all UDFs can.
    """
    full = Shape(shape, sig_dims=sig_dims)
    dt = np.dtype(dtype)
    nav_chunks = [[n] for n in full.nav] if nav_chunks is None else nav_chunks
    sig_chunks = [[n] for n in full.sig] if sig_chunks is None else sig_chunks
    grid = Grid(nav_chunks=tuple(tuple(map(int, c)) for c in nav_chunks), roi=roi)
    sigs = tuple(tuple(map(int, c)) for c in sig_chunks)
    corrections = checked(corrections, full.sig, dt)
    facts = UDFMeta(
        grid=grid, dataset_shape=full, dataset_dtype=dt, threads=threads, corrections=corrections
    )
    lazy = [()] * len(udfs) if lazy_params is None else lazy_params
    parts = []
    preferences = []
    for udf, names in zip(udfs, lazy, strict=True):
        part, preference = _declare(udf, facts, tuple(names), split_every)
        parts.append(part)
        preferences.append(preference)
    max_frames = int(grid.counts.max()) if grid.n_chunks else 1
    tiling = _tiling(
        corrections,
        whole_frames=any(
            u.whole_frames and p.method is UDFMethod.TILE for u, p in _pair(udfs, parts)
        ),
        sig_chunks=sigs,
        itemsize=max(p.input_dtype.itemsize for p in parts),
        max_frames=max_frames,
        tile_bytes=tile_bytes,
        depth=min(p["depth"] for p in preferences),
        total_size=min(p["total_size"] for p in preferences),
    )
    blocks = math.prod(len(c) for c in sigs)
    heaviest = max((math.prod(grid.bounds(k)[1]) for k in range(grid.n_chunks)), default=0)
    by_sig_chunk = (
        all(u._adds_signal_parts and not u.whole_frames for u in udfs)
        and blocks > 1
        and not tiling.whole_frames
        and (blocks > MANY_BLOCKS or heaviest * full.sig.size * dt.itemsize > whole_bytes)
    )
    _check_contiguous(udfs, parts, grid)
    return Recipe(
        grid=grid,
        shape=full,
        dtype=dt,
        sig_chunks=sigs,
        tiling=tiling,
        by_sig_chunk=by_sig_chunk,
        threads=threads,
        guarded=not all(u._starts_no_threads for u in udfs),
        udfs=tuple(parts),
        corrections=corrections,
    )


def _tiling(corrections: CorrectionSet | None, *, whole_frames: bool, **sizes: Any) -> TilingScheme:
    """Return the tiles of a run: so large that no excluded pixel needs another tile."""
    tiling = choose_tiling(**sizes, whole_frames=whole_frames)
    excluded = None if corrections is None else corrections.excluded_pixels
    if excluded is not None:
        frame = tiling.dataset_shape
        if straddles(excluded, frame, tiling.edges):
            tiling = choose_tiling(**sizes, whole_chunks=True)
        if straddles(excluded, frame, tiling.edges):
            tiling = choose_tiling(**sizes, whole_frames=True)
    return tiling


def redeclare(recipe: Recipe, number: int, kwargs: dict[str, Any]) -> None:
    """Raise if other parameters, aux data with their values, change what a UDF declares."""
    old = recipe.udfs[number]
    facts = UDFMeta(
        grid=recipe.grid,
        dataset_shape=recipe.shape,
        dataset_dtype=recipe.dtype,
        threads=recipe.threads,
        corrections=recipe.corrections,
    )
    new, _ = _declare(old.cls(**kwargs), facts, (), old.split_every or False)
    for what in ("buffers", "input_dtype", "method", "merge", "axes"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            raise ArgumentValueError(
                f"with these parameters {old.name} declares another {what.replace('_', ' ')} than "
                f"at the start of the run ({after}, not {before}): parameters that decide what is "
                "declared need a new run"
            )


def _pair(udfs: Sequence[UDF], parts: Sequence[UDFRecipe]) -> list[tuple[UDF, UDFRecipe]]:
    """Return UDFs beside their recipes."""
    return list(zip(udfs, parts, strict=True))


def _declare(
    udf: UDF, facts: UDFMeta, lazy: tuple[str, ...], split_every: int | bool
) -> tuple[UDFRecipe, dict[str, float]]:
    """Return the recipe of one UDF and its tiling preferences, from its declaring methods."""
    # a copy, so that neither the user's instance nor another run sees what is set here
    asked = _twin(udf)
    asked.meta = facts
    input_dtype = _input_dtype(asked)
    asked.meta = facts.with_input_dtype(input_dtype)
    aux = {name: value for name, value in udf._kwargs.items() if isinstance(value, AuxData)}
    if aux:
        asked.params = _with_whole_aux(asked, aux, facts.dataset_shape)
    method = _method(asked)
    buffers = _buffers(asked)
    merge = _merge_mode(asked, buffers)
    fan_in = _fan_in(asked, split_every)
    _backends(asked)
    cls = type(udf)
    own_results = cls.get_results is not UDF.get_results
    missing = [k for k, s in buffers.items() if s.use == "result_only"]
    if missing and not own_results:
        raise UDFError(
            f"{cls.__name__} declares result_only buffers {missing} but has no get_results() "
            "that could fill them"
        )
    bare = {name: value.without_data() for name, value in aux.items()}
    part = UDFRecipe(
        cls=cls,
        # values for each frame reach tasks in pieces
        kwargs={**udf._kwargs, **{n: a for n, a in bare.items() if a.kind == "nav"}},
        lazy_params=lazy,
        aux=bare,
        method=method,
        input_dtype=input_dtype,
        buffers=buffers,
        merge=merge,
        split_every=fan_in,
        finish=own_results,
        elementwise=own_results
        and bool(asked.elementwise_results)
        # merge_all has gathered the rows already
        and not (merge == "all" and any(s.kind == "nav" for s in buffers.values())),
        axes=_axes(asked, buffers),
    )
    return part, _preferences(asked)


def _twin(udf: UDF) -> UDF:
    """Return a shallow copy of a UDF: attributes set after `__init__` are there as well."""
    twin = object.__new__(type(udf))
    twin.__dict__.update(udf.__dict__)
    return twin


def _with_whole_aux(udf: UDF, aux: Mapping[str, AuxData], shape: Shape) -> Params:
    """Return the parameters of a UDF that declares: aux data are whole, nav ones flattened."""
    views = {}
    for name, data in aux.items():
        check_size(data, shape, f"{type(udf).__name__}.params.{name}")
        full = data.over(shape)
        flat = (shape.nav.size, *data.extra_shape)
        views[name] = full.reshape(flat) if data.kind == "nav" else full
    return Params({**udf.params.__dict__, **views})


def _axes(udf: UDF, buffers: Mapping[str, BufferSpec]) -> dict[str, tuple[Axis, ...]]:
    """Return the axes of the extra dimensions of each result, checked."""
    given = udf.get_result_axes()
    name = f"{type(udf).__name__}.get_result_axes()"
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"{name} must return a dictionary of tuples of Axis, not {type(given).__name__}"
        )
    outputs = {k: s for k, s in buffers.items() if s.use != "private"}
    for key in given:
        if key not in outputs:
            raise UndeclaredBufferError(
                f"{name} names {key!r}, which is no result; results are {sorted(outputs)}"
            )
    return {k: _axes_of(k, s.extra_shape, given.get(k), name) for k, s in outputs.items()}


def _axes_of(key: str, extra: tuple[int, ...], given: Any, who: str) -> tuple[Axis, ...]:
    """Return the axes of the extra dimensions of one result, checked."""
    if given is None:
        return tuple(Axis(name=f"{key}_dim_{k}") for k in range(len(extra)))
    axes = (given,) if isinstance(given, Axis) else tuple(given)
    if not all(isinstance(a, Axis) for a in axes):
        raise ArgumentTypeError(f"{who} gives {key!r} {given!r}: a tuple of udfdask.Axis is needed")
    if len(axes) != len(extra):
        raise ArgumentValueError(
            f"{who} gives {key!r} {len(axes)} axes, but its extra_shape is {extra}: one Axis for "
            "each extra dimension is needed"
        )
    if len({a.name for a in axes}) != len(axes):
        raise ArgumentValueError(f"{who} gives {key!r} two axes of the same name")
    for axis, n in zip(axes, extra, strict=True):
        if axis.labels is not None and len(axis.labels) != n:
            raise ArgumentValueError(
                f"{who} gives axis {axis.name!r} of {key!r} {len(axis.labels)} labels for {n} "
                "positions"
            )
    return axes


def _input_dtype(udf: UDF) -> np.dtype[Any]:
    """Return the dtype in which a UDF sees the data, in native byte order."""
    dtype, corrected = udf.meta.dataset_dtype, udf.meta.corrections is not None
    preferred = udf.get_preferred_input_dtype()
    try:
        more = [np.float32] if corrected else []
        combined = np.result_type(dtype, np.dtype(preferred), *more).newbyteorder("=")
    except TypeError as e:
        raise ArgumentTypeError(
            f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}, which "
            f"does not combine with the data's dtype {dtype}: {e}"
        ) from None
    # numbers and text make text
    if combined.kind not in (NUMBERS if corrected else "biufcmM"):
        raise ArgumentTypeError(
            f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}, which "
            f"does not combine with the data's dtype {dtype}: the result would be {combined}"
        )
    return combined


def _method(udf: UDF) -> UDFMethod:
    """Return the processing method, checked to be there."""
    method = udf.get_method()
    name = type(udf).__name__
    if not isinstance(method, UDFMethod):
        raise UDFError(
            f"{name}.get_method() must return a member of UDF.UDF_METHOD, not {method!r}"
        )
    if not callable(getattr(udf, f"process_{method.value}", None)):
        raise UDFError(
            f"{name}.get_method() chose {method}, but there is no process_{method.value}()"
        )
    return method


def _buffers(udf: UDF) -> dict[str, BufferSpec]:
    """Return the declared buffers, checked."""
    declared = udf.get_result_buffers()
    name = type(udf).__name__
    if not isinstance(declared, Mapping):
        raise ArgumentTypeError(
            f"{name}.get_result_buffers() must return a dictionary of self.buffer(...), "
            f"not {type(declared).__name__}"
        )
    for key, spec in declared.items():
        if not str(key).isidentifier():
            raise ArgumentValueError(
                f"{name} declares a buffer called {key!r}: names must be Python identifiers"
            )
        if not isinstance(spec, BufferSpec):
            raise ArgumentTypeError(
                f"{name} declares buffer {key!r} as {type(spec).__name__}: use self.buffer(...)"
            )
    return dict(declared)


def _merge_mode(udf: UDF, buffers: Mapping[str, BufferSpec]) -> MergeMode:
    """Return how the partial results of a UDF are combined."""
    kinds = {s.kind for s in buffers.values() if s.use != "result_only"}
    if hasattr(udf, "merge_all"):
        return "all"
    if type(udf).merge is not UDF.merge:
        if "nav" not in kinds:
            return "tree"
        if kinds == {"nav"}:
            return "rows"
        return "tree" if udf.merge_assigns_nav else "chain"
    if kinds <= {"nav"}:
        return "none"
    names = [k for k, s in buffers.items() if s.use != "result_only" and s.kind != "nav"]
    raise MissingMergeError(
        f"{type(udf).__name__} has buffers that the default merge cannot combine: "
        f"{', '.join(names)} (kind sig or single). Implement merge(self, dest, src) or "
        "merge_all(self, ordered_results)"
    )


def _fan_in(udf: UDF, split_every: int | bool) -> int | None:
    """Return the fan-in of the merge tree, None for one step; the class attribute wins."""
    chosen = split_every if udf.split_every is None else udf.split_every
    return check_split_every(chosen, f"{type(udf).__name__}.split_every")


def check_split_every(value: Any, where: str) -> int | None:
    """Return a fan-in, None for one step (False)."""
    if value is False:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{where} must be an int of at least 2, or False, not {value!r}")
    if value < 2:
        raise ArgumentValueError(f"{where} must be at least 2, or False, not {value!r}")
    return int(value)


def _backends(udf: UDF) -> None:
    """Check that a UDF runs on NumPy arrays."""
    offered = udf.get_backends()
    names = (offered,) if isinstance(offered, str) else tuple(offered)
    if UDF.BACKEND_NUMPY not in names:
        raise ArgumentValueError(
            f"{type(udf).__name__}.get_backends() returned {names}: this version runs UDFs on "
            "'numpy' arrays only, so 'numpy' must be among them"
        )


def _preferences(udf: UDF) -> dict[str, float]:
    """Return the tiling preferences, checked."""
    asked = udf.get_tiling_preferences()
    if not isinstance(asked, Mapping):
        raise ArgumentTypeError(
            f"{type(udf).__name__}.get_tiling_preferences() must return a dictionary with depth "
            f"and total_size, not {type(asked).__name__}"
        )
    chosen: dict[str, float] = {}
    for key in ("depth", "total_size"):
        value = asked.get(key, np.inf)
        if not isinstance(value, (int, float, np.integer, np.floating)) or not value > 0:
            raise ArgumentValueError(
                f"{type(udf).__name__}.get_tiling_preferences() returned {key}={value!r}: a "
                "positive number is needed, inf for no limit"
            )
        chosen[key] = float(value)
    return chosen


def _check_contiguous(udfs: Sequence[UDF], parts: Sequence[UDFRecipe], grid: Grid) -> None:
    """Refuse whole partitions with contiguous rows where chunks have none."""
    for udf, part in _pair(udfs, parts):
        if udf.contiguous_nav and part.method is UDFMethod.PARTITION:
            for chunk in range(grid.n_chunks):
                if not isinstance(grid.rows(chunk), range):
                    start, shape = grid.bounds(chunk)
                    raise ArgumentValueError(
                        f"{part.name} asks for contiguous_nav and processes whole partitions, but "
                        f"the chunk at {start} of shape {shape} is not contiguous in a scan of "
                        f"shape {grid.shape}: rechunk so that only the first navigation axis is "
                        "chunked"
                    )
