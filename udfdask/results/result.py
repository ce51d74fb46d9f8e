"""The results of one UDF: named arrays, lazy or computed, with rows and masks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.base.tracebacks import own_lines_hidden
from udfdask.errors import UDFError
from udfdask.graph.dask_internals.expressions import as_dask, as_expression
from udfdask.graph.result_tasks import Arrays, ResultTasks
from udfdask.results.named_results import ArrayT_co, Lookup, ResultInfo
from udfdask.results.outputs import Outputs
from udfdask.results.sending import send_without_copies
from udfdask.scheduling.compute import compute, persist
from udfdask.scheduling.progress import Progress

if TYPE_CHECKING:
    import dask.array as da

    from udfdask.results.result_array import Content, ResultArray


class Result(Outputs[ArrayT_co]):
    """The results of one UDF: a mapping from buffer names to arrays in data set shape.

    A lazy result holds dask arrays and is a dask collection: `dask.compute(result)`,
    `dask.persist`, `dask.visualize` and `client.compute` take it. A computed result holds NumPy
    arrays; these have the attributes of LiberTEM's results too: `data`, `raw_data`, `valid_mask`,
    `masked_data` and `raw_masked_data`. `run_udf` returns results.

    If an extra dimension has labels, such as the names of masks, ``result["BF"]`` is the part of
    the only result with this label. Iteration gives the names of results only.

    Parameters
    ----------
    info : ResultInfo
        Metadata: declarations of the results, chunk grid, explanation.
    arrays : mapping of str to numpy.ndarray, optional
        Computed results by name: shape (*nav, *extra_shape) for nav buffers, (*sig, *extra_shape)
        for sig, extra_shape for single.
    masks : mapping of str to numpy.ndarray of bool, optional
        Valid masks by name, in the same shape, of results whose mask does not follow from the ROI.
    tasks : ResultTasks, optional
        The tasks of a lazy result. Its dask arrays are made from them on request.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> result = ud.run_udf(da.ones((2, 3, 4, 4), chunks=2), SumSigUDF(), roi=(0, 1))
    >>> result["intensity"]
    dask.array<sumsigudf-intensity-nav, shape=(2, 3), dtype=float64, chunksize=(2, 2), ...>
    >>> done = result.compute()
    >>> done["intensity"]
    array([[nan, 16., nan],
           [nan, nan, nan]])
    >>> done.raw["intensity"]
    array([16.])
    """

    __slots__ = ("_arrays", "_masks", "_tasks", "_views")

    def __init__(
        self,
        info: ResultInfo,
        arrays: Mapping[str, Any] | None = None,
        masks: Mapping[str, Any] | None = None,
        tasks: ResultTasks | None = None,
    ) -> None:
        super().__init__(info)
        self._arrays = dict(arrays or {})
        self._masks = dict(masks or {})
        self._tasks = tasks
        self._views: dict[str, ResultArray] = {}

    def __getitem__(self, name: str) -> ArrayT_co:
        place = self._info.place_of(name)
        if self._is_lazy:
            return place.of(self._plain(place.result))  # type: ignore[no-any-return]
        if name not in self._views:
            # with attributes of LiberTEM's results
            from udfdask.results.result_array import as_result_array  # computed results need it

            content = self._content(place.result)
            values = place.of(content.values)
            mask = None if content.mask is None else place.of(content.mask)
            extra_shape = values.shape[values.ndim - len(place.axes) :]
            content = replace(content, values=values, mask=mask, extra_shape=extra_shape)
            self._views[name] = as_result_array(content)
        return self._views[name]  # type: ignore[return-value]

    def _plain(self, name: str) -> Any:
        if self._tasks is not None and name not in self._arrays:
            self._arrays[name] = self._tasks.array(name)
        return self._arrays[name]

    def _content(self, name: str) -> Content:
        """Return what all forms of a computed result are made of."""
        from udfdask.results.result_array import Content

        spec = self.buffers[name]
        return Content(
            values=self._plain(name),
            mask=self._masks.get(name),
            kind=spec.kind,
            extra_shape=spec.extra_shape,
            grid=self._info.grid,
        )

    def _called(self, name: Hashable) -> Result[ArrayT_co]:
        info = replace(self._info, name=str(name))
        return Result(info, self._arrays, self._masks, self._tasks)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Result, (self._settled_info(), self._arrays, self._masks, self._tasks))

    def _text_of(self, name: str) -> str:
        array = self._plain(name)
        text = f"{self.buffers[name].kind}, {array.shape}, {array.dtype}"
        if self._is_lazy or (valid := self._valid_mask(name)).all():
            return text
        return f"{text}, {valid.sum()} of {valid.size} values valid"

    if not TYPE_CHECKING:  # type checkers know that there is no such attribute

        def __getattr__(self, name: str) -> Any:
            remedy = ""
            if not name.startswith("_"):  # pickle looks up special names before __init__
                if name in self._info.buffers:
                    remedy = f": write result[{name!r}]"
                elif len(self) and hasattr(np.ndarray, name):
                    remedy = f": write result[{next(iter(self))!r}].{name}"
                elif name.startswith(("save", "to_")):
                    remedy = ": to_zarr, to_xarray and save_results('a.nc', result) write"
            raise AttributeError(f"'Result' object has no attribute {name!r}{remedy}")

    @property
    def raw(self) -> Mapping[str, Any]:
        """Arrays with flattened navigation, only the frames of the ROI, in C order.

        Nav results have the shape (frames, *extra_shape).
        """
        return self._by_name(self._raw)

    @property
    def valid_mask(self) -> Mapping[str, Any]:
        """Boolean arrays in the shape of the results, True where they are valid."""
        return self._by_name(self._valid_mask)

    @property
    def masked(self) -> Mapping[str, np.ma.MaskedArray[Any, Any]]:
        """NumPy masked arrays of a computed result; values that are not valid are masked."""
        return self._by_name(self._masked)

    def _by_name(self, make: Callable[[str], Any]) -> Mapping[str, Any]:
        """Return a mapping from names and labels to what is made of a result, or its part."""

        def part(name: str) -> Any:
            place = self._info.place_of(name)
            return place.of(make(place.result))

        return Lookup(self, part)

    @property
    def _visited_frames(self) -> Any:
        """Mask of the frames that are processed, shape nav; lazy if the result is lazy."""
        if self._tasks is not None:
            return self._tasks.visited()
        grid = self._info.grid
        return np.ones(grid.shape, dtype=bool) if grid.roi is None else grid.roi

    @property
    def _is_lazy(self) -> bool:
        return self._tasks is not None

    @property
    def _own_masks(self) -> dict[str, Any]:
        """Valid masks of results from `get_results`, which may set its own masks."""
        if self._tasks is not None and self._tasks.finalized:
            return {name: self._valid_mask(name) for name in self}
        return self._masks

    def _raw(self, name: str) -> Any:
        """Return the rows of a nav result, or a full sig or single result."""
        if not self._is_lazy:
            content = self._content(name)
            return content.rows(content.values)
        array, spec = self._plain(name), self.buffers[name]
        if spec.kind == "single" and not spec.extra_shape:
            return array[None]
        if spec.kind != "nav":
            return array
        from udfdask.results.rows_and_masks import flat_rows  # few users need it

        return self._lazy_tasks.in_kind(flat_rows(as_dask(array), self._info.grid))

    def _valid_mask(self, name: str) -> Any:
        if not self._is_lazy:
            return self._content(name).valid
        if self._lazy_tasks.finalized and name not in self._masks:
            self._masks[name] = self._lazy_tasks.mask(name)
        if name in self._masks:
            return self._masks[name]
        from udfdask.results.rows_and_masks import default_mask  # few users need it

        is_nav = self.buffers[name].kind == "nav"
        mask = default_mask(self._plain(name), self._info.grid, is_nav)
        return self._lazy_tasks.in_kind(mask)

    def _masked(self, name: str) -> Any:
        if self._is_lazy:
            raise UDFError(f"masked[{name!r}] needs a computed result: call .compute() first")
        content = self._content(name)
        return np.ma.MaskedArray(content.values, mask=~content.valid)

    def compute(self, progress: Progress = False, **kwargs: Any) -> Result[ResultArray]:
        """Compute the result in one pass over the data.

        Parameters
        ----------
        progress : bool, callable or ProgressReporter
            Show a progress bar, or call a progress callback: see `udfdask.compute`.
        **kwargs
            Arguments of `udfdask.compute`: cache, scheduler, num_workers, resources, ...

        Returns
        -------
        Result
            The same result with NumPy arrays.

        Raises
        ------
        UDFError
            As in `udfdask.compute`.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> ud.run_udf(da.ones((5, 5, 2, 2)), SumUDF()).compute()["intensity"]
        array([[25., 25.],
               [25., 25.]])
        """
        with own_lines_hidden:
            (done,) = compute(self, progress=progress, **kwargs)
        return done  # type: ignore[no-any-return]

    def persist(self, progress: Progress = False, **kwargs: Any) -> Result[da.Array]:
        """Compute the blocks of the result in one pass over the data and keep them in memory.

        Parameters
        ----------
        progress : bool, callable or ProgressReporter
            As in `udfdask.persist`.
        **kwargs
            Arguments of `dask.persist`.

        Returns
        -------
        Result
            The same result; the blocks of its arrays are in memory or being computed.

        Raises
        ------
        UDFError
            As in `udfdask.persist`.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> ud.run_udf(da.ones((5, 5, 2, 2)), SumUDF()).persist()["intensity"].sum().compute()
        np.float64(100.0)
        """
        with own_lines_hidden:
            (kept,) = persist(self, progress=progress, **kwargs)
        return kept  # type: ignore[no-any-return]

    # The dask collection protocol.

    @property
    def expr(self) -> Any:
        """The expression of a lazy result over an array of dask-array; others have none."""
        if self._tasks is None or not self._tasks.are_expressions:
            raise AttributeError("expr")  # dask asks whether a collection has it
        finish = (*self.__dask_postcompute__(), self._tasks.keys)
        return as_expression(self._tasks.holders, finish).expr

    def __dask_graph__(self) -> HighLevelGraph | None:
        return None if self._tasks is None else self._tasks.graph

    def __dask_keys__(self) -> list[Any]:
        # tasks that hold the results: dask then needs no task for each block of each array
        return self._lazy_tasks.keys

    def __dask_layers__(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key[0] for key in self._lazy_tasks.keys))

    def __dask_tokenize__(self) -> Any:
        if self._tasks is not None:
            return ("udfdask.Result", self._tasks.token, self.__dask_layers__())
        return (
            "udfdask.Result",
            [tokenize(array) for array in (*self.values(), *self._masks.values())],
        )

    def __dask_postcompute__(self) -> tuple[Callable[..., Result], tuple[Any, ...]]:
        send_without_copies(Result)
        gather, extra = self._lazy_tasks.gather()
        return _computed, (self._settled_info(), gather, extra)

    def __dask_postpersist__(self) -> tuple[Callable[..., Result], tuple[Any, ...]]:
        send_without_copies(Result)
        return _persisted, (self._settled_info(), self._lazy_tasks)

    def _settled_info(self) -> ResultInfo:
        """Return the metadata without the description of the run, which keeps its data."""
        return replace(self._info, explain=None)

    @property
    def _lazy_tasks(self) -> ResultTasks:
        """The tasks of a lazy result. dask never asks a computed one."""
        assert self._tasks is not None
        return self._tasks


def _computed(
    values: list[Any], info: ResultInfo, gather: Callable[..., Arrays], extra: tuple[Any, ...]
) -> Result:
    return Result(info, *gather(values, *extra))


def _persisted(
    graph: Any, info: ResultInfo, tasks: ResultTasks, rename: Mapping[str, str] | None = None
) -> Result:
    """Return the same result over another graph, in which layers may have other names."""
    return Result(info, tasks=tasks.with_graph(graph, rename or {}))


send_without_copies(Result)  # on workers, which have imported distributed before
