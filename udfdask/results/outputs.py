"""What results become: pictures, Datasets of xarray, zarr stores."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from udfdask.base.tracebacks import own_lines_hidden
from udfdask.results.named_results import ArrayT_co, NamedResults
from udfdask.scheduling.compute import check_options

if TYPE_CHECKING:
    import xarray as xr

    from udfdask.plotting import displays

    Figure = displays.Figure


class Outputs(NamedResults[ArrayT_co]):
    """The methods of `Result` that draw, label or write results."""

    __slots__ = ()

    def plot(
        self,
        names: Any = None,
        *,
        log: bool | None = None,
        title: str | None = None,
        vmin: float | None = None,
        vmax: float | None = None,
        cmap: Any = None,
    ) -> Figure:
        """Draw results side by side. A lazy result is computed first, in one pass.

        Complex results are drawn as amplitude and phase, and profiles, whose extra dimension has a
        unit, as their mean over the scan. The figure shows the first four positions along any other
        extra dimension, and the middle one along a third navigation dimension. Values that are not
        valid or NaN have a light color of their own.

        Parameters
        ----------
        names : str, tuple or list, optional
            The results to draw: a name, or the label of a mask such as "BF"; a pair
            ``(name, function)`` with a function of an array, with NaN where it is not valid; or a
            list of these. By default the `default_plots` of the UDF, or else all images and lines.
        log : bool, optional
            Logarithmic scale for all results or for none; by default for images of kind sig.
        title : str, optional
            Title of the figure; by default the name of the UDF, or its key in a dictionary.
        vmin, vmax : float, optional
            Limits of the color scale of all images, and of the values of curves. By default they
            fit the values of each panel. If an image has values of both signs, one of them is
            enough: the other is its negative.
        cmap : str or matplotlib.colors.Colormap, optional
            Colors of all images except angles that fill the circle.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it as the value of a cell, `matplotlib.pyplot.show` elsewhere.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If no result of this name can be drawn, or colors or limits are invalid.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> axes = [ud.Axis(name=name, unit="mrad", scale=0.5) for name in ("y", "x", "ky", "kx")]
        >>> result = ud.run_udf(da.ones((5, 5, 2, 3)), SumUDF(), axes=axes)
        >>> result.plot("intensity").axes[0].get_xlabel()
        'kx (mrad)'
        """
        from udfdask.results.detectors import draw_result

        chosen = True if names is None else names
        title = (self.name or self.udf_name) if title is None else title
        look = {"log": log, "vmin": vmin, "vmax": vmax, "cmap": cmap}
        with own_lines_hidden:
            return draw_result(self, chosen, title=title, **look)

    def plot_detectors(
        self,
        detectors: Any,
        name: str | None = None,
        *,
        log: bool | None = None,
        title: str | None = None,
    ) -> Figure:
        """Draw detectors over a result of kind sig, such as the mean pattern or the mean spectrum.

        Parameters
        ----------
        detectors : UDF, array of bool, list or dict
            UDFs over the same data, such as `VirtualDetectorUDF`, or masks of shape `sig`. A
            dictionary gives their names in the legend.
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
            If there is no result of kind sig, or no detector that fits the frames.

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

        return draw_detectors(self, detectors, name, log=log, title=title or "")

    def to_xarray(
        self, valid_masks: bool = False, *, rename: Mapping[str, Hashable] | None = None
    ) -> xr.Dataset:
        """Return the results as variables of an xarray.Dataset; lazy results stay lazy.

        Axes without names are called ``y`` and ``x`` in the scan, ``sig_y`` and ``sig_x`` in a
        frame; ``nav_0``, ``nav_1``, ... and ``sig_0``, ``sig_1``, ... if there are three or more.
        `axes` gives the names and coordinates of extra dimensions.

        Parameters
        ----------
        valid_masks : bool
            Add a boolean variable ``{name}_valid`` for each result.
        rename : dict, optional
            New names of variables: ``{"a": "b"}`` calls the result ``"a"`` ``"b"``.

        Returns
        -------
        xarray.Dataset
            A variable for each result; for a UDF without any, the mask of processed frames.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If `rename` is invalid, or a result has the name of a dimension.
        ImportError
            If xarray is not installed.

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
        from udfdask.results.layout import default_layout, make_dataset

        return make_dataset(self, default_layout(self._info, rename), valid_masks)

    def to_zarr(
        self,
        path: str | os.PathLike[str],
        *,
        rename: Mapping[str, Hashable] | None = None,
        overwrite: bool = False,
        progress: bool = False,
        resume: bool = False,
        **kwargs: Any,
    ) -> Path:
        """Compute the results into a zarr store that `xarray.open_zarr` reads, in one pass.

        An incomplete store never appears at `path`. The store has the variables of `to_xarray`, a
        boolean coordinate `roi` if there is a region of interest, and ``{name}_valid`` for results
        with their own valid mask, unless it is True everywhere.

        Parameters
        ----------
        path : str or path-like
            Path of the new store, which the workers of a cluster must be able to write to.
        rename : dict, optional
            New names of variables, as in `to_xarray`.
        overwrite : bool
            Replace an existing zarr store, if its folder contains nothing else.
        progress : bool
            Show a progress bar.
        resume : bool
            Keep partial results in the folder ``{path}.cache`` until the store is complete: if the
            computation is interrupted, the same call goes on where it was.
        **kwargs
            Arguments of `udfdask.compute`: scheduler, num_workers, resources, ...

        Returns
        -------
        pathlib.Path
            Absolute path of the store.

        Raises
        ------
        FileExistsError
            If `path` exists and `overwrite` is False, or it is not a zarr store.
        FileNotFoundError
            If the parent folder of `path` does not exist.
        ArgumentTypeError
            If zarr cannot store the dtype of a result; if no scheduler takes one of the arguments.
        ArgumentValueError
            If `path` is not local, or is, contains, or is inside a source of the data.
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
        check_options(self.to_zarr, kwargs, kwargs.get("scheduler"))
        from udfdask.results.layout import dataset_in_file
        from udfdask.results.zarr_store import write_dataset

        dataset, masks = dataset_in_file(self, rename)
        kwargs |= {"overwrite": overwrite, "resume": resume}
        kwargs |= {"masks": list(masks.values()), "sources": self.files, "progress": progress}
        with own_lines_hidden:
            return write_dataset(dataset, path, **kwargs)
