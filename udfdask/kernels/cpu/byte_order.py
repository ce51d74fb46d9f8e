"""Values of the other byte order, turned round as kernels load them.

A tile that is turned round by itself is written to memory and read again.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.types import AnyArray


def as_native(tile: AnyArray) -> tuple[AnyArray, bool | None]:
    """Return the memory of a tile as values of native byte order, and how kernels take it.

    The latter is True if kernels have to turn each value round, else None: it is a type that
    compiled code is made for. Complex tiles are copied.
    """
    if tile.dtype.isnative:
        return tile, None
    native = tile.dtype.newbyteorder("=")
    if native.kind in "iuf" and native.char not in "eg" and tile.flags.aligned:
        return tile.view(native), True
    return tile.astype(native), None


@intrinsic
def turned(context: Any, value: Any, turn: Any) -> Any:
    """Return a value with its bytes in the other order, itself if `turn` is None."""

    def same(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return values[0]

    def reverse(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        plain = values[0].type
        bits = ir.IntType(value.bitwidth)
        number = builder.bswap(builder.bitcast(values[0], bits))
        return builder.bitcast(number, plain)

    return value(value, turn), same if isinstance(turn, types.NoneType) else reverse
