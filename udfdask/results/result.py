"""The results of one UDF: named arrays, lazy or computed, with rows and masks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.errors import UDFError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.graph.dask_internals.arrays import GraphArray
from udfdask.graph.result_tasks import Arrays, ResultTasks
from udfdask.results.named_results import NamedResults, ResultInfo
from udfdask.scheduling.compute import compute as compute_with_progress
from udfdask.scheduling.compute import persist as persist_with_progress
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.scheduler_options import check_options
from udfdask.tracebacks import own_lines_hidden
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec

if TYPE_CHECKING:
    from udfdask.geometry.labeled_values import Place
    from udfdask.geometry.result_array import Content, ResultArray
    from udfdask.results.labels.layout import Layout


class Result(NamedResults):
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

    __slots__ = ("_arrays", "_masks", "_tasks", "_udf", "_views")

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
        self._udf: UDF | None = None

    def __getitem__(self, name: str) -> Any:
        place = self._info.place_of(name)
        if self._is_lazy:
            return place.of(self._plain(place.result))
        if name not in self._views:
            self._views[name] = self._view(place)
        return self._views[name]

    def _plain(self, name: str) -> Any:
        """Return a result as a plain NumPy or dask array."""
        if self._tasks is not None and name not in self._arrays:
            self._arrays[name] = self._tasks.array(name)
        return self._arrays[name]

    def _view(self, place: Place) -> ResultArray:
        """Return a computed result, or a part of it, with attributes of LiberTEM's results."""
        from udfdask.geometry.result_array import as_result_array  # only computed results need it

        content = self._content(place.result)
        values = place.of(content.values)
        return as_result_array(
            replace(
                content,
                values=values,
                mask=None if content.mask is None else place.of(content.mask),
                extra_shape=values.shape[values.ndim - len(place.axes) :],
            )
        )

    def _content(self, name: str) -> Content:
        """Return what all forms of a computed result are made of."""
        from udfdask.geometry.result_array import Content

        spec = self.buffers[name]
        return Content(
            values=self._plain(name),
            mask=self._masks.get(name),
            kind=spec.kind,
            extra_shape=spec.extra_shape,
            grid=self._info.grid,
        )

    def _called(self, name: Hashable) -> Result:
        """Return this result with the name that the user gave to the UDF."""
        info = replace(self._info, name=str(name))
        return Result(info, self._arrays, self._masks, self._tasks)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Result, (self._info, self._arrays, self._masks, self._tasks))

    def __repr__(self) -> str:
        state = "lazy" if self._is_lazy else "computed"
        lines = [f"<Result of {self._info.title}, {state}>"]
        for name, array in self.items():
            lines.append(f"  {name}: {self.buffers[name].kind}, {array.shape}, {array.dtype}")
        lines += [f"  note  {text}" for text in self._info.short_notes(is_lazy=self._is_lazy)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from udfdask.explanation.html_table import result_table

        return result_table(self)

    if not TYPE_CHECKING:  # type checkers know that there is no such attribute

        def __getattr__(self, name: str) -> Any:
            # pickle looks up special names before __init__ has set any attribute
            if not name.startswith("_") and name in self._info.buffers:
                raise AttributeError(
                    f"results are not attributes: write result[{name!r}] instead of result.{name}"
                )
            remedy = ""
            if not name.startswith("_") and hasattr(np.ndarray, name) and len(self):
                remedy = f", but its arrays have: write result[{next(iter(self))!r}].{name}"
            if name.startswith("savefig"):
                remedy = ": plot draws a figure: write result.plot().savefig('result.png')"
            elif name.startswith(("save", "to_")):
                remedy = (
                    ": to_zarr writes a store, to_xarray makes a Dataset, result[name] is an "
                    "array, and udfdask.save_results('result.nc', result) writes other formats"
                )
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{remedy}"
            )

    @property
    def udf_name(self) -> str:
        """Name of the UDF's class."""
        return self._info.udf_name

    @property
    def udf(self) -> UDF:
        """A UDF with the parameters of the run, and `meta` as in `get_results` of the whole run.

        It has no buffers. Parameters with a unit are in pixels. `get_task_data` works. It is not
        the instance that was passed to `run_udf`. Of a UDF of LiberTEM, it is the adapted one.

        Raises
        ------
        UDFError
            If the result comes from a pickle or from another process. If the result is computed,
            and a parameter is a dask array.
        """
        if self._udf is None:
            self._udf = self._info.udf.make()
        return self._udf

    @property
    def buffers(self) -> dict[str, BufferSpec]:
        """Declarations of the results by name: kind, extra_shape, dtype."""
        return dict(self._info.buffers)

    @property
    def axes(self) -> dict[str, tuple[Axis, ...]]:
        """One axis for each dimension of each result: names, scales and units.

        Axes of the scan or of a frame are those of the data, pixel numbers by default. Extra
        dimensions come after them.
        """
        return self._info.axes

    @property
    def extra_axes(self) -> dict[str, tuple[Axis, ...]]:
        """The extra dimensions of each result, from `UDF.get_result_axes`."""
        return dict(self._info.extra_axes)

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of each result, such as "mrad"; None if it is not known."""
        return dict(self._info.units)

    @property
    def default_plots(self) -> tuple[str, ...]:
        """Names of the results that `plot` draws if none is named; empty for all."""
        return self._info.default_plots

    @property
    def calibration(self) -> Calibration:
        """The axes of the data of the run, and the unit of their values."""
        return self._info.calibration

    @property
    def name(self) -> str | None:
        """The key of the UDF in the dictionary of a run; None without one."""
        return self._info.name

    @property
    def files(self) -> tuple[str, ...]:
        """Files and stores that the data are read from; computed results keep them, too.

        Those of data that were computed or persisted before the run are not known.
        """
        return self._info.files

    @property
    def nav_shape(self) -> tuple[int, ...]:
        """Shape of the scan."""
        return self._info.nav_shape

    @property
    def sig_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return self._info.sig_shape

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
        """Compute the result in one pass over the data.

        Parameters
        ----------
        progress : bool, callable or ProgressReporter
            Show a progress bar that counts frames and bytes, or call a progress callback: see
            `udfdask.compute`.
        **kwargs
            Arguments of `udfdask.compute`, such as cache, or of `dask.compute`: scheduler,
            num_workers, resources, ...

        Returns
        -------
        Result
            The same result with NumPy arrays.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an option is invalid.
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
            (done,) = compute_with_progress(self, progress=progress, **kwargs)
        assert isinstance(done, Result)
        return done

    def persist(self, progress: Progress = False, **kwargs: Any) -> Result:
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
            The same result with dask arrays whose blocks are in memory or are being computed.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an option is invalid.
        UDFError
            As in `udfdask.persist`.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> kept = ud.run_udf(da.ones((5, 5, 2, 2)), SumUDF()).persist()
        >>> kept["intensity"].sum().compute()
        np.float64(100.0)
        """
        with own_lines_hidden:
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
        vmin: float | None = None,
        vmax: float | None = None,
        cmap: Any = None,
        norm: Any = None,
    ) -> Any:
        """Draw results side by side. A lazy result is computed first, in one pass.

        Nav results are drawn as images of the scan, or as lines along a scan of one dimension. Sig
        results are drawn as images or spectra, complex results as amplitude and phase. Vectors,
        such as those of `CoMUDF`, are drawn as colors of their directions with a color wheel as the
        legend. Profiles, whose extra dimension has a unit, are drawn as a curve with its standard
        deviation over the scan, and as an image over the first scan axis. The figure shows the
        first four positions along any other extra dimension, and the middle
        position along a third navigation dimension. Values that are not valid or NaN have a light
        color of their own. y points down.

        Parameters
        ----------
        names : str, tuple or list, optional
            The results to draw: a name; a pair ``(name, function)``, where the function takes an
            array in data set shape with NaN at positions that are not valid; or a list of names and
            pairs. The label of a mask, such as "BF", is a name too. By default the `default_plots`
            of the UDF, or else all results that are images or lines.
        axes : sequence of Axis, optional
            Names, scales and units: one axis per dimension of the data, ``(*nav, *sig)``. By
            default those of the run.
        log : bool, optional
            Logarithmic scale for all results, where zero and negative values are dark, or for none.
            By default for images of kind sig.
        title : str, optional
            Title of the figure; by default the name of the UDF, or its key in the dictionary of a
            run.
        vmin, vmax : float, optional
            Limits of the color scale of all images, and of the values of curves, in the unit of the
            values. The brightest vectors have the length `vmax`. By default they fit the values of
            each panel. If an image has values of both signs, one of them is enough: the other is
            its negative. On a logarithmic scale, limits that are not positive do not count.
        cmap : str or matplotlib.colors.Colormap, optional
            Colors of all images except phases.
        norm : matplotlib.colors.Normalize, optional
            Scale of the colors of all images except phases, instead of `log`, `vmin` and `vmax`.

        Returns
        -------
        matplotlib.figure.Figure
            With an interactive matplotlib backend, `matplotlib.pyplot.show` shows it. A notebook
            shows it as the value of a cell.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the name of a result is unknown, no result can be drawn, or colors or limits are
            invalid. Nothing is computed then.
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

        plot = prepare_plot(
            self,
            True if names is None else names,
            axes=axes,
            log=log,
            title=self._info.name if title is None else title,
            vmin=vmin,
            vmax=vmax,
            cmap=cmap,
            norm=norm,
        )
        arrays = {name: self[name] for name in plot.names}
        masks = {name: self.valid_mask[name] for name in plot.names}
        with own_lines_hidden:
            values = compute_with_progress(arrays, masks)
        return plot.draw(*values)

    def plot_detectors(
        self,
        detectors: Any,
        name: str | None = None,
        *,
        log: bool | None = None,
        title: str | None = None,
    ) -> Any:
        """Draw detectors over a result of kind sig, such as the mean pattern or the mean spectrum.

        On images, detectors are outlined and tinted. Windows of spectra are shaded. The legend says
        which detectors are cut by the edge of the frame.

        Parameters
        ----------
        detectors : UDF, array of bool, list or dict
            UDFs over the same data, such as `VirtualDetectorUDF`, `CoMUDF` or `ApplyMasksUDF`, or
            masks of shape `sig`. Their lengths may be in the units of the axes. A dictionary gives
            their names in the legend.
        name : str, optional
            The result to draw; by default the first of kind sig.
        log : bool, optional
            Logarithmic scale; by default for values that are not negative.
        title : str, optional
            Title of the figure; by default none.

        Returns
        -------
        matplotlib.figure.Figure
            As in `plot`.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If there is no result of kind sig, no detector, or a detector does not fit the frames or
            has none of their pixels. Nothing is computed then.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF, VirtualDetectorUDF
        >>> total = ud.run_udf(da.ones((5, 5, 16, 16)), SumUDF())
        >>> bright, dark = VirtualDetectorUDF(r=3), VirtualDetectorUDF("ring", ri=4, ro=7)
        >>> figure = total.plot_detectors({"BF": bright, "ADF": dark})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['BF', 'ADF']
        """
        from udfdask.results.detectors import draw_detectors

        return draw_detectors(self, detectors, name, log=log, title=title)

    def to_xarray(
        self, valid_masks: bool = False, *, rename: Mapping[str, Hashable] | None = None
    ) -> Any:
        """Return the results as variables of an xarray.Dataset; lazy results stay lazy.

        The names of the dimensions are those that `udfdask.io.open_file` uses for files without
        names: ``y`` and ``x`` for two navigation axes, ``sig_y`` and ``sig_x`` for those of a
        frame; ``x`` and ``sig_x`` for a single axis; ``nav_0``, ``nav_1``, ... and ``sig_0``,
        ``sig_1``, ... for three or more. `axes` gives the names and coordinates of extra
        dimensions.

        Parameters
        ----------
        valid_masks : bool
            Add a boolean variable ``{name}_valid`` for each result.
        rename : dict, optional
            New names of variables: ``{"a": "b"}`` calls the result ``"a"`` ``"b"``.

        Returns
        -------
        xarray.Dataset
            A variable for each result. For a UDF without results, a boolean variable `visited`,
            True for each frame that has been processed.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If a result has the name of a dimension, or `rename` is invalid.
        ImportError
            If xarray is not installed.

        See Also
        --------
        Result.to_zarr : Write the results to a file.

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
        return self._make_dataset(self._default_layout(rename), valid_masks)

    def to_zarr(
        self,
        path: str | os.PathLike[str],
        *,
        rename: Mapping[str, Hashable] | None = None,
        overwrite: bool = False,
        zarr_format: Literal[2, 3] | None = None,
        progress: bool = False,
        resume: bool = False,
        **kwargs: Any,
    ) -> Path:
        """Compute the results into a zarr store that `xarray.open_zarr` reads, in one pass.

        The store is written under another name next to `path` and then renamed, so that an
        incomplete store never appears at `path`. It has the variables and chunks of `to_xarray`, a
        boolean coordinate `roi` if there is a region of interest, and ``{name}_valid`` for results
        with their own valid mask, unless it is True everywhere.

        Parameters
        ----------
        path : str or path-like
            Path of the new store, usually ending in ``.zarr``. The workers of a cluster must be
            able to write to it.
        rename : dict, optional
            New names of variables, as in `to_xarray`.
        overwrite : bool
            Replace an existing zarr store, if its folder contains nothing else.
        zarr_format : {2, 3}, optional
            Format of the store; by default the newest format that zarr writes.
        progress : bool
            Show a progress bar.
        resume : bool
            Keep partial results during the computation, in the folder ``{path}.cache``. If the
            computation is interrupted, the same call goes on where it was. The folder is removed
            when the store is complete. From then on, the same call says that nothing is left to
            do, and returns.
        **kwargs
            Arguments of `udfdask.compute`: scheduler, num_workers, resources, ...

        Returns
        -------
        pathlib.Path
            Absolute path of the store.

        Raises
        ------
        FileExistsError
            If `path` exists and `overwrite` is False, or it is not a zarr store. With `resume`,
            not if the same run has written the store.
        FileNotFoundError
            If the parent folder of `path` does not exist.
        ArgumentTypeError
            If zarr cannot store the dtype of a result, such as object; if `rename` is not a
            dictionary; if no scheduler takes one of the arguments.
        ArgumentValueError
            If `path` is not a local path; if it is, contains, or is inside a file or store that the
            data are read from; if the format is unknown, a result has the name of a dimension, or
            `rename` is invalid.
        OSError
            If `path` cannot be written, for example on a read-only disk.
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
        from udfdask.results.zarr_store import write_dataset

        check_options("to_zarr", kwargs, kwargs.get("scheduler"))
        dataset, masks = self._in_file(rename)
        with own_lines_hidden:
            return write_dataset(
                dataset,
                path,
                masks=list(masks.values()),
                overwrite=overwrite,
                sources=self._info.files,
                zarr_format=zarr_format,
                progress=progress,
                resume=resume,
                **kwargs,
            )

    def _in_file(self, rename: Mapping[str, Hashable] | None) -> tuple[Any, dict[str, Hashable]]:
        """Return the Dataset in a file of results, and the names of valid masks there."""
        layout = self._default_layout(rename)
        dataset = self._make_dataset(layout, False)
        masks = {name: layout.places[name].mask_name for name in self._own_masks}
        dataset = layout.add_validity(dataset, self._own_masks, self._info.grid.roi)
        if self._info.grid.roi is not None:  # also results without scan positions have their region
            from udfdask.io.labeled_array import coordinate

            for axis, n in zip(self._info.calibration.axes, self.nav_shape, strict=False):
                dataset = dataset.assign_coords(coordinate(axis.name, axis, n))
        return dataset, masks

    def _default_layout(self, rename: Mapping[str, Hashable] | None) -> Layout:
        """Return the layout of the results in a Dataset with default names."""
        from udfdask.results.labels.labels import labels_of_axes
        from udfdask.results.labels.layout import check_rename, make_layout

        check_rename(rename, self)
        shape = (*self._info.nav_shape, *self._info.sig_shape)
        labels = labels_of_axes(self._info.calibration.axes, shape, len(self._info.nav_shape))
        return make_layout(self._info, labels, rename).with_attributes(self._info.origin)

    def _make_dataset(self, layout: Layout, valid_masks: bool) -> Any:
        """Return the results as a Dataset with this layout."""
        masks = self.valid_mask if valid_masks else None
        made = layout.fill(self._plain_arrays, masks, self._visited_frames)
        notes = self._info.short_notes(is_lazy=False)
        return made.assign_attrs(note="\n".join(notes)) if notes else made

    @property
    def _plain_arrays(self) -> Mapping[str, Any]:
        """The results as plain arrays, for collections that keep the class of an array."""
        return _Lookup(self, self._plain)

    @property
    def _visited_frames(self) -> Any:
        """Mask of the frames that are processed, shape nav; lazy if the result is lazy."""
        if self._tasks is not None:
            return self._tasks.visited()
        return _selected(self._info.grid)

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

        return flat_rows(array, self._info.grid)

    def _valid_mask(self, name: str) -> Any:
        """Return the valid mask of a result."""
        if not self._is_lazy:
            return self._content(name).valid
        if self._lazy_tasks.finalized and name not in self._masks:
            self._masks[name] = self._lazy_tasks.mask(name)
        if name in self._masks:
            return self._masks[name]
        from udfdask.results.rows_and_masks import default_mask  # few users need it

        is_nav = self.buffers[name].kind == "nav"
        return default_mask(self._plain(name), self._info.grid, is_nav)

    def _masked(self, name: str) -> Any:
        """Return a computed result as a masked array."""
        if self._is_lazy:
            raise UDFError(f"masked[{name!r}] needs a computed result: call .compute() first")
        content = self._content(name)
        return np.ma.MaskedArray(content.values, mask=~content.valid)

    # The dask collection protocol.

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

    @property
    def __dask_optimize__(self) -> Any:
        # dask optimizes collections together only if they have the same function: with another one,
        # a result and an array over the same data would each load the data. This holds for one
        # `dask.compute`: after a separate `dask.optimize` of two runs, each may load the data,
        # because dask has fused each run with its own loading
        return GraphArray.__dask_optimize__

    @property
    def __dask_scheduler__(self) -> Any:
        return GraphArray.__dask_scheduler__

    def __dask_postcompute__(self) -> tuple[Callable[..., Result], tuple[Any, ...]]:
        _send_without_copies()
        gather, extra = self._lazy_tasks.gather()
        return _computed, (self._info.without_graph(), gather, extra)

    def __dask_postpersist__(self) -> tuple[Callable[..., Result], tuple[Any, ...]]:
        _send_without_copies()
        return _persisted, (self._info.without_graph(), self._lazy_tasks)

    @property
    def _lazy_tasks(self) -> ResultTasks:
        """The tasks of a lazy result. dask never asks a computed one."""
        assert self._tasks is not None
        return self._tasks


