"""What a UDF promises about itself, so that a run can be cheaper."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from typing import Any, Self

from udfdask.errors import ArgumentTypeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """What the author of a UDF promises about its methods, which makes runs cheaper.

    Give it as the class attribute `promises`. A run relies on it: a promise that is not true may
    give wrong results. `udfdask.testing.check_udf` tests each promise that a UDF makes. A subclass
    inherits none of them, because it may do what its base class promises not to do: it makes its
    own, or repeats ``promises = Base.promises``.

    Raises
    ------
    ArgumentTypeError
        If there is no promise of that name, or a value is neither True nor False.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.testing import check_udf
    >>> class Counts(ud.UDF):
    ...     promises = ud.Promises(adds_signal_parts=True, starts_no_threads=True)
    ...     def get_result_buffers(self):
    ...         return {"counts": self.buffer(kind="nav", dtype="float64")}
    ...     def process_tile(self, tile):
    ...         self.results.counts += tile.sum(axis=(1, 2))
    >>> "adds_signal_parts" in check_udf(Counts()).laws
    True
    """

    # Law 3 asks for a chain of tasks, one signal chunk each. The second thread of a local scheduler
    # would load ahead of the chain: 1119 MB where one chunk is 64 MiB. Independent tasks, each
    # fused with its loading, peak at 424 MB; one more task joins their parts.
    adds_signal_parts: bool = False
    """Over a chunked signal, nav and single buffers are sums over the signal chunks, and nothing
    needs pixels of two of them: a task may take one signal chunk."""
    declares_once: bool = False
    """`get_result_buffers` sets nothing that other methods need: tasks do not call it again."""
    merge_only_reads_src: bool = False
    """`merge` writes to `dest` only: `src` need not be a copy."""
    # Corrections are linear (`corrections/correct_sum.py`): a corrected sum runs at the speed of
    # one without corrections. All other UDFs are given corrected tiles.
    only_sums_frames: bool = False
    """`process_tile` needs nothing of a tile but ``tile.sum(axis=0)`` and its shape: with
    corrections, the sum is corrected in place of each frame."""
    processes_stacks: bool = False
    """`process_stack` does for a stack of whole frames what `process_frame` does for each frame."""
    starts_no_threads: bool = False
    """Nothing starts threads, as BLAS, OpenMP and parallel numba do: tasks do not limit them."""
    # Such tiles need not fit a cache. Where they end depends on how a block lies in memory, not on
    # the plan alone: integers come out the same, floats are added up in another order.
    streams_tiles: bool = False
    """`process_tile` reads its tile once, from its beginning to its end, and needs no memory of
    the size of the tile: by itself it is given all frames of a chunk as one tile."""
    # Swapping the bytes of a tile first halved the speed of sums, variances and centers of mass;
    # their kernels swap each value as they load it.
    takes_any_byte_order: bool = False
    """The processing method takes data in either byte order: they are not converted for it."""

    # Python's own error would not say which names there are
    def __new__(cls, **given: Any) -> Self:
        """Refuse names that are no promises."""
        for name in given:
            if name not in NAMES:
                raise ArgumentTypeError(f"there is no promise {name!r}{_did_you_mean(name)}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ArgumentTypeError(f"promise {name} must be True or False, not {value!r}")


NAMES = tuple(field.name for field in fields(Promises))
"""Names of all promises."""


def _did_you_mean(name: str) -> str:
    """Return the most similar promise, or all of them, as the rest of a message."""
    near = difflib.get_close_matches(name, NAMES, n=1)
    return f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(NAMES)}"
