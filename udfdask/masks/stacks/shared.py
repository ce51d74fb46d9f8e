"""The stacks of this process: one for all containers with equal factories."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Hashable
from typing import Any

from udfdask.cache import OncePerProcess
from udfdask.masks.stacks.stack import Factories, MaskStack
from udfdask.tokens import Identity, identity_of

_STACKS = OncePerProcess(8)
_LOCKS = OncePerProcess(64)


def shared_stack(factories: Factories, as_sparse: bool | None) -> MaskStack:
    """Return the stack of some factories, computed by the first thread that asks for it.

    A factory may change what it carries, because it counts its calls or draws random numbers. It
    is still the same to those who make their container later: its stack is kept under what it was
    before the call and after. No thread may look at it in between, hence the lock.
    """
    fresh: list[MaskStack] = []

    def make() -> MaskStack:
        fresh.append(MaskStack(factories, as_sparse))
        return fresh[0]

    with _LOCKS.get(_code_of(factories), threading.RLock):
        stack: MaskStack = _STACKS.get((identity_of(factories), as_sparse), make)
        if fresh:
            _STACKS.get((identity_of(factories), as_sparse), lambda: stack)
    return stack


def _code_of(factories: Factories) -> Hashable:
    """Return the code of factories, which stays when they change what they carry."""
    each = factories if isinstance(factories, tuple) else (factories,)
    return tuple(map(_code, each))


def _code(factory: Any) -> Hashable:
    """Return the code of a function, also behind bound arguments; else a type."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    return factory.__code__ if isinstance(factory, types.FunctionType) else Identity(type(factory))
