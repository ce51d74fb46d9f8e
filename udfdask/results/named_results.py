"""The base class of all results of a UDF, and their metadata."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import dask.array as da
from dask.base import DaskMethodsMixin, is_dask_collection

from udfdask.errors import ArgumentTypeError, UDFError, UndeclaredBufferError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.chunk_grid import Grid
from udfdask.udf.buffers import BufferSpec

if TYPE_CHECKING:
    # Python 3.13 has defaults in `typing`; type checkers know `typing_extensions` without it
    from typing_extensions import TypeVar as TypeVarWithDefault

    from udfdask.explanation.describe import Explanation
    from udfdask.geometry.labels import Place

    ArrayT_co = TypeVarWithDefault("ArrayT_co", covariant=True, default=Any)
else:
    ArrayT_co = TypeVar("ArrayT_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultInfo:
    """Metadata of the results of one UDF."""

    udf_name: str
    """Name of the UDF's class."""
    name: str | None = None
    """Name that the user gave to the UDF, as the key of a dictionary."""
    buffers: dict[str, BufferSpec]
    """Declarations of the results by name."""
    grid: Grid
    """Navigation chunks and ROI."""
    sig_shape: tuple[int, ...]
    """Shape of a frame."""
    explain: Callable[[], Explanation] | None
    """Describes the run; None for results that do not keep its data."""
    notes: tuple[str, ...]
    """What is good to know about the detectors of the UDF."""
    extra_axes: dict[str, tuple[Axis, ...]]
    """Extra dimensions of each result."""
    calibration: Calibration
    """Axes of the data, unit of their values, and voltage."""
    units: dict[str, str | None]
    """Unit of each result; None if it is not known."""
    in_units: frozenset[str] = frozenset()
    """Names of the results in the unit of the data."""
    default_plots: tuple[str, ...] = ()
    """Names of the results that are drawn if none is named; empty for all."""
    files: tuple[str, ...] = ()
    """Files and stores that the data are known to be read from."""
    parameters: str
    """Parameters of the UDF as the user gave them: a short JSON text, which files have."""

    @property
    def axes(self) -> dict[str, tuple[Axis, ...]]:
        """One axis for each dimension of each result."""
        n_nav = len(self.grid.shape)
        leading = {"nav": self.calibration.axes[:n_nav], "sig": self.calibration.axes[n_nav:]}
        return {
            name: (*leading.get(spec.kind, ()), *self.extra_axes[name])
            for name, spec in self.buffers.items()
        }

    @property
    def nav_shape(self) -> tuple[int, ...]:
        """Shape of the scan."""
        return self.grid.shape

    @property
    def arguments(self) -> dict[str, str]:
        """What files say of how the results were made: the parameters, and the voltage if known."""
        volts = self.calibration.voltage
        voltage = {} if volts is None else {"voltage": f"{volts / 1e3:.12g} kV"}
        return {"parameters": self.parameters, **voltage}

    @property
    def title(self) -> str:
        """Name of the UDF's class, and the name that the user gave to the UDF."""
        return self.udf_name if self.name is None else f"{self.udf_name} {self.name!r}"

    def place_of(self, name: object) -> Place:
        """Return where the values of a result, or of a label such as the name of a mask, are.

        A label is a name if only one result has it. Raise if the name is unknown.
        """
        from udfdask.geometry.labels import did_you_mean, few, find_place, labels_as_names

        place = find_place(name, self.extra_axes)
        if place is None:
            labels = labels_as_names(self.extra_axes)
            also = f", and the labels {few(labels)}" if labels else ""
            hint = did_you_mean(name, (*self.buffers, *labels))
            raise UndeclaredBufferError(
                f"{self.udf_name} has no result {name!r}; there are {sorted(self.buffers)}{also}"
                f"{hint}"
            )
        return place


