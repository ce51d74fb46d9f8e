"""Promises of a UDF about its methods, which make runs cheaper."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """State what a UDF promises about its methods, to make runs cheaper.

    Set it as the class attribute `promises`. A false promise can give wrong results;
    `udfdask.testing.check_udf` tests them. A subclass does not inherit promises, which its own
    methods can break: it makes its own, or repeats them with ``promises = Base.promises``.

    Examples
    --------
    >>> import udfdask as ud
    >>> class Counts(ud.UDF):
    ...     promises = ud.Promises(adds_signal_parts=True, starts_no_threads=True)
    ...     def process_tile(self, tile):
    ...         self.results.counts += tile.sum(axis=(1, 2))
    """

    # Independent tasks, each fused with its loading, peak at 424 MB where one chunk is 64 MiB; one
    # more task joins their parts. A chain of tasks peaked at 1119 MB, because the second thread of
    # a local scheduler loads ahead of the chain.
    adds_signal_parts: bool = False
    """If the signal is chunked, nav and single buffers are sums over the signal chunks, and no
    method needs pixels of two signal chunks: each signal chunk can have its own task."""
    declares_once: bool = False
    """`get_result_buffers` sets nothing that other methods need: tasks do not call it again."""
    merge_only_reads_src: bool = False
    """`merge` writes only to `dest`: `src` does not have to be a copy."""
    # Corrections are linear (`corrections/correct_tile.py`), so a corrected sum is as fast as a sum
    # without corrections. All other UDFs get corrected tiles.
    only_sums_frames: bool = False
    """`process_tile` uses only ``tile.sum(axis=0)``, the shape and the dtype of a tile: with
    corrections, the sum is corrected instead of each frame."""
    processes_stacks: bool = False
    """`process_stack` does for a stack of whole frames what `process_frame` does for each frame."""
    # Four built-in UDFs over 16-bit integers read each value once in place of four times.
    processes_sums: bool = False
    """`process_sums` does with the sums of a tile what `process_tile` does with the tile. It is
    called if several UDFs of a run promise this: they share the sums. An instance that cannot use
    them has ``process_sums = None``."""
    starts_no_threads: bool = False
    """No method starts threads, as BLAS, OpenMP and parallel numba do: tasks do not limit them."""
    # These tiles do not have to fit into a cache. Where they end depends on the memory layout of a
    # block, not only on the plan: integer results are equal, floats are added in another order.
    streams_tiles: bool = False
    """`process_tile` reads its tile once, from beginning to end, and allocates no memory of the
    size of the tile: if it is the only UDF, a tile has all frames of a chunk."""
    # Swapping the bytes of a tile first halved the speed of sums, variances and centers of mass.
    # Their kernels swap each value when they load it.
    takes_any_byte_order: bool = False
    """The processing method accepts data in either byte order: they are not converted for it."""


NAMES = tuple(field.name for field in fields(Promises))
"""Names of all promises."""
