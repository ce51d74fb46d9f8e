"""What a run gives to the user: named arrays, lazy or computed, with rows and masks."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dask.array as da
import numpy as np
from dask.base import is_dask_collection, tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.utils import format_bytes

from udfdask.arrays.geometry.axes import Axis
from udfdask.arrays.geometry.chunk_grid import BoolArray, Grid
from udfdask.errors import UDFError
from udfdask.graph.dask_internals import GraphArray
from udfdask.graph.result_tasks import Arrays, ResultTasks
from udfdask.results.named_results import About, NamedResults
from udfdask.results.rows_and_masks import default_mask, flat_rows
from udfdask.scheduling.compute import compute as compute_with_progress
from udfdask.scheduling.compute import persist as persist_with_progress
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.scheduler_options import check_options
from udfdask.udf.buffers import BufferSpec

if TYPE_CHECKING:
    from udfdask.results.labels.layout import Layout


class Result(NamedResults):
    """The results of one UDF: a mapping from buffer names to arrays in data set shape.

    Lazy, it holds dask arrays and is a dask collection itself: `dask.compute(result)`,
    `dask.persist`, `dask.visualize` and `client.compute` take it. Computed, it holds NumPy arrays.

    Results are made by `run_udf`.

    Parameters
    ----------
    about : About
        What the result knows besides its arrays: declarations, grid, explanation.
    arrays : mapping of str to numpy.ndarray, optional
        Computed results by name: shape (*nav, *extra_shape) for nav buffers, (*sig, *extra_shape)
        for sig, extra_shape for single.
    masks : mapping of str to numpy.ndarray of bool, optional
        Their valid masks by name, in the same shape, where they are not implied by the ROI.
    tasks : ResultTasks, optional
        What a lazy result is computed from, and its arrays are made of when they are asked for.

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

    __slots__ = ("_arrays", "_masks", "_tasks")

    def __init__(
        self,
        about: About,
        arrays: Mapping[str, Any] | None = None,
        masks: Mapping[str, Any] | None = None,
        tasks: ResultTasks | None = None,
    ) -> None:
        super().__init__(about)
        self._arrays = dict(arrays or {})
        self._masks = dict(masks or {})
        self._tasks = tasks

    def __getitem__(self, name: str) -> Any:
        self._check_name(name)
        if self._tasks is not None and name not in self._arrays:
            self._arrays[name] = self._tasks.array(name)
        return self._arrays[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Result, (self._about, self._arrays, self._masks, self._tasks))

    def __repr__(self) -> str:
        state = "lazy" if self._is_lazy else "computed"
        lines = [f"<Result of {self.udf_name}, {state}>"]
        for name, array in self.items():
            lines.append(f"  {name}: {self.buffers[name].kind}, {array.shape}, {array.dtype}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from udfdask.results.html_table import html_table

        state = "lazy" if self._is_lazy else "computed"
        header = ("name", "kind", "shape", "dtype", "size", *(("chunks",) if self._is_lazy else ()))
        rows = [
            (name, str(self.buffers[name].kind), *_cells(array)) for name, array in self.items()
        ]
        title = f"Result of {self.udf_name}, {state}"
        return html_table(title, header if rows else (), rows)

    if not TYPE_CHECKING:  # type checkers know that there is no such attribute

        def __getattr__(self, name: str) -> Any:
            # while it is unpickled there are no buffers yet
            if not name.startswith("_") and name in self._about.buffers:
                raise AttributeError(
                    f"results are not attributes: write result[{name!r}] in place of result.{name}"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def udf_name(self) -> str:
        """Name of the UDF's class."""
        return self._about.udf_name

    @property
    def buffers(self) -> dict[str, BufferSpec]:
        """Declarations of the results by name: kind, extra_shape, dtype."""
        return dict(self._about.buffers)

    @property
    def axes(self) -> dict[str, tuple[Axis, ...]]:
        """The extra dimensions of each result, from `UDF.get_result_axes`."""
        return dict(self._about.axes)

    @property
    def nav_shape(self) -> tuple[int, ...]:
        """Shape of the scan."""
        return self._about.nav_shape

    @property
    def sig_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return self._about.sig_shape

    @property
    def raw(self) -> Mapping[str, Any]:
        """Arrays with flattened navigation, only the frames of the ROI, in C order.

        Nav results have the shape (frames, *extra_shape).
        """
        return _Lookup(self, self._raw)

    @property
    def valid_mask(self) -> Mapping[str, Any]:
        """Boolean arrays in the shape of the results, True where they are valid."""
        return _Lookup(self, self._valid_mask)

    @property
    def masked(self) -> Mapping[str, Any]:
        """NumPy masked arrays of a computed result; values that are not valid are masked."""
        return _Lookup(self, self._masked)

    def compute(self, progress: Progress = False, **kwargs: Any) -> Result:
        """Return the same result with NumPy arrays, computed in one pass over the data.

        Parameters
        ----------
        progress : bool, callable or ProgressReporter
            Show a progress bar that counts frames and bytes, or tell somebody else about progress:
            see `udfdask.compute`.
        **kwargs
            Passed on to `dask.compute`: scheduler, num_workers, resources, ...

        Returns
        -------
        Result
            Holding NumPy arrays.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> ud.run_udf(da.ones((5, 5, 2, 2)), SumUDF()).compute()["intensity"]
        array([[25., 25.],
               [25., 25.]])
        """
        (done,) = compute_with_progress(self, progress=progress, **kwargs)
        assert isinstance(done, Result)
        return done

    def persist(self, progress: Progress = False, **kwargs: Any) -> Result:
        """Return the same result as blocks in memory, computed in one pass over the data.

        Parameters
        ----------
        progress : bool, callable or ProgressReporter
            As in `udfdask.persist`.
        **kwargs
            Passed on to `dask.persist`.

        Returns
        -------
        Result
            Holding lazy dask arrays, whose blocks have been computed or are about to be.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> kept = ud.run_udf(da.ones((5, 5, 2, 2)), SumUDF()).persist()
        >>> kept["intensity"].sum().compute()
        np.float64(100.0)
        """
        (kept,) = persist_with_progress(self, progress=progress, **kwargs)
        assert isinstance(kept, Result)
        return kept

    def plot(
        self,
        names: Any = None,
        *,
        axes: Sequence[Axis] | None = None,
        log: bool | None = None,
        title: str | None = None,
    ) -> Any:
        """Draw results side by side; those of a lazy result are computed, in one pass.

        Nav results are drawn as images of the scan, or as lines along a scan of one dimension; sig
        results as images or spectra; complex ones as amplitude and phase; vectors, such as those of
        `CoMUDF`, as colours of their directions with a wheel as the legend. Of extra dimensions
        the first four positions are drawn, of a third navigation dimension the middle one. What is
        not valid or NaN has a light colour of its own. y points down.

        Parameters
        ----------
        names : str, tuple or list, optional
            What is drawn: the name of a result; a pair ``(name, function)`` with a function of an
            array in data set shape, NaN where it is not valid; a list of names and pairs. By
            default all that are images or lines.
        axes : sequence of Axis, optional
            Names, scales and units: one axis per dimension of the data, ``(*nav, *sig)``. By
            default pixels are counted.
        log : bool, optional
            Logarithmic scale for all, on which values up to zero are dark, or for none; by default
            for images of kind sig.
        title : str, optional
            A title above all; by default the name of the UDF.

        Returns
        -------
        matplotlib.figure.Figure
            With an interactive matplotlib backend one that `matplotlib.pyplot.show` shows; in a
            notebook it is shown as the value of a cell.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If there is no such result, or none that can be drawn; before anything is computed.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> result = ud.run_udf(da.ones((5, 5, 2, 3)), SumUDF()).compute()
        >>> scan = [ud.Axis(name=name, unit="nm") for name in "yx"]
        >>> angles = [ud.Axis(name=name, unit="mrad", scale=0.5) for name in ("ky", "kx")]
        >>> figure = result.plot("intensity", axes=scan + angles)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_title("left")
        ('kx (mrad)', 'intensity')
        """
        from udfdask.plotting.draw_result import prepare_plot

        plot = prepare_plot(self, True if names is None else names, axes=axes, log=log, title=title)
        arrays = {name: self[name] for name in plot.names}
        masks = {name: self.valid_mask[name] for name in plot.names}
        return plot.draw(*compute_with_progress(arrays, masks))

    def to_xarray(
        self, valid_masks: bool = False, *, rename: Mapping[str, Hashable] | None = None
    ) -> Any:
        """Return the results as variables of an xarray.Dataset, lazy ones without computing them.

        Dimensions are called as the files that `udfdask.io.open_file` reads without names: the last
        two navigation axes ``y`` and ``x``, those of a frame ``sig_y`` and ``sig_x``, a single one
        ``x`` and ``sig_x``, three or more ``nav_0``, ``nav_1``, ... and ``sig_0``, ``sig_1``, ...
        Extra dimensions are called as in `axes`, which also gives them coordinates.

        Parameters
        ----------
        valid_masks : bool
            Add a boolean variable ``{name}_valid`` for each result.
        rename : dict, optional
            Other names for variables: of the result ``"a"``, ``{"a": "b"}``.

        Returns
        -------
        xarray.Dataset
            A variable for each result. For a UDF without results a boolean `visited`, which says
            of each frame whether it has been processed.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If a result is called like a dimension, or `rename` cannot be.
        ImportError
            If xarray is not installed.

        See Also
        --------
        Result.to_zarr : Write them to a file.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumSigUDF
        >>> dataset = ud.run_udf(da.ones((2, 3, 4, 4), chunks=2), SumSigUDF()).to_xarray()
        >>> dataset["intensity"].dims
        ('y', 'x')
        >>> dataset["intensity"].mean("x").compute().values
        array([16., 16.])
        """
        return self._labelled(self._default_layout(rename), valid_masks)

    def to_zarr(
        self,
        path: str | os.PathLike[str],
        *,
        rename: Mapping[str, Hashable] | None = None,
        overwrite: bool = False,
        zarr_format: Literal[2, 3] | None = None,
        progress: bool = False,
        **kwargs: Any,
    ) -> Path:
        """Compute the results into a zarr store that `xarray.open_zarr` reads, in one pass.

        The store is written under another name beside `path` and then renamed, so that there is
        never half of one. It has the variables and chunks of `to_xarray`, a boolean coordinate
        `roi` if there is a region of interest, and ``{name}_valid`` for results with a valid mask
        of their own.

        Parameters
        ----------
        path : str or path-like
            Where the store is to be, by custom ending in ``.zarr``; the workers of a cluster must
            reach it as well.
        rename : dict, optional
            Other names for variables, as in `to_xarray`.
        overwrite : bool
            Replace a zarr store that is there already, if nothing else lies in it.
        zarr_format : {2, 3}, optional
            Format of the store; by default the newest that zarr writes.
        progress : bool
            Show a progress bar.
        **kwargs
            Passed on to `dask.compute`: scheduler, num_workers, resources, ...

        Returns
        -------
        pathlib.Path
            The store's absolute path.

        Raises
        ------
        FileExistsError
            If there is something at `path` and it may not, or must not, be replaced.
        FileNotFoundError
            If the folder that `path` is to be in does not exist.
        ArgumentTypeError
            If a result has a type that zarr does not store, such as object; if `rename` is no
            dictionary; if there is an argument that no scheduler takes.
        ArgumentValueError
            If `path` is no local path; if it is a file or store that the data are read from,
            contains one, or lies in one; if there is no such format, a result is called like a
            dimension, or `rename` cannot be.
        OSError
            If nothing can be written there, for example on a read-only disk.
        ImportError
            If xarray or zarr is not installed.

        Examples
        --------
        >>> import tempfile, dask.array as da, udfdask as ud, xarray as xr
        >>> from udfdask.udfs import SumSigUDF
        >>> result = ud.run_udf(da.ones((2, 3, 4, 4), chunks=2), SumSigUDF(), roi=(0, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with xr.open_zarr(result.to_zarr(f"{folder}/sums.zarr")) as dataset:
        ...         print(dataset["intensity"].where(dataset.roi).sum().values)
        16.0
        """
        from udfdask.io.write_zarr import write_dataset

        check_options("to_zarr", kwargs, kwargs.get("scheduler"))
        layout = self._default_layout(rename)
        dataset = self._labelled(layout, False)
        return write_dataset(
            layout.add_validity(dataset, self._own_masks, self._about.grid.roi),
            path,
            overwrite=overwrite,
            sources=self._about.files,
            zarr_format=zarr_format,
            progress=progress,
            **kwargs,
        )

    def _default_layout(self, rename: Mapping[str, Hashable] | None) -> Layout:
        """Return where the results go in a Dataset if the data have no labels."""
        from udfdask.results.labels.labels import default_labels
        from udfdask.results.labels.layout import check_rename, make_layout

        check_rename(rename, self)
        labels = default_labels(len(self._about.grid.shape), len(self._about.sig_shape))
        return make_layout(self._about, labels, rename)

    def _labelled(self, layout: Layout, valid_masks: bool) -> Any:
        """Return the results as a Dataset, laid out like this."""
        masks = self.valid_mask if valid_masks else None
        return layout.fill(self, masks, self._visited_frames)

    @property
    def _visited_frames(self) -> Any:
        """Which frames have been processed, shape nav; lazily, if the result is."""
        if self._tasks is not None:
            return self._tasks.visited()
        return _selected(self._about.grid)

    @property
    def _is_lazy(self) -> bool:
        return self._tasks is not None

    @property
    def _own_masks(self) -> dict[str, Any]:
        """Valid masks of what `get_results` made, which may have given its own."""
        if self._tasks is not None and self._tasks.finished:
            return {name: self._valid_mask(name) for name in self}
        return self._masks

    def _raw(self, name: str) -> Any:
        """Return the rows of a nav result, or the whole of another."""
        array, spec = self[name], self.buffers[name]
        grid = self._about.grid
        if spec.kind == "single" and not spec.extra_shape:
            return array.reshape((1,)) if isinstance(array, np.ndarray) else array[None]
        if spec.kind != "nav":
            return array
        if isinstance(array, da.Array):
            return flat_rows(array, grid)
        rows = array[_selected(grid)]
        return rows.reshape((grid.n_frames, *spec.extra_shape))

    def _valid_mask(self, name: str) -> Any:
        """Return where a result is valid."""
        array, grid = self[name], self._about.grid
        if self._tasks is not None and self._tasks.finished and name not in self._masks:
            self._masks[name] = self._tasks.mask(name)
        if name in self._masks:
            return self._masks[name]
        is_nav = self.buffers[name].kind == "nav"
        if self._is_lazy:
            return default_mask(array, grid, is_nav)
        mask = np.ones(array.shape, dtype=bool)
        if is_nav and grid.roi is not None:
            mask[~grid.roi] = False
        return mask

    def _masked(self, name: str) -> Any:
        """Return a computed result with what is not valid masked out."""
        array = self[name]
        if not isinstance(array, np.ndarray):
            raise UDFError(f"masked[{name!r}] exists on computed results: call .compute() first")
        return np.ma.MaskedArray(array, mask=~self._valid_mask(name))

    # The dask collection protocol.

    def __dask_graph__(self) -> HighLevelGraph | None:
        return None if self._tasks is None else self._tasks.graph

    def __dask_keys__(self) -> list[Any]:
        return self._lazy.keys

    def __dask_layers__(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key[0] for key in self._lazy.keys))

    def __dask_tokenize__(self) -> Any:
        if self._tasks is not None:
            return ("udfdask.Result", self._tasks.token, self.__dask_layers__())
        return (
            "udfdask.Result",
            [tokenize(array) for array in (*self.values(), *self._masks.values())],
        )

    @property
    def __dask_optimize__(self) -> Any:
        # the very function of arrays, so that dask optimises results and arrays together
        return GraphArray.__dask_optimize__

    @property
    def __dask_scheduler__(self) -> Any:
        return GraphArray.__dask_scheduler__

    def __dask_postcompute__(self) -> tuple[Callable[..., Result], tuple[Any, ...]]:
        gather, extra = self._lazy.gather()
        return _computed, (self._about, gather, extra)

    def __dask_postpersist__(self) -> tuple[Callable[..., Result], tuple[Any, ...]]:
        return _persisted, (self._about, self._lazy)

    @property
    def _lazy(self) -> ResultTasks:
        """What a lazy result is computed from; dask asks no computed one."""
        assert self._tasks is not None
        return self._tasks


class _Lookup(Mapping[str, Any]):
    """A mapping over the names of a result that makes each value when it is asked for."""

    __slots__ = ("_make", "_result")

    def __init__(self, result: Result, make: Callable[[str], Any]) -> None:
        self._result = result
        self._make = make

    def __getitem__(self, name: str) -> Any:
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._result)

    def __len__(self) -> int:
        return len(self._result)


def _selected(grid: Grid) -> BoolArray:
    """Return a mask of the frames that are processed, shape nav."""
    return np.ones(grid.shape, dtype=bool) if grid.roi is None else grid.roi


def _cells(array: Any) -> tuple[str, ...]:
    """Return shape, dtype, size and chunks of an array as texts, no chunks of NumPy arrays."""
    shape = " x ".join(map(str, array.shape)) or "one value"
    # expression arrays have no nbytes yet
    size = format_bytes(array.size * array.dtype.itemsize)
    if not is_dask_collection(array):
        return shape, str(array.dtype), size
    chunks = " x ".join(map(str, map(max, array.chunks))) or "one value"
    return shape, str(array.dtype), size, f"{math.prod(map(len, array.chunks))} of {chunks}"


def _computed(
    values: list[Any], about: About, gather: Callable[..., Arrays], extra: tuple[Any, ...]
) -> Result:
    """Return a computed result from the outcomes of its tasks."""
    return Result(about, *gather(values, *extra))


def _persisted(
    graph: Any, about: About, tasks: ResultTasks, rename: Mapping[str, str] | None = None
) -> Result:
    """Return the same result over another graph."""
    return Result(about, tasks=tasks.with_graph(graph, rename or {}))
