"""Progressive runs over DataArrays: snapshots whose results are labelled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import xarray as xr

from udfdask.results.labels.from_dataarray import align_roi, arrange
from udfdask.results.labels.labels import Labels, wants_attributes
from udfdask.results.labels.layout import Layout
from udfdask.run.options import IterOptions
from udfdask.run.progressive import Snapshot
from udfdask.run.progressive.iterator import SnapshotIterator
from udfdask.run.progressive.snapshot import PartialRun
from udfdask.run.progressive.start import prepare_run
from udfdask.udf import UDF
from udfdask.xarray.run import make_layouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelling:
    """How the results of a run are labelled."""

    labels: Labels
    """Those of the data."""
    layouts: tuple[Layout, ...]
    """Where the results of each UDF go."""
    valid_masks: bool
    """Whether Datasets have masks."""


def run_udf_iter(
    array: xr.DataArray,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: Any,
    roi: Any,
    rename: Mapping[str, Hashable] | None,
    keep_attrs: bool | None,
    valid_masks: bool,
    **options: Unpack[IterOptions],
) -> LabelledIterator:
    """Return the snapshots of a run."""
    arranged = arrange(array, sig_dims, keep_attrs=wants_attributes(keep_attrs))
    labels = arranged.labels
    run = prepare_run(
        arranged.data,
        udf,
        sig_dims=arranged.sig_dims,
        roi=align_roi(roi, arranged.array, labels.nav),
        **options,
    )
    layouts = make_layouts(run.abouts, arranged, rename)
    how = Labelling(labels=labels, layouts=tuple(layouts), valid_masks=valid_masks)
    return LabelledIterator(run, partial(LabelledSnapshot, how=how))


class LabelledSnapshot(PartialRun[xr.Dataset]):
    """The labelled results of a run over the chunks that have been merged so far.

    What it holds does not change while the run goes on. Snapshots are made by
    `DataArray.udf.run_udf_iter`.

    Parameters
    ----------
    snapshot : Snapshot
        The same without labels.
    how : Labelling
        How results are labelled.

    Attributes
    ----------
    buffers : sequence of xarray.Dataset
        A computed Dataset for each UDF, in the order of the call. Each is made when it is first
        read. Positions that have not been processed are zero.
    damage : xarray.DataArray of bool
        Which frames have been processed.
    n_chunks : int
        Number of chunks of the run.
    n_merged : int
        Number of chunks that have been merged.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumSigUDF
    >>> data = da.ones((2, 3, 4), chunks=(1, 3, 4))
    >>> array = xr.DataArray(data, dims=("y", "x", "E"))
    >>> first, last = array.udf.run_udf_iter(SumSigUDF(), "E", scheduler="synchronous")
    >>> first.damage.sum("x").values
    array([3, 0])
    >>> first.buffers[0]["intensity"].where(first.damage).mean().item()
    4.0
    """

    __slots__ = ("_labels", "_snapshot")

    def __init__(self, snapshot: Snapshot, how: Labelling) -> None:
        super().__init__(snapshot._found, partial(_dataset, snapshot, how))
        self._snapshot = snapshot
        self._labels = how.labels

    @property
    def damage(self) -> xr.DataArray:
        """Which frames have been processed."""
        labels = self._labels
        coords = labels.coords.drop_dims(labels.sig, errors="ignore").coords
        return xr.DataArray(self._snapshot.damage, dims=labels.nav, coords=coords)


def _dataset(snapshot: Snapshot, how: Labelling, number: int) -> xr.Dataset:
    """Return the Dataset of a UDF."""
    result = snapshot.buffers[number]
    masks = result.valid_mask if how.valid_masks else None
    return how.layouts[number].fill(result, masks, snapshot.damage)


class LabelledIterator(SnapshotIterator[LabelledSnapshot]):
    """Iterates over the labelled snapshots of a run, one after each merged chunk; also `async for`.

    It does what `udfdask.UDFIterator` does. Iterators are made by `DataArray.udf.run_udf_iter`.

    Parameters
    ----------
    run : ProgressiveRun
        What runs.
    label : callable
        Takes a `Snapshot`; returns the object that the iterator yields.

    Attributes
    ----------
    n_chunks : int
        Number of chunks of the run.
    n_merged : int
        Number of chunks that have been merged.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumUDF
    >>> array = xr.DataArray(da.ones((4, 3, 2), chunks=(1, 3, 2)), dims=("y", "x", "E"))
    >>> with array.udf.run_udf_iter(SumUDF(), "E", scheduler="synchronous") as snapshots:
    ...     next(snapshots)
    <LabelledSnapshot of SumUDF: 1 of 4 chunks>
    """
