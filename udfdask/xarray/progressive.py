"""Progressive runs over DataArrays: snapshots with labeled results."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from udfdask.results.layout import Labels, Layout
from udfdask.run.progressive import Snapshot
from udfdask.run.progressive.iterator import SnapshotIterator
from udfdask.run.progressive.snapshot import BaseSnapshot


class LabeledSnapshot(BaseSnapshot[xr.Dataset]):
    """The labeled results of a run over the chunks that have been merged so far.

    A snapshot does not change while the run continues. `DataArray.udf.run_udf_iter` yields
    snapshots. `buffers` holds a computed Dataset for each UDF. Its values are zero at positions
    that have not been processed.

    Parameters
    ----------
    snapshot : Snapshot
        The same results as arrays.
    labels : Labels
        Dimensions and coordinates of the input.
    layouts : sequence of Layout
        The Dataset of each UDF, without values.
    valid_masks : bool
        Whether Datasets have a mask for each result.

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

    def __init__(
        self, snapshot: Snapshot, labels: Labels, layouts: Sequence[Layout], valid_masks: bool
    ) -> None:
        def make(number: int) -> xr.Dataset:
            result = snapshot.buffers[number]
            masks = result.valid_mask if valid_masks else None
            return layouts[number].fill(result._plain_arrays, masks, snapshot.damage)

        super().__init__(snapshot._state, make)
        self._snapshot = snapshot
        self._labels = labels

    @property
    def damage(self) -> xr.DataArray:
        """Mask of the frames that have been processed, booleans."""
        labels = self._labels
        coords = labels.coords.drop_dims(labels.sig, errors="ignore").coords
        return xr.DataArray(self._snapshot.damage, dims=labels.nav, coords=coords)


class LabeledIterator(SnapshotIterator[LabeledSnapshot]):
    """Iterates over the labeled snapshots of a run, one per merged chunk.

    It works like `UDFIterator`. `DataArray.udf.run_udf_iter` returns iterators.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumUDF
    >>> array = xr.DataArray(da.ones((4, 3, 2), chunks=(1, 3, 2)), dims=("y", "x", "E"))
    >>> with array.udf.run_udf_iter(SumUDF(), "E", scheduler="synchronous") as snapshots:
    ...     next(snapshots)
    <LabeledSnapshot of SumUDF: 1 of 4 chunks>
    """
