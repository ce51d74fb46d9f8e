"""A UDF at work on a worker: a fresh instance, its buffers, its views, and blame for its errors."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import cloudpickle
import numpy as np

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.backends.read_only import locked
from udfdask.arrays.geometry.chunk_grid import Grid
from udfdask.arrays.geometry.slices import Slice
from udfdask.chunk.thread_limits import guard
from udfdask.errors import NotAvailableError, UDFError
from udfdask.plan.declarations import made_anew
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray
from udfdask.udf.aux_data import UnavailableAux
from udfdask.udf.buffers import Results
from udfdask.udf.meta import Cursor, UDFMeta
from udfdask.udf.params import Params


def held_threads(recipe: Recipe) -> AbstractContextManager[None]:
    """Return a context that holds numerics libraries to a task's share of threads."""
    return guard.limit(recipe.threads) if recipe.guarded else nullcontext()


class Instance:
    """A fresh UDF over the rows of the chunks `first` to `stop`, with freshly allocated buffers.

    `aux` holds the rows of its aux data of kind nav; `backend` is that of the data it is given.
    """

    __slots__ = (
        "arrays",
        "aux",
        "backend",
        "cursor",
        "dense",
        "recipe",
        "sig_aux",
        "udf",
        "where",
        "writable_input",
    )

    def __init__(
        self,
        recipe: Recipe,
        number: int,
        first: int,
        stop: int,
        aux: Mapping[str, AnyArray],
        backend: Backend = NUMPY,
    ) -> None:
        declared = recipe.udfs[number]
        n_rows = recipe.grid.n_rows(first, stop)
        self.recipe = recipe
        self.where = declared
        self.backend = backend
        self.dense = backend.dense  # backend of the dense data that it is given, or made from
        self.cursor = Cursor(first, stop, n_rows)
        udf = made_anew(declared.cls, declared.kwargs)
        udf.meta = UDFMeta(
            grid=recipe.grid,
            dataset_shape=recipe.shape,
            dataset_dtype=recipe.dtype,
            input_dtype=declared.input_dtype,
            tiling=recipe.sparse_tiling if self.takes_sparse else recipe.tiling,
            threads=recipe.threads,
            cursor=self.cursor,
            corrections=recipe.corrections,
            backend=backend,
        )
        self.udf = udf
        self.writable_input = bool(udf.writable_input)
        # what has travelled between processes may have become writable
        self.aux = {name: locked(rows) for name, rows in aux.items()}
        self.sig_aux: dict[str, AnyArray] = {}
        if declared.aux:
            self.view_whole_aux()
        self._declare()
        sig = recipe.shape.sig
        self.arrays: dict[str, AnyArray] = {
            name: spec.allocate(n_rows, sig, backend) for name, spec in declared.allocated.items()
        }
        self.view_all()

    @property
    def takes_sparse(self) -> bool:
        """Whether it is given sparse data."""
        return self.backend.is_sparse

    def view_whole_aux(self) -> None:
        """Show the UDF all aux data, as far as they are known: of nav ones shape and dtype."""
        shape = self.recipe.shape
        views: dict[str, Any] = {}
        for name, aux in self.where.aux.items():
            if aux.kind == "nav":
                flat = (shape.nav.size, *aux.extra_shape)
                views[name] = UnavailableAux(name=name, shape=flat, dtype=aux.dtype)
            else:
                views[name] = self.where.kwargs[name].over(shape)
            if aux.kind == "sig":
                self.sig_aux[name] = views[name]
        # a fresh set: `__init__` may have handed its own to somebody
        self.udf.params = Params({**self.udf.params.__dict__, **views})

    def _declare(self) -> None:
        """Let the UDF declare again, as it may set attributes meanwhile; the plan's word counts."""
        if self.where.promises.declares_once:
            return
        try:
            buffers = dict(self.call("get_result_buffers"))
        except NotAvailableError:
            if not self.where.nav_aux:  # it has read values that only the plan knows
                raise
            return
        if buffers != self.where.buffers:
            raise UDFError(
                f"{self.where.name}.get_result_buffers() declared other buffers on a worker than "
                "in the plan: it may depend on parameters and on the data set's shape, dtype "
                "and ROI only"
            )

    def view_all(self, grid: Grid | None = None) -> None:
        """Show the UDF its whole buffers, and the aux data of all rows.

        With `grid`, the rows are those of the whole run in flattened order.
        """
        views: dict[str, Any] = dict.fromkeys(self.where.buffers)
        views.update(self.arrays)
        self.udf.results = Results(views, self.where.buffers, self.arrays, grid)
        if self.where.aux:
            self.udf.params.__dict__.update(self.aux)
            self.udf.params.__dict__.update(self.sig_aux)

    def view_part(self, part: Slice, index: int) -> list[tuple[AnyArray, AnyArray]]:
        """Show a signal part of the sig buffers; return copies to write back, with their places."""
        views = self.udf.results.__dict__
        self.cursor.part, self.cursor.part_index = part, index
        back = []
        for name, spec in self.where.allocated.items():
            if spec.kind == "sig":
                window = self.arrays[name][part.get()]
                if not window.flags.c_contiguous:
                    piece = window.copy()
                    back.append((window, piece))
                    window = piece
                views[name] = window
        for name, values in self.sig_aux.items():
            self.udf.params.__dict__[name] = locked(np.ascontiguousarray(values[part.get()]))
        return back

    def view_rows(self, start: int, stop: int) -> None:
        """Show rows of the nav buffers and of aux data."""
        views = self.udf.results.__dict__
        self.cursor.start, self.cursor.stop = start, stop
        for name, spec in self.where.allocated.items():
            if spec.kind == "nav":
                views[name] = self.arrays[name][start:stop]
        for name, rows in self.aux.items():
            self.udf.params.__dict__[name] = rows[start:stop]

    def call(self, method: str, *args: Any) -> Any:
        """Return what a method of the UDF returns; its exceptions say where they come from."""
        try:
            return getattr(self.udf, method)(*args)
        except Exception as error:
            self.blame(error, method)
            raise

    def blame(self, error: Exception, method: str) -> None:
        """Note on an exception of a user's method where it was raised.

        In place of one that cannot travel between processes, a UDFError with its name and
        traceback is raised.
        """
        note = f"raised in {self.where.name}.{method} {self._place()}"
        error.add_note(note)
        try:
            cloudpickle.loads(cloudpickle.dumps(error))
        except Exception:  # noqa: BLE001  # whatever a user's exception class does when unpickled
            text = "".join(traceback.format_exception(error))
            stand_in = UDFError(f"{type(error).__name__}: {error}\n\n{text}")
            stand_in.add_note(note)
            try:
                raise stand_in from None
            except UDFError:
                # the context is pickled as well by dask's process scheduler
                stand_in.__context__ = None
                raise

    def _place(self) -> str:
        """Return the navigation coordinates and the chunk at hand, in words."""
        grid, (first, stop) = self.recipe.grid, self.cursor.chunks
        if stop == first:
            return "on no frame at all"
        here = grid.coordinates_of(first, stop)[self.cursor.start : self.cursor.stop]
        chunk = f"chunk {grid.index(first)}"
        if stop - first > 1:
            chunk = f"chunks {grid.index(first)} to {grid.index(stop - 1)}"
        if not len(here):
            return f"in {chunk}"
        ends = [tuple(int(i) for i in c) for c in (here[0], here[-1])]
        if len(here) == 1:
            return f"at navigation coordinates {ends[0]}, in {chunk}"
        return f"at navigation coordinates {ends[0]} to {ends[1]}, in {chunk}"
