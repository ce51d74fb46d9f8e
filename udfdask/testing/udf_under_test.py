"""Hold the UDF under check with its data, run it, and compare results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import dask.array as da
import dask.config
import numpy as np

from udfdask.errors import UDFError
from udfdask.results.result import Result
from udfdask.run.run_udf import run_udf
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, EagerRun, Layout
from udfdask.testing.equality import Difference, Tolerance, find_difference
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.mutable_state import take_snapshot
from udfdask.testing.reference import run_reference, with_computed_params
from udfdask.testing.sample_data import scan_chunkings
from udfdask.types import AnyArray
from udfdask.udf import UDF

T = TypeVar("T")

ROUNDING = "; if that is rounding, a wider dtype of the buffers helps"


class Subject:
    """A UDF under check.

    `udf` is the user's instance and never changed. The first of `arrays`, each of shape
    (*nav, *sig), is for all laws, the others are for laws about dtypes.
    """

    def __init__(self, udf: UDF, arrays: Sequence[AnyArray], sig_dims: int) -> None:
        self.original = udf
        self.name = type(udf).__name__
        self.arrays = arrays
        self.data = arrays[0]
        self.sig_dims = sig_dims
        self.nav = self.data.shape[: self.data.ndim - sig_dims]
        self.sig = self.data.shape[self.data.ndim - sig_dims :]
        self.frame_bytes = math.prod(self.sig) * self.data.dtype.itemsize
        self.two_chunks: Chunks | None = next(scan_chunkings(self.nav), None)
        self.notes: list[str] = []
        # the state before the first run
        self.before = take_snapshot(type(udf))
        self._references: dict[Any, tuple[AnyArray, dict[str, AnyArray]]] = {}

    @cached_property
    def udf(self) -> UDF:
        """The UDF with computed parameters."""
        return with_computed_params(self.original)

    def run(
        self,
        layout: Layout = ONE_CHUNK,
        *,
        data: AnyArray | None = None,
        udf: UDF | None = None,
    ) -> EagerRun:
        """Return a run without dask, of this UDF or of the variant `udf`."""
        array = self.data if data is None else data
        return self.attempt(
            f"with {layout}", EagerRun, udf or self.udf, array, self.sig_dims, layout
        )

    def results(self, layout: Layout = ONE_CHUNK, **options: Any) -> dict[str, AnyArray]:
        """Return the results of a run without dask; nav results have the rows of the ROI."""
        return self.attempt(f"with {layout}", self.run(layout, **options).results)

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

    def attempt(self, when: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function; convert its exceptions to UDFCheckError, because the UDF caused them."""
        try:
            return function(*args, **kwargs)
        except UDFCheckError:
            raise
        except Exception as error:  # a user's method may raise anything
            raise UDFCheckError(f"{when}: {in_words(error)}") from error

    def reference(
        self, data: AnyArray | None = None, roi: AnyArray | None = None
    ) -> dict[str, AnyArray]:
        """Return the results of `run_reference`, in the shape of the dataset."""
        array = self.data if data is None else data
        key = (id(array), None if roi is None else roi.tobytes())
        if key not in self._references:
            found = run_reference(array, self.udf, sig_dims=self.sig_dims, roi=roi)
            self._references[key] = (array, found)
        return self._references[key][1]

    def error_with(self, data: AnyArray, roi: AnyArray | None = None) -> Exception | None:
        """Return the exception of `run_reference` with some data; None if there is none."""
        try:
            self.reference(data, roi)
        except Exception as error:  # noqa: BLE001  # a user's method may raise anything
            return error
        return None

    def matches(self, layout: Layout, text: str, data: AnyArray | None = None) -> None:
        """Fail with a text if a run without dask differs from a plain loop over all frames."""
        run = self.run(layout, data=data)
        results = self.attempt(f"with {layout}", run.results)
        kinds = {name: spec.kind for name, spec in run.declared.outputs.items()}
        chosen = np.ones(self.nav, dtype=bool) if layout.roi is None else layout.roi
        expected = {}
        for name, array in self.reference(data, layout.roi).items():
            rows = array[chosen] if kinds[name] == "nav" else array
            expected[name] = rows.reshape((1,)) if rows.ndim == 0 else rows
        self.agree({k: results[k] for k in kinds}, expected, text, data, layout=layout)

    def agree(
        self,
        one: Mapping[str, AnyArray],
        other: Mapping[str, AnyArray],
        text: str,
        data: AnyArray | None = None,
        **more: Any,
    ) -> None:
        """Fail if two sets of results differ; the text may ask for parts of their difference."""
        found = self.difference(one, other, data)
        if found:
            values = {k: getattr(found, k) for k in ("name", "one", "other", "where")}
            is_float = one.get(found.name, self.data).dtype.kind in "fc"
            hint = ROUNDING if is_float and self.tolerance(data).data else ""
            raise UDFCheckError(text.format(**values, **more) + hint)

    def difference(
        self,
        one: Mapping[str, AnyArray],
        other: Mapping[str, AnyArray],
        data: AnyArray | None = None,
    ) -> Difference | None:
        """Return the first difference between two sets of results that is more than rounding."""
        return find_difference(one, other, self.tolerance(data))

    def tolerance(self, data: AnyArray | None = None) -> Tolerance:
        """Return the allowed difference of floats in results of some data."""
        data = self.data if data is None else data
        preferred = np.dtype(self.udf.get_preferred_input_dtype())
        dtype = np.result_type(data.dtype, preferred)
        eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
        largest = float(np.abs(data[np.isfinite(data)]).max(initial=0)) if data.size else 0.0
        is_exact = dtype.kind not in "fc" or np.array_equal(data, np.round(data))
        return Tolerance(eps=eps, data=0.0 if is_exact else largest)


def varied(udf: UDF, **attributes: Any) -> UDF:
    """Return an instance of a subclass with some other attributes.

    Like every subclass, it does not inherit promises: it makes only those in `attributes`.
    """
    cls = type(udf)
    variant: type[UDF] = type(cls.__name__, (cls,), {**attributes, "__module__": cls.__module__})
    return variant(**udf._kwargs)


def in_words(error: Exception) -> str:
    """Return the message for an exception that a run of a UDF raised."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = str(error) if isinstance(error, UDFError) else f"{type(error).__name__}: {error}"
    return f"{text} ({notes})" if notes else text
