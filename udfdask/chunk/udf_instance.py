"""Instances of UDFs in a task: made, given views and facts, and their errors explained."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import cloudpickle
import numpy as np

from udfdask.backends.backend import NUMPY, Backend, locked
from udfdask.base.tracebacks import add_origin
from udfdask.base.types import AnyArray
from udfdask.errors import NotAvailableError, UDFError
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.slices import Slice
from udfdask.plan.parameters import new_instance
from udfdask.plan.recipe import Recipe
from udfdask.udf import UDFMethod
from udfdask.udf.aux_data import UnavailableAux
from udfdask.udf.buffers import Results
from udfdask.udf.meta import Cursor, UDFMeta
from udfdask.udf.params import Params

_HINTS = {
    ("broadcast", "setting an array element"): (
        "here the buffers have the shapes {shapes}. If a buffer needs more values, declare it with "
        "extra_shape: (2,) for two, self.meta.dataset_shape.sig for a frame"
    ),
    ("read-only",): (
        "data and what all chunks share are read-only: make a new array, such as "
        "frame = frame - frame.mean(), or change a copy, such as frame.copy()"
    ),
    ("cannot convert float",): (
        "a buffer of integers holds no infinity and no NaN: declare it with a floating dtype, or "
        "start with the limits of the dtype, such as np.iinfo('int32').min"
    ),
}
"""What to do about errors of NumPy, by parts of their text."""


def hint_for(error: Exception, results: Results) -> str:
    """Return what to do about an exception of a user's method, empty if it is none of NumPy's."""
    if type(error) not in (ValueError, OverflowError):
        return ""  # the text of a user's own exception may fail
    text, views = str(error), vars(results).items()
    hints = (hint for parts, hint in _HINTS.items() if any(part in text for part in parts))
    shapes = ", ".join(f"{name} {view.shape}" for name, view in views if hasattr(view, "shape"))
    return next(hints, "").format(shapes=shapes or "of none")


class Instance:
    """A new UDF with new buffers over the rows of the chunks `first` to `stop`.

    `aux` holds the rows of its aux data of kind nav; `backend` is that of the data it is given, and
    `buffers` that of its buffers, if it is another one.
    """

    def __init__(
        self,
        recipe: Recipe,
        number: int,
        first: int,
        stop: int,
        aux: Mapping[str, AnyArray],
        backend: Backend = NUMPY,
        buffers: Backend | None = None,
    ) -> None:
        declared = recipe.udfs[number]
        n_rows = recipe.grid.n_rows(first, stop)
        self.recipe = recipe
        self.number = number
        self.declared = declared
        self.method = f"process_{declared.method.value}"
        self.backend = backend
        self.dense = backend.dense  # of dense data, also of those that sparse data are made from
        self.cursor = Cursor((first, stop), n_rows)
        tiling = recipe.sparse_tiling if backend.is_sparse else recipe.tiling
        udf = new_instance(declared.cls, declared.kwargs)
        udf.meta = UDFMeta(
            grid=recipe.grid,
            dataset_shape=recipe.shape,
            dataset_dtype=recipe.dtype,
            input_dtype=declared.input_dtype,
            tiling=tiling if declared.method is UDFMethod.TILE else tiling.uncut,
            threads=recipe.threads,
            cursor=self.cursor,
            corrections=recipe.corrections,
            calibration=declared.calibration,
            backend=backend,
        )
        self.udf = udf
        self.writable_input = bool(udf.writable_input)
        # arrays become writable when they are sent to another process
        self.aux = {name: locked(rows) for name, rows in aux.items()}
        self.sig_aux: dict[str, AnyArray] = {}
        if declared.aux:
            self.view_all_aux()
        self._declare()
        sig = recipe.shape.sig
        self.arrays: dict[str, AnyArray] = {
            name: spec.allocate(n_rows, sig, buffers or backend)
            for name, spec in declared.allocated.items()
        }
        self.view_all()

    def view_all_aux(self) -> None:
        """Show the UDF the aux data of the whole run, nav ones as their shape and dtype only."""
        shape = self.recipe.shape
        views: dict[str, Any] = {}
        for name, aux in self.declared.aux.items():
            if aux.kind == "nav":
                flat = (shape.nav.size, *aux.extra_shape)
                views[name] = UnavailableAux(name=name, shape=flat, dtype=aux.dtype)
            else:
                views[name] = self.declared.kwargs[name].over(shape)
            if aux.kind == "sig":
                self.sig_aux[name] = views[name]
        # a new object: the UDF's `__init__` may have passed the old one on
        self.udf.params = Params({**self.udf.params.__dict__, **views})

    def _declare(self) -> None:
        """Call `get_result_buffers` again: it may set attributes. The plan's declaration counts."""
        if self.declared.promises.declares_once:
            return
        try:
            buffers = dict(self.call("get_result_buffers"))
        except NotAvailableError:
            # it needs values of nav aux data, which only the plan has
            if not self.declared.nav_aux:
                raise
            return
        if buffers != self.declared.buffers:
            raise UDFError(
                f"{self.declared.name}.get_result_buffers() declared other buffers on a worker "
                "than in the plan: it may only depend on parameters and on the data set's shape, "
                "dtype and ROI"
            )

    def view_all(self, grid: Grid | None = None) -> None:
        """Show all rows and pixels of buffers and aux data; in flattened order with a `grid`."""
        views: dict[str, Any] = dict.fromkeys(self.declared.buffers)
        views.update(self.arrays)
        self.udf.results = Results(views, self.declared.buffers, self.arrays, grid)
        if self.declared.aux:
            self.udf.params.__dict__.update({**self.aux, **self.sig_aux})
        # the attributes with a value for each row, with their values and extra shape
        shown, allocated = self.udf.results.__dict__, self.declared.allocated
        self.by_row: list[tuple[dict[str, Any], str, AnyArray, tuple[int, ...]]] = [
            (shown, name, self.arrays[name], spec.extra_shape)
            for name, spec in allocated.items()
            if spec.kind == "nav"
        ]
        shown, declared = self.udf.params.__dict__, self.declared.aux
        self.by_row += [(shown, k, v, declared[k].extra_shape) for k, v in self.aux.items()]

    def view_part(self, part: Slice, index: int) -> list[tuple[AnyArray, AnyArray]]:
        """Show a contiguous signal part of sig buffers; return windows and copies to write back."""
        views = self.udf.results.__dict__
        self.cursor.part, self.cursor.part_index = part, index
        copies = []
        for name, spec in self.declared.allocated.items():
            if spec.kind == "sig":
                window = self.arrays[name][part.get()]
                if not window.flags.c_contiguous:
                    copies.append((window, window.copy()))
                    window = copies[-1][1]
                views[name] = window
        for name, values in self.sig_aux.items():
            self.udf.params.__dict__[name] = locked(np.ascontiguousarray(values[part.get()]))
        return copies

    def view_rows(self, start: int, stop: int) -> None:
        """Show some rows of the nav buffers and of aux data."""
        self.cursor.start, self.cursor.stop = start, stop
        for shown, name, values, _ in self.by_row:
            shown[name] = values[start:stop]

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the UDF; an exception gets a note on where it was raised."""
        try:
            return getattr(self.udf, method)(*args)
        except Exception as error:
            self.note_origin(error, method)
            raise

    def note_origin(self, error: Exception, method: str) -> None:
        """Add to an exception of a user's method where it was raised, and what may mend it.

        If it cannot be pickled and sent to another process, raise a UDFError with its name and
        traceback instead.
        """
        code = self.udf._plain_function or f"{self.declared.name}.{method}"
        note = f"raised in {code} {self._location()}"
        add_origin(error, note)
        if hint := hint_for(error, self.udf.results):
            error.add_note(hint)
        try:
            cloudpickle.loads(cloudpickle.dumps(error))
        except Exception:  # noqa: BLE001  # an exception class of a user may raise anything
            text = "".join(traceback.format_exception(error))
            stand_in = UDFError(f"{type(error).__name__}: {error}\n\n{text}")
            add_origin(stand_in, note)
            try:
                raise stand_in from None
            except UDFError:
                # the context is pickled as well by dask's process scheduler
                stand_in.__context__ = None
                raise

    def _location(self) -> str:
        grid, (first, stop) = self.recipe.grid, self.cursor.chunks
        if stop == first:
            return "on no frame at all"
        chunk = f"in chunk {grid.index(first)}"
        if stop - first > 1:
            chunk = f"in chunks {grid.index(first)} to {grid.index(stop - 1)}"
        picked = self.cursor.picked
        rows = slice(self.cursor.start, self.cursor.stop) if picked is None else picked
        here = [tuple(map(int, place)) for place in grid.coordinates_of(first, stop)[rows]]
        if not here:
            return chunk
        ends = f"{here[0]}" if len(here) == 1 else f"{here[0]} to {here[-1]}"
        return f"at navigation coordinates {ends}, {chunk}"
