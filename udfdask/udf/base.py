"""The base class of user-defined functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter, isfunction, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udfdask.errors import ArgumentTypeError, NotAvailableError
from udfdask.udf.buffers import Results
from udfdask.udf.declarations import Declarations
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Params, TaskData
from udfdask.udf.processing import Processing
from udfdask.udf.promises import Promises

if TYPE_CHECKING:
    from udfdask.base.targets import Target
    from udfdask.geometry.axes import Calibration
    from udfdask.geometry.shapes import Shape
    from udfdask.masks.coverage import Coverage


class UDF(Declarations, Processing):
    """Base class of user-defined functions (UDFs), which process frames of a dask array.

    Subclass it, declare result buffers in `get_result_buffers`, and write one of
    ``process_tile(self, tile)`` (shape (n, *part of sig)), ``process_frame(self, frame)`` (shape
    `sig`) and ``process_partition(self, partition)`` (shape (n, *sig)); the first of them in this
    order is used. A UDF that looks at the frames around each position sets `halo`, and has
    ``process_neighborhood(self, frames)`` (shape (*window, *sig)) or ``process_partition`` (shape
    (*nav part with margins, *sig)). Optional methods are ``preprocess``, ``postprocess``,
    ``get_task_data``, ``get_shared_task_data``, ``merge(dest, src)``,
    ``merge_all(ordered_results)``, ``get_results`` and ``get_result_axes``.

    A run never changes an instance: each chunk gets a new one, ``cls(**kwargs)``.

    Parameters
    ----------
    *args
        Not allowed, because each parameter needs a name.
    **kwargs
        The parameters, available as ``self.params``. They are sent to the workers.

    Attributes
    ----------
    params : Params
        The parameters.
    meta : UDFMeta
        Facts about the dataset and the data that are being processed.
    results : Results
        Views of the result buffers that match the data that are being processed.
    task_data : TaskData
        The return values of `get_shared_task_data` and `get_task_data`.
    xp : module
        The array module of the current backend.
    split_every : int or False or None
        Fan-in of the merge tree; False merges in one step; None for the configured fan-in.
    merge_assigns_nav : bool
        Promise that `merge` only assigns nav buffers, where its code does not show this as
        ``dest.x[:] = src.x`` without branches: chunks are then merged in a tree.
    elementwise_results : bool
        Promise that `get_results` works row by row over nav: it then runs chunk by chunk.
    contiguous_nav : bool
        Ask for tiles and partitions whose frames are consecutive in flattened navigation order.
    writable_input : bool
        Ask for private, writable copies of the data.
    whole_frames : bool
        Ask for tiles that hold whole frames.
    halo : int or tuple or None
        Number of frames on each side of a position that the UDF sees: for all navigation axes, or a
        tuple with an int or a pair (before, after) for each of them. It can be set in `__init__`.
    boundary : {"mask", "nearest", "reflect", "periodic"}
        What stands for frames beyond the ends of the scan: nothing, the last frame, the scan in
        reverse order (``d c b a | a b c d | d c b a``), or its other end.
    neighbors_outside_roi : bool
        Whether frames outside of the region of interest are neighbors, or missing.
    keeps_units : tuple of str
        Promise that these results have the unit of the data, which labeled results then show.
    default_plots : tuple of str
        Names of the results that pictures show if none is named; by default all.
    calibrated : mapping of str to str
        Parameters in pixels, which users may also give in the unit of the signal axes, such as
        "10 mrad": `"length"` for a distance in any direction; `"y"` and `"x"` for a position along
        the last two axes (also the words "zero" and "middle"), `"position"` for a pair (y, x),
        `"height"` and `"width"` for a distance along them. `"top"` and `"left"` are the smallest
        position of such a range, `"start"` and `"stop"` the ends of one along the last axis.
        `"shift"` is a pair of signed distances (y, x), `"steps"` a distance that is rounded up,
        `"positions"` an array of shape (n, 2) or a pair of one and its unit, `"lengths"` a
        dataclass of distances. A run makes the instance again with pixels.
    promises : Promises
        Further promises, which make runs cheaper. Subclasses do not inherit them.

    Raises
    ------
    ArgumentTypeError
        If a parameter has no name.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> class MaxUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"peak": self.buffer(kind="nav", dtype=self.meta.input_dtype)}
    ...     def process_frame(self, frame):
    ...         self.results.peak[:] = frame.max()
    >>> x = da.arange(2 * 3 * 4 * 4, chunks=32).reshape(2, 3, 4, 4)
    >>> ud.run_udf(x, MaxUDF(), sig_dims=2)["peak"].compute()
    array([[15., 31., 47.],
           [63., 79., 95.]])
    """

    split_every: ClassVar[int | bool | None] = None
    merge_assigns_nav: ClassVar[bool] = False
    elementwise_results: ClassVar[bool] = False
    contiguous_nav: ClassVar[bool] = False
    writable_input: ClassVar[bool] = False
    whole_frames: ClassVar[bool] = False
    halo: Any = None
    boundary: str = "mask"
    neighbors_outside_roi: bool = True
    keeps_units: ClassVar[tuple[str, ...]] = ()
    default_plots: ClassVar[tuple[str, ...]] = ()
    calibrated: ClassVar[Mapping[str, str]] = MappingProxyType({})

    promises: ClassVar[Promises] = Promises()

    _mask_parameter: ClassVar[str | None] = None
    """Parameter with masks of a frame. Accessors convert the kinds of masks that only they know."""

    _merges_on_host: ClassVar[bool] = False
    """Whether `merge` gets NumPy arrays only, as in LiberTEM."""

    _plain_function: ClassVar[str | None] = None
    """What errors call the code that a user passed as a plain function, in place of the UDF."""

    params: Params
    meta: UDFMeta
    results: Results
    task_data: TaskData
    _kwargs: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _use_methods_of_mixins(cls)
        # an override in the subclass can break a promise of its base class
        if "promises" not in vars(cls):
            cls.promises = UDF.promises

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args:
            raise ArgumentTypeError(
                f"{type(self).__name__} got {len(args)} argument(s) without a name: pass "
                "parameters by name, also to super().__init__: (threshold=3)"
            )
        self._kwargs = kwargs
        self.params = Params(kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_kwargs":
            raise NotAvailableError(_without_init(type(self)))
        if name in _NOT_YET:
            raise NotAvailableError(f"self.{name} does not exist yet: it exists {_NOT_YET[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remake, (type(self), self._kwargs))

    def __repr__(self) -> str:
        kwargs = self.__dict__.get("_kwargs", {})  # __init__ may not have set them yet
        shown = ", ".join(f"{k}={_short(v)}" for k, v in kwargs.items())
        return f"{type(self).__name__}({shown})"

    @property
    def xp(self) -> Any:
        """Array module of the current backend: CuPy for CuPy arrays, otherwise NumPy.

        In `merge` and `get_results`, it is CuPy if the chunks of the data are CuPy arrays, too.
        """
        meta = self.__dict__.get("meta")
        return np if meta is None else meta._backend.dense.namespace()

    def _targets(self, sources: Sequence[str]) -> Sequence[Target]:
        """Check and return the files that a run writes; `sources` are the files that it reads."""
        return ()

    def _warnings(self, calibration: Calibration) -> Sequence[str]:
        """Return what users should know before they run this UDF over data with these axes."""
        return ()

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        """Return how much of a frame of shape `sig` each detector covers, if that is cheap."""
        return ()

    def _center_names(self) -> tuple[str, ...]:
        """Return the parameters of a common center, whose default a run takes from the axes."""
        return ()

    def _for_run(self) -> UDF:
        """Return the UDF for one run: itself, unless it keeps state for a single run."""
        return self


def _use_methods_of_mixins(cls: type[UDF]) -> None:
    """Use the methods of mixins listed after `UDF`, which the defaults of `UDF` would hide."""
    after = cls.__mro__[cls.__mro__.index(UDF) :]
    mixins = [base for base in after if base not in UDF.__mro__]
    for name in dir(UDF) if mixins else ():
        default = getattr(UDF, name)
        if not isfunction(default) or name.startswith("_") or name in _HELPERS:
            continue
        method = next((vars(base)[name] for base in mixins if name in vars(base)), None)
        if method is not None and getattr(cls, name) is default:
            setattr(cls, name, method)


_HELPERS = frozenset({"buffer", "with_mask", "forbuf"})
"""Methods that a UDF calls and does not override."""

_NOT_YET = {
    "meta": "while a UDF is declared, run or merged",
    "results": "while a chunk is processed, and in get_results",
    "task_data": "while a chunk is processed",
    "params": "after super().__init__(**kwargs)",
}
"""Attributes that do not always exist, and when they do."""


_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _without_init(cls: type[UDF]) -> str:
    """Return the message for a class with an `__init__` that does not call that of `UDF`."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    is_dataclass = "__dataclass_fields__" in vars(owner)
    place, of = ("__post_init__", "self.") if is_dataclass else ("__init__", "")
    named = [p for p in signature(owner).parameters.values() if p.kind not in _VARIABLE]
    given = ", ".join(f"{p.name}={of}{p.name}" for p in named)
    return (
        f"{cls.__name__} cannot run, because {owner.__name__}.__init__ does not call "
        f"super().__init__: write a method {place} that calls super().__init__({given}). Each task "
        "makes a new instance from these arguments"
    )


def overrides(udf: UDF, method: str) -> bool:
    """Return whether the class, a mixin or the instance of a UDF overrides a method of `UDF`."""
    return getattr(getattr(udf, method), "__func__", None) is not getattr(UDF, method)


def _remake(cls: type[UDF], kwargs: dict[str, Any]) -> UDF:
    """Create a UDF from its parameters, when pickle loads it."""
    return cls(**kwargs)


def _short(value: Any) -> str:
    """Return a repr of at most 60 characters; an array is shown by its shape and dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return f"<{type(value).__name__} {value.shape} {value.dtype}>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