class _Lookup(Mapping[str, Any]):
    """A mapping from the names of a result to values that are made on request."""

    __slots__ = ("_make", "_result")

    def __init__(self, result: Result, make: Callable[[str], Any]) -> None:
        self._result = result
        self._make = make

    def __getitem__(self, name: str) -> Any:
        place = self._result._info.place_of(name)
        return place.of(self._make(place.result))

    def __iter__(self) -> Iterator[str]:
        return iter(self._result)

    def __len__(self) -> int:
        return len(self._result)


def _selected(grid: Grid) -> BoolArray:
    """Return the mask of the frames that are processed, shape nav."""
    return np.ones(grid.shape, dtype=bool) if grid.roi is None else grid.roi


def _computed(
    values: list[Any], info: ResultInfo, gather: Callable[..., Arrays], extra: tuple[Any, ...]
) -> Result:
    """Return a computed result from the values of its tasks."""
    return Result(info, *gather(values, *extra))


def _persisted(
    graph: Any, info: ResultInfo, tasks: ResultTasks, rename: Mapping[str, str] | None = None
) -> Result:
    """Return the same result over another graph."""
    return Result(info, tasks=tasks.with_graph(graph, rename or {}))


def _send_without_copies() -> None:
    """Tell distributed, if this process has imported it, how to send results."""
    if sys.modules.get("distributed") is not None:
        from udfdask.results.sending import send_without_copies  # few clients have a cluster

        send_without_copies(Result)


_send_without_copies()  # on workers, which have imported distributed before
