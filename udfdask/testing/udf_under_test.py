"""Hold the UDF under check with its data, run it, and describe failures of these runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import dask.array as da
import dask.config
import numpy as np

from udfdask.results.result import Result
from udfdask.run.run_udf import run_udf
from udfdask.testing.differences import Difference, Tolerance, find_difference
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, EagerRun, Layout
from udfdask.testing.failures import UDFCheckError, in_words
from udfdask.testing.mutable_state import freeze, take_snapshot
from udfdask.testing.reference import run_reference, with_computed_params
from udfdask.testing.sample_data import scan_chunkings
from udfdask.types import AnyArray
from udfdask.udf import UDF

T = TypeVar("T")


class Subject:
    """A UDF under check.

    Parameters
    ----------
    udf : UDF
        The user's instance; it is never changed.
    arrays : sequence of numpy.ndarray, each of shape (*nav, *sig)
        The data: the first array for all laws, the others for laws about dtypes.
    sig_dims : int
        Number of signal axes.
    """

    def __init__(self, udf: UDF, arrays: Sequence[AnyArray], sig_dims: int) -> None:
        self.original = udf
        self.arrays = arrays
        self.sig_dims = sig_dims
        self.notes: list[str] = []
        self._computed: UDF | None = None
        # the state before the first run
        self.before = take_snapshot(type(udf))

    @property
    def name(self) -> str:
        """Name of the class."""
        return type(self.original).__name__

    @property
    def data(self) -> AnyArray:
        """The array for most laws."""
        return self.arrays[0]

    @property
    def nav(self) -> tuple[int, ...]:
        """Navigation shape."""
        return tuple(self.data.shape[: self.data.ndim - self.sig_dims])

    @property
    def sig(self) -> tuple[int, ...]:
        """Signal shape."""
        return tuple(self.data.shape[self.data.ndim - self.sig_dims :])

    @property
    def frame_bytes(self) -> int:
        """Size of a frame in bytes."""
        return math.prod(self.sig) * self.data.dtype.itemsize

    @property
    def two_chunks(self) -> Chunks | None:
        """Navigation chunks that divide the scan in two; None for a single frame."""
        return next(scan_chunkings(self.nav), None)

    @property
    def udf(self) -> UDF:
        """The UDF with computed parameters."""
        if self._computed is None:
            self._computed = with_computed_params(self.original)
        return self._computed

    def run(
        self,
        layout: Layout = ONE_CHUNK,
        *,
        data: AnyArray | None = None,
        udf: UDF | None = None,
        company: Sequence[UDF] = (),
    ) -> EagerRun:
        """Return a run without dask, of this UDF or of the variant `udf`."""
        udfs = [self.udf if udf is None else udf, *company]
        array = self.data if data is None else data
        return self.attempt(f"with {layout}", EagerRun, udfs, array, self.sig_dims, layout)

    def run_with_dask(
        self, layout: Layout, udfs: Sequence[UDF], data: AnyArray | None = None, **options: Any
    ) -> tuple[Result, ...]:
        """Return the lazy results of a run with dask."""
        nav = layout.nav_chunks or (-1,) * len(self.nav)
        sig = layout.sig_chunks or (-1,) * len(self.sig)
        array = da.from_array(self.data if data is None else data, chunks=(*nav, *sig))
        options |= {"sig_dims": self.sig_dims, "roi": layout.roi}
        with dask.config.set({"udfdask.tile-bytes": layout.tile_bytes}):
            return self.attempt(f"with {layout}", run_udf, array, list(udfs), **options)

    def results(
        self,
        layout: Layout = ONE_CHUNK,
        *,
        data: AnyArray | None = None,
        company: Sequence[UDF] = (),
    ) -> dict[str, AnyArray]:
        """Return the results of a run without dask; nav results have the rows of the ROI."""
        return self.results_of(self.run(layout, data=data, company=company))

    def results_of(self, run: EagerRun) -> dict[str, AnyArray]:
        """Return the results of a run."""
        return self.attempt(f"with {run.layout}", run.results)

    def attempt(self, when: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function; convert its exceptions to UDFCheckError, because the UDF caused them."""
        try:
            return function(*args, **kwargs)
        except UDFCheckError:
            raise
        except Exception as error:  # a user's method may raise anything
            raise UDFCheckError(f"{when}: {in_words(error, self.udf)}") from error

    def error_with(self, data: AnyArray, roi: AnyArray | None = None) -> Exception | None:
        """Return the exception of `run_reference` with some data; None if there is none."""
        try:
            self.reference(data, roi)
        except Exception as error:  # noqa: BLE001  # a user's method may raise anything
            return error
        return None

    def reference(self, data: AnyArray, roi: AnyArray | None = None) -> dict[str, AnyArray]:
        """Return the results of `run_reference`, in the shape of the dataset."""
        return run_reference(data, self.udf, sig_dims=self.sig_dims, roi=roi)

    def tolerance(self, data: AnyArray) -> Tolerance:
        """Return the allowed difference of floats in results of some data."""
        preferred = np.dtype(self.udf.get_preferred_input_dtype())
        dtype = np.result_type(data.dtype, preferred)
        eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
        largest = float(np.abs(data[np.isfinite(data)]).max(initial=0)) if data.size else 0.0
        is_exact = dtype.kind not in "fc" or np.array_equal(data, np.round(data))
        return Tolerance(eps=eps, data=0.0 if is_exact else largest)

    def difference(
        self,
        one: Mapping[str, AnyArray],
        other: Mapping[str, AnyArray],
        data: AnyArray | None = None,
    ) -> Difference | None:
        """Return the first difference between two sets of results that is more than rounding."""
        return find_difference(one, other, self.tolerance(self.data if data is None else data))

    def fail(self, text: str) -> NoReturn:
        """Raise UDFCheckError."""
        raise UDFCheckError(text)

    def attributes_set(self) -> dict[str, Any]:
        """Return the attributes that an instance sets while it processes a chunk, by name."""
        cls = type(self.udf)
        found: dict[str, Any] = {}
        engine = {"meta", "results", "task_data", "params", "_kwargs"}

        def cleanup(udf: Any) -> None:
            fresh = vars(cls(**udf._kwargs))
            for name, value in vars(udf).items():
                if name in engine or name.startswith("__"):
                    continue
                if name not in fresh or freeze(fresh[name]) != freeze(value):
                    found[name] = value

        self.run(udf=varied(self.udf, cleanup=cleanup))
        return found


def varied(udf: UDF, **attributes: Any) -> UDF:
    """Return an instance of a subclass with some other attributes.

    Like every subclass, it does not inherit promises: it makes only those in `attributes`.
    """
    cls = type(udf)
    variant: type[UDF] = type(cls.__name__, (cls,), {**attributes, "__module__": cls.__module__})
    return variant(**udf._kwargs)


def as_rows(
    results: Mapping[str, AnyArray], kinds: Mapping[str, str], roi: AnyArray | None, n_nav: int
) -> dict[str, AnyArray]:
    """Convert results in the shape of the dataset to the shapes of `EagerRun.results`."""
    rows = {}
    for name, array in results.items():
        if kinds[name] == "nav":
            chosen = np.ones(array.shape[:n_nav], dtype=bool) if roi is None else roi
            rows[name] = array[chosen]
        else:
            rows[name] = array.reshape((1,)) if array.ndim == 0 else array
    return rows
