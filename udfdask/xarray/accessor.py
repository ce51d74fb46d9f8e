"""The accessor `udf` of DataArrays: arrange the data, run, label."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack, overload

import xarray as xr

from udfdask.base.tracebacks import own_lines_hidden
from udfdask.errors import ArgumentValueError
from udfdask.explanation.describe import Explanation
from udfdask.geometry.roi import Region
from udfdask.io.opened_file import SIGNAL_DIMS, own_name
from udfdask.results.layout import Labels, Layout, check_rename, make_dataset, make_layout
from udfdask.results.named_results import ResultInfo
from udfdask.run.labeled_data import LabeledData
from udfdask.run.map_frames import MapOptions, call_of, make_frame_udf, name_of_map
from udfdask.run.map_frames import map_frames as map_on_array
from udfdask.run.options import IterOptions, RunOptions, check_names, forwards
from udfdask.run.progressive import ArraySnapshot, Snapshot, UDFIterator
from udfdask.run.progressive import run_udf_iter as iterate_on_array
from udfdask.run.run_udf import in_form_of
from udfdask.run.run_udf import run_udf as run_on_array
from udfdask.scheduling.compute import check_options, compute
from udfdask.udf import UDF
from udfdask.xarray.from_dataarray import arrange, name_dims

LabeledRegion: TypeAlias = xr.DataArray | Region

SigDims = int | str | Sequence[Hashable]
"""Names of the signal dimensions, or their number if they are the last dimensions."""

_UNNAMED = "__udfdask_result__"
"""Temporary name of a variable, which no dimension has."""


class LabeledOptions(RunOptions, total=False):
    """Options of `run_udf` that are keyword arguments."""

    rename: Mapping[str, Hashable] | None
    keep_attrs: bool | None
    valid_masks: bool


def _layouts(
    infos: Sequence[ResultInfo], labels: Labels, rename: Mapping[str, Hashable] | None
) -> list[Layout]:
    """Return the checked Dataset of each UDF, before it has values."""
    check_rename(rename, [name for info in infos for name in info.buffers])
    return [make_layout(info, labels, rename) for info in infos]


@xr.register_dataarray_accessor("udf")
class DataArrayUDF:
    """Runs UDFs over a DataArray, as ``array.udf``, after ``import udfdask.xarray``.

    ``sig_dims=("ky", "kx")`` names the signal dimensions; all others are navigation dimensions. If
    signal dimensions are not the last ones, axes are moved, lazily.

    Results are lazy if the DataArray has chunks. Otherwise the data get chunks and are processed
    immediately, as in xarray's own functions.

    Parameters
    ----------
    array : xarray.DataArray
        The data.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumUDF
    >>> array = xr.DataArray(
    ...     da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8)),
    ...     dims=("y", "x", "ky", "kx"),
    ...     coords={"kx": ("kx", range(-4, 4), {"units": "mrad"})},
    ... )
    >>> dataset = array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))
    >>> dataset["intensity"].sel(kx=-2, ky=0).compute().item()
    24.0
    """

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def _run(
        self,
        arranged: tuple[LabeledData, Labels],
        udf: Any,
        options: Mapping[str, Any],
        rename: Mapping[str, Hashable] | None,
        valid_masks: bool = False,
    ) -> tuple[xr.Dataset, ...]:
        """Return a Dataset for each UDF, lazy if the data are lazy."""
        data, labels = arranged
        results = data.run(udf, options)
        layouts = _layouts([result._info for result in results], labels, rename)
        if self._array.chunks is None:
            with own_lines_hidden:
                results = compute(*results)
        return tuple(
            make_dataset(*each, valid_masks) for each in zip(results, layouts, strict=True)
        )

    @overload
    def run_udf(
        self,
        udf: UDF,
        sig_dims: SigDims | None = ...,
        roi: LabeledRegion | None = ...,
        **options: Unpack[LabeledOptions],
    ) -> xr.Dataset: ...
    @overload
    def run_udf(
        self,
        udf: Sequence[UDF],
        sig_dims: SigDims | None = ...,
        roi: LabeledRegion | None = ...,
        **options: Unpack[LabeledOptions],
    ) -> tuple[xr.Dataset, ...]: ...
    @overload
    def run_udf(
        self,
        udf: Mapping[str, UDF],
        sig_dims: SigDims | None = ...,
        roi: LabeledRegion | None = ...,
        **options: Unpack[LabeledOptions],
    ) -> dict[str, xr.Dataset]: ...
    @forwards(RunOptions, run_on_array)
    def run_udf(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        sig_dims: SigDims | None = None,
        roi: LabeledRegion | None = None,
        *,
        rename: Mapping[str, Hashable] | None = None,
        keep_attrs: bool | None = None,
        valid_masks: bool = False,
        **options: Unpack[RunOptions],
    ) -> xr.Dataset | tuple[xr.Dataset, ...] | dict[str, xr.Dataset]:
        """Run one UDF, or several in one pass, and return labeled results.

        Parameters
        ----------
        udf : UDF, or list, tuple or dict of UDF
            The UDFs to run. All UDFs of a list or dictionary share one pass over the data.
        sig_dims : str, sequence of hashable, or int, optional
            Names of the signal dimensions, in the order of the axes of a frame, or their number if
            they are the last ones; by default the attribute `signal_dims` of the data, which
            `OpenedFile.to_xarray` writes, else the last two, unless names say otherwise.
        roi : xarray.DataArray or array-like, optional
            The scan positions to process: a boolean DataArray, which is aligned by its coordinates
            and repeated along missing dimensions; or as in `udfdask.run_udf`.
        rename : dict, optional
            New names of variables: ``{"a": "b"}`` calls the result ``"a"`` ``"b"``.
        keep_attrs : bool, optional
            Whether variables and Datasets get the attributes of the data; by default as set by
            xarray's option `keep_attrs`. Attributes that describe values, such as `units`, are kept
            only for results in the unit of the data (`UDF.keeps_units`).
        valid_masks : bool
            Add a boolean variable ``{name}_valid`` for each result.
        **options
            As in `udfdask.run_udf`; DataArrays among them are aligned by their coordinates.

        Returns
        -------
        xarray.Dataset, tuple of xarray.Dataset or dict of xarray.Dataset
            In the form of `udf`. Variables of kind nav have the navigation dimensions, those of
            kind sig the signal dimensions, with the coordinates of the data.

        Raises
        ------
        UDFError
            As in `udfdask.run_udf`, or if a dimension is unknown, the ROI cannot be aligned, or a
            result has the name of a dimension.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> from udfdask.udfs import SumSigUDF, SumUDF
        >>> array = xr.DataArray(da.ones((8, 8, 4)), dims=("ky", "kx", "time"))
        >>> total, sums = array.udf.run_udf([SumUDF(), SumSigUDF()], sig_dims=("ky", "kx"))
        >>> total["intensity"].dims, sums["intensity"].dims
        (('ky', 'kx'), ('time',))
        """
        check_names(self.run_udf, options)
        arranged = arrange(self._array, sig_dims, roi, keep_attrs)
        return in_form_of(udf, self._run(arranged, udf, options, rename, valid_masks))

    @overload
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = ...,
        roi: LabeledRegion | None = ...,
        *,
        output_names: Sequence[str],
        **kwargs: Any,
    ) -> xr.Dataset: ...
    @overload
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = ...,
        roi: LabeledRegion | None = ...,
        *,
        output_names: None = ...,
        **kwargs: Any,
    ) -> xr.DataArray: ...
    @forwards(MapOptions, map_on_array)
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = None,
        roi: LabeledRegion | None = None,
        *,
        output_dims: str | Sequence[Hashable] | None = None,
        keep_attrs: bool | None = None,
        **kwargs: Any,
    ) -> xr.DataArray | xr.Dataset:
        """Call a function with every frame.

        Parameters
        ----------
        func : callable
            Called as ``func(frame, **kwargs)``, as in `udfdask.map_frames`.
        sig_dims, roi
            As in `run_udf`.
        output_dims : str or sequence of hashable, optional
            Names for the axes of the arrays that `func` returns, by default ``result_dim_0``, ...
            Dimensions of the data among them keep their coordinates.
        keep_attrs : bool, optional
            As in `run_udf`; by default without those that describe values, such as `units`.
        output_shape, output_dtype, ragged, output_names, backends, **kwargs
            As in `udfdask.map_frames`.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            Called like the data, or else like the function; with `output_names`, a Dataset with a
            variable for each name.

        Raises
        ------
        UDFError
            As in `udfdask.map_frames`, or if `output_dims` comes with `output_names`.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask.xarray, xarray as xr
        >>> array = xr.DataArray(da.ones((2, 3, 4, 5)), dims=("y", "x", "ky", "kx"))
        >>> array.udf.map_frames(np.sum, sig_dims=("ky", "kx"), axis=0, output_dims=["kx"]).dims
        ('y', 'x', 'kx')
        """
        udf = make_frame_udf(self.map_frames, func, locals(), kwargs)
        several = kwargs.get("output_names") is not None
        if several and output_dims is not None:
            raise ArgumentValueError(
                "output_dims= names the dimensions of one result: leave it out, and rename "
                "dimensions of the Dataset with its rename_dims"
            )
        arranged = arrange(self._array, sig_dims, roi, keep_attrs)
        rename = None if several else {"result": _UNNAMED}
        (dataset,) = self._run(arranged, {call_of(func): udf}, {}, rename)
        if several:
            return dataset
        name = own_name(self._array)
        mapped = dataset[_UNNAMED].rename(name_of_map(func) if name is None else name)
        if output_dims is not None:
            mapped = name_dims(mapped, output_dims, arranged[1])
        if keep_attrs is None:
            keep_attrs = xr.get_options()["keep_attrs"]
        if keep_attrs is not True:
            return mapped
        # the result has other dimensions
        attrs = {name: value for name, value in self._array.attrs.items() if name != SIGNAL_DIMS}
        return mapped.assign_attrs(attrs)

    @forwards(IterOptions, run_udf, iterate_on_array)
    def run_udf_iter(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        sig_dims: SigDims | None = None,
        roi: LabeledRegion | None = None,
        *,
        rename: Mapping[str, Hashable] | None = None,
        keep_attrs: bool | None = None,
        valid_masks: bool = False,
        **options: Unpack[IterOptions],
    ) -> UDFIterator[xr.Dataset, xr.DataArray]:
        """Run UDFs and yield labeled intermediate results.

        Parameters
        ----------
        udf, sig_dims, roi, rename, keep_attrs, valid_masks
            As in `run_udf`.
        **options
            As in `udfdask.run_udf_iter`.

        Returns
        -------
        UDFIterator
            Yields a `Snapshot` after each merged chunk: its `buffers` are computed Datasets, with
            zeros at positions that have not been processed, and `damage` is a DataArray.

        Raises
        ------
        UDFError
            As in `run_udf`.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> from udfdask.udfs import SumUDF
        >>> data = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))
        >>> array = xr.DataArray(data, dims=("y", "x", "ky", "kx"))
        >>> for snapshot in array.udf.run_udf_iter(SumUDF(), sig_dims=("ky", "kx")):
        ...     print(snapshot.buffers[0]["intensity"].sel(ky=0, kx=0).item())
        3.0
        6.0
        """
        check_options(self.run_udf_iter, options, options.get("scheduler"))
        data, labels = arrange(self._array, sig_dims, roi, keep_attrs)
        run = data.iterate(udf, options)
        layouts = _layouts(run.infos, labels, rename)

        def label(plain: ArraySnapshot) -> Snapshot[xr.Dataset, xr.DataArray]:
            def make(number: int) -> xr.Dataset:
                result = plain.buffers[number]
                return make_dataset(result, layouts[number], valid_masks, plain.damage)

            return Snapshot(plain._state, make, labels.of_positions)

        return UDFIterator(run, label)

    @forwards(RunOptions, run_udf)
    def explain(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        sig_dims: SigDims | None = None,
        roi: LabeledRegion | None = None,
        measure: bool = False,
        **options: Unpack[RunOptions],
    ) -> Explanation:
        """Describe what `run_udf` would do with the same arguments.

        Parameters
        ----------
        udf, sig_dims, roi
            As in `run_udf`.
        measure
            As in `udfdask.explain`.
        **options
            As in `run_udf`.

        Returns
        -------
        Explanation
            As of `udfdask.explain`.

        Raises
        ------
        UDFError
            As in `run_udf`.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> from udfdask.udfs import SumUDF
        >>> x = da.ones((64, 64, 32, 32), chunks=(8, 64, 32, 32), dtype="uint16")
        >>> array = xr.DataArray(x, dims=("y", "x", "ky", "kx"))
        >>> array.udf.explain(SumUDF(), sig_dims=("ky", "kx")).n_chunks
        8
        """
        check_names(self.explain, options)
        return arrange(self._array, sig_dims, roi)[0].explain(udf, options, measure=measure)
