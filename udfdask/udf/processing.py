"""The methods of a UDF that run in tasks: before, after and between the chunks, and on results."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from udfdask.backends.table import backend_of, in_backend
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError
from udfdask.udf.buffers import Views


class UDFMethod(enum.Enum):
    """The methods that can process data; a UDF uses the first that it has.

    Examples
    --------
    >>> import udfdask as ud
    >>> class EitherUDF(ud.UDF):
    ...     def get_method(self):
    ...         return ud.UDFMethod.TILE if self.params.fast else ud.UDFMethod.FRAME
    ...     def process_frame(self, frame): ...
    ...     def process_tile(self, tile): ...
    >>> EitherUDF(fast=False).get_method()
    <UDFMethod.FRAME: 'frame'>
    """

    TILE = "tile"
    FRAME = "frame"
    NEIGHBORHOOD = "neighborhood"
    PARTITION = "partition"


class MaskedResult(NamedTuple):
    """A result with its valid-data mask, from `UDF.with_mask`.

    Examples
    --------
    >>> import numpy as np, udfdask as ud
    >>> ud.UDF().with_mask(np.arange(2), mask=[True, False])
    MaskedResult(array=array([0, 1]), mask=[True, False])
    """

    array: Any
    mask: Any


class Processing:
    """The methods of a UDF that run in tasks, in the order in which they are called."""

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return expensive values by name that all chunks share, such as mask stacks or FFT plans.

        This method runs once per process and run, and does not know the chunk. Several threads use
        the returned values at the same time, so they must not be changed.

        Returns
        -------
        mapping of str to object
            Available as ``self.task_data``, also in `get_task_data`; empty by default.

        Examples
        --------
        >>> import udfdask as ud
        >>> from udfdask.masks import circular
        >>> class DiskUDF(ud.UDF):
        ...     def get_shared_task_data(self):
        ...         h, w = self.meta.dataset_shape.sig
        ...         return {"disk": circular(w // 2, h // 2, w, h, self.params.r)}
        ...     def process_frame(self, frame):
        ...         self.results.total[:] = frame[self.task_data.disk].sum()
        """
        return {}

    def get_task_data(self) -> Mapping[str, Any]:
        """Return values by name that each task computes for itself.

        This method runs for every chunk; `meta.slice`, `meta.coordinates` and
        `meta.partition_shape` describe the chunk.

        Returns
        -------
        mapping of str to object
            Available as ``self.task_data``; empty by default.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> class NearestUDF(ud.UDF):
        ...     def get_task_data(self):
        ...         return {"distances": np.hypot(*self.meta.coordinates.T)}
        ...     def process_partition(self, partition):
        ...         self.results.distance[:] = self.task_data.distances
        """
        return {}

    def preprocess(self) -> None:
        """Initialize the buffers before a chunk is processed and before partials are merged.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> class MinUDF(ud.UDF):
        ...     def preprocess(self):
        ...         self.results.min[:] = np.inf  # buffers start with zeros
        ...     def process_frame(self, frame):
        ...         self.results.min[:] = np.minimum(self.results.min, frame)
        """

    def postprocess(self) -> None:
        """Finish the buffers of a chunk after all its frames have been processed.

        Examples
        --------
        >>> import udfdask as ud
        >>> class RootUDF(ud.UDF):
        ...     def process_tile(self, tile):  # perhaps a part of the frames
        ...         self.results.norm += (tile**2).sum(axis=(1, 2))
        ...     def postprocess(self):
        ...         self.results.norm **= 0.5
        """

    def cleanup(self) -> None:
        """Release the resources of a task, such as open files; runs after all other methods.

        Examples
        --------
        >>> import udfdask as ud
        >>> class LogUDF(ud.UDF):
        ...     def get_task_data(self):
        ...         return {"log": open("frames.log", "a")}
        ...     def cleanup(self):
        ...         self.task_data.log.close()
        """

    def merge(self, dest: Views, src: Views) -> None:
        """Merge partial results `src` into `dest`; the default copies nav buffers.

        Parameters
        ----------
        dest : Views
            Buffers to merge into, by attribute. Shape (n, *extra_shape) for nav, with the rows of
            `src`; (*sig, *extra_shape) for sig; `extra_shape` or (1,) for single.
        src : Views
            Private copies of the partial results, in the same shapes and dtypes.

        Raises
        ------
        ArgumentTypeError
            If the default implementation cannot cast a dtype safely.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class TotalUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"total": self.buffer(kind="sig")}
        ...     def process_frame(self, frame):
        ...         self.results.total += frame
        ...     def merge(self, dest, src):
        ...         dest.total += src.total
        >>> ud.run_udf(da.ones((6, 2), chunks=2), TotalUDF(), sig_dims=1)["total"].compute()
        array([6., 6.], dtype=float32)
        """
        for name, values in src.items():
            target = dest.get(name)
            if not np.can_cast(values.dtype, target.dtype, casting="safe"):
                raise ArgumentTypeError(
                    f"cannot merge buffer {name!r} of dtype {values.dtype} safely into "
                    f"{target.dtype}"
                )
            target[:] = values

    def get_results(self) -> Mapping[str, Any]:
        """Compute results by name from the merged buffers; a buffer that is left out is a result.

        Returns
        -------
        mapping of str to array
            Arrays, or return values of `with_mask`. Nav results hold the frames of the ROI, shape
            (frames, *extra_shape), or the whole scan, shape (*nav, *extra_shape). All `result_only`
            buffers are required.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class MeanUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {
        ...             "sum": self.buffer(kind="sig", use="private"),
        ...             "mean": self.buffer(kind="sig", use="result_only"),
        ...         }
        ...     def process_frame(self, frame):
        ...         self.results.sum += frame
        ...     def merge(self, dest, src):
        ...         dest.sum += src.sum
        ...     def get_results(self):
        ...         return {"mean": self.results.sum / self.meta.dataset_shape.nav.size}
        >>> x = da.arange(12, chunks=4).reshape(6, 2)
        >>> ud.run_udf(x, MeanUDF(), sig_dims=1)["mean"].compute()
        array([5., 6.], dtype=float32)
        """
        return {}

    def with_mask(self, array: Any, mask: Any) -> MaskedResult:
        """Combine a result with its valid-data mask, in `get_results`.

        Parameters
        ----------
        array : array
            The result.
        mask : bool or array of bool
            True where the result is valid; broadcasts to `array`.

        Returns
        -------
        MaskedResult
            Return it from `get_results`.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> ud.UDF().with_mask(np.arange(3), mask=True).mask
        True
        """
        return MaskedResult(array, mask)

    def forbuf(self, array: Any, target: AnyArray) -> Any:
        """Convert an array to the array type and shape of a result buffer.

        Parameters
        ----------
        array : array
            Array of the current backend.
        target : array
            View of the buffer that the array is then assigned to.

        Returns
        -------
        array
            The values in the shape of `target`: a NumPy array, or a CuPy array for a buffer on the
            device.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> ud.UDF().forbuf(np.arange(6), np.zeros((2, 3))).shape
        (2, 3)
        """
        return in_backend(array, backend_of(target)).reshape(target.shape)