class NamedResults(DaskMethodsMixin, Mapping[str, ArrayT_co]):
    """A mapping from the names of results to values; a dask collection while they are lazy."""

    __slots__ = ("_info",)

    def __init__(self, info: ResultInfo) -> None:
        self._info = info

    def __iter__(self) -> Iterator[str]:
        return iter(self._info.buffers)

    def __len__(self) -> int:
        return len(self._info.buffers)

    def __bool__(self) -> bool:
        return True  # even without results there is a graph to compute

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        # Mapping would compare lazy arrays, and these have no truth value
        return self is other

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: NumPy would make an array that holds one object."""
        names = list(self)
        remedy = f": write result[{names[0]!r}]" if names else ""
        raise ArgumentTypeError(
            f"the results {names} of {self.udf_name} are arrays by name, not one array{remedy}"
        )

    __array__ = __float__ = __int__ = _refuse

    def __repr__(self) -> str:
        state = "lazy" if is_dask_collection(self) else "computed"
        lines = [f"<{type(self).__name__} of {self._info.title}, {state}>"]
        lines += [f"  {name}: {self._text_of(name)}" for name in self]
        return "\n".join([*lines, *(f"  note  {text}" for text in self._info.notes)])

    @abstractmethod
    def _text_of(self, name: str) -> str:
        """Return a line about a result."""

    @property
    def __dask_optimize__(self) -> Any:
        # dask optimizes collections together only if they have the same function: with another one,
        # a result and an array over the same data would each load the data. This holds for one
        # `dask.compute`: after a separate `dask.optimize` of two runs, each may load the data,
        # because dask has fused each run with its own loading
        return da.Array.__dask_optimize__

    @property
    def __dask_scheduler__(self) -> Any:
        return da.Array.__dask_scheduler__

    @property
    def udf_name(self) -> str:
        """Name of the UDF's class."""
        return self._info.udf_name

    @property
    def buffers(self) -> dict[str, BufferSpec]:
        """Declarations of the results by name: kind, extra_shape, dtype."""
        return dict(self._info.buffers)

    @property
    def axes(self) -> dict[str, tuple[Axis, ...]]:
        """One axis for each dimension of each result, with extra dimensions at the end."""
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
    def calibration(self) -> Calibration:
        """The axes of the data of the run, the unit of their values, and the voltage."""
        return self._info.calibration

    @property
    def name(self) -> str | None:
        """The key of the UDF in the dictionary of a run; None without one."""
        return self._info.name

    @property
    def files(self) -> tuple[str, ...]:
        """Files and stores that the data are read from, unless they were computed before."""
        return self._info.files

    def explain(self) -> Explanation:
        """Describe the run: chunks, tasks, bytes, memory, tiles, merges.

        Returns
        -------
        Explanation
            `print` shows the description; attributes hold the numbers.

        Raises
        ------
        UDFError
            If the result is computed, persisted, or from another process.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> ud.run_udf(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF()).explain().n_chunks
        4
        """
        if self._info.explain is None:
            raise UDFError("explain() describes a run before it: call it on the lazy result")
        return self._info.explain()


class Lookup(Mapping[str, Any]):
    """A mapping from the names of a result to values that are made on request."""

    __slots__ = ("_make", "_result")

    def __init__(self, result: NamedResults, make: Callable[[str], Any]) -> None:
        self._result = result
        self._make = make

    def __getitem__(self, name: str) -> Any:
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._result)

    def __len__(self) -> int:
        return len(self._result)

    def __repr__(self) -> str:
        return repr(dict(self))


def numbered(name: str, taken: Container[str]) -> str:
    """Return a name of the results of a UDF, with a number if it is taken, as in ``sum_2``."""
    names = itertools.chain([name], (f"{name}_{n}" for n in itertools.count(2)))
    return next(one for one in names if one not in taken)


def name_of_class(name: str) -> str:
    """Return the name of the results of a class of UDFs."""
    return name.removesuffix("UDF").lower() or name.lower()
