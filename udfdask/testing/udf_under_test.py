"""The UDF under check with its data, and runs of it whose failures are put into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from udfdask.testing.differences import Difference, Tolerance, find_difference
from udfdask.testing.eager_run import Layout, PlainRun
from udfdask.testing.failures import UDFCheckError, in_words
from udfdask.testing.mutable_state import freeze, take_picture
from udfdask.testing.reference import run_reference, with_computed_params
from udfdask.types import AnyArray
from udfdask.udf import UDF

T = TypeVar("T")


class Subject:
    """A UDF under check.

    Parameters
    ----------
    udf : UDF
        The user's instance, which nothing here changes.
    arrays : sequence of numpy.ndarray, each of shape (*nav, *sig)
        The data: the first for all laws, the others for that of dtypes.
    sig_dims : int
        Number of signal axes.
    """

    def __init__(self, udf: UDF, arrays: Sequence[AnyArray], sig_dims: int) -> None:
        self.original = udf
        self.arrays = arrays
        self.sig_dims = sig_dims
        self.notes: list[str] = []
        self._computed: UDF | None = None
        # taken before anything runs
        self.picture = take_picture(type(udf))

    @property
    def name(self) -> str:
        """Name of the class."""
        return type(self.original).__name__

    @property
    def data(self) -> AnyArray:
        """The array that most laws are checked on."""
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
    def udf(self) -> UDF:
        """The UDF, with lazy parameters computed."""
        if self._computed is None:
            self._computed = with_computed_params(self.original)
        return self._computed

    def run(
        self,
        layout: Layout | None = None,
        *,
        data: AnyArray | None = None,
        udf: UDF | None = None,
        company: Sequence[UDF] = (),
    ) -> PlainRun:
        """Return a run without dask, of this UDF or a variant of it; what fails is a fault."""
        used = Layout() if layout is None else layout
        array = self.data if data is None else data
        first = self.udf if udf is None else udf
        return self.attempt(f"with {used}", PlainRun, [first, *company], array, self.sig_dims, used)

    def results(
        self,
        layout: Layout | None = None,
        *,
        data: AnyArray | None = None,
        company: Sequence[UDF] = (),
    ) -> dict[str, AnyArray]:
        """Return the results of a run without dask, nav ones as rows."""
        return self.results_of(self.run(layout, data=data, company=company))

    def results_of(self, run: PlainRun) -> dict[str, AnyArray]:
        """Return the results of a run; what fails is a fault."""
        return self.attempt(f"with {run.layout}", run.results)

    def attempt(self, when: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Return what a function returns; an exception out of it is a fault of the UDF."""
        try:
            return function(*args, **kwargs)
        except UDFCheckError:
            raise
        except Exception as error:  # a user's method may raise anything
            raise UDFCheckError(f"{when}: {in_words(error, self.udf)}") from error

    def works(self, data: AnyArray, roi: AnyArray | None = None) -> Exception | None:
        """Return what the plainest run over some data raises, None if it works."""
        try:
            self.reference(data, roi)
        except Exception as error:  # noqa: BLE001  # a user's method may raise anything
            return error
        return None

    def reference(self, data: AnyArray, roi: AnyArray | None = None) -> dict[str, AnyArray]:
        """Return the results of the plainest run, in data set shape."""
        return run_reference(data, self.udf, sig_dims=self.sig_dims, roi=roi)

    def tolerance(self, data: AnyArray) -> Tolerance:
        """Return how far floats may be apart in results over some data."""
        preferred = np.dtype(self.udf.get_preferred_input_dtype())
        dtype = np.result_type(data.dtype, preferred)
        eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
        largest = float(np.abs(data[np.isfinite(data)]).max(initial=0)) if data.size else 0.0
        whole = dtype.kind not in "fc" or np.array_equal(data, np.round(data))
        return Tolerance(eps=eps, data=0.0 if whole else largest)

    def difference(
        self,
        one: Mapping[str, AnyArray],
        other: Mapping[str, AnyArray],
        data: AnyArray | None = None,
    ) -> Difference | None:
        """Return where two sets of results differ beyond rounding."""
        return find_difference(one, other, self.tolerance(self.data if data is None else data))

    def fail(self, text: str) -> NoReturn:
        """Raise a fault."""
        raise UDFCheckError(text)

    def attributes_set(self) -> list[str]:
        """Return the attributes of an instance that change while it processes a chunk."""
        cls = type(self.udf)
        found: list[str] = []
        engine = {"meta", "results", "task_data", "params", "_kwargs"}

        def cleanup(udf: Any) -> None:
            fresh = vars(cls(**udf._kwargs))
            for name, value in vars(udf).items():
                if name in engine or name.startswith("__"):
                    continue
                if name not in fresh or freeze(fresh[name]) != freeze(value):
                    found.append(name)

        self.run(udf=varied(self.udf, cleanup=cleanup))
        return list(dict.fromkeys(found))


def varied(udf: UDF, **attributes: Any) -> UDF:
    """Return a UDF of a class that differs in some attributes from that of `udf`, and in promises.

    As any subclass it makes only those promises that are among the attributes.
    """
    cls = type(udf)
    variant: type[UDF] = type(cls.__name__, (cls,), {**attributes, "__module__": cls.__module__})
    return variant(**udf._kwargs)


def as_rows(
    results: Mapping[str, AnyArray], kinds: Mapping[str, str], roi: AnyArray | None, n_nav: int
) -> dict[str, AnyArray]:
    """Return results of data set shape as rows: as a run without dask gives them."""
    rows = {}
    for name, array in results.items():
        if kinds[name] == "nav":
            chosen = np.ones(array.shape[:n_nav], dtype=bool) if roi is None else roi
            rows[name] = array[chosen]
        else:
            rows[name] = array.reshape((1,)) if array.ndim == 0 else array
    return rows
