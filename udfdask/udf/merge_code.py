"""Read in the code of a `merge` whether it assigns nav buffers, and does no more with them."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any

_NO_STEPS = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "RESUME"})
_FAST = re.compile("(LOAD|STORE|DELETE)_FAST")
_OF_SELF = frozenset({"meta", "params", "task_data", "xp"})
"""Attributes of a UDF that no buffer can be reached by."""

_NONE = ("LOAD_CONST", None)
_STORES = (
    [_NONE, _NONE, ("BUILD_SLICE", 2), ("STORE_SUBSCR", None)],
    [_NONE, _NONE, ("STORE_SLICE", None)],
    [("LOAD_CONST", slice(None)), ("STORE_SUBSCR", None)],
    [("LOAD_CONST", Ellipsis), ("STORE_SUBSCR", None)],
)
"""What comes after the names in ``dest.x[:] = src.x`` and ``dest.x[...] = src.x``, in the code of
Python 3.11, 3.12 and 3.14."""


def assigns_nav(merge: Any, nav: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Return whether the code of a `merge` shows that it only assigns nav buffers.

    It has no branches and no error handling, takes buffers from `dest` and `src` and passes neither
    of them on, and contains each nav buffer as ``dest.x[:] = src.x`` or ``dest.x[...] = src.x`` and
    in no other way. `others` are the names of the other buffers.
    """
    # a decorator may be an object that shows the __code__ and even the class of what it wraps
    function = merge.__func__ if type(merge) is MethodType else merge
    if type(function) is not FunctionType:
        return False
    return _assigns(function.__code__, frozenset(nav), frozenset(others))


@lru_cache(256)
def _assigns(code: CodeType, nav: frozenset[str], others: frozenset[str]) -> bool:
    """Return the same for a code object."""
    if code.co_argcount != 3 or not {*code.co_varnames[:3]}.isdisjoint(code.co_cellvars):
        return False
    if code.co_exceptiontable:  # a branch without a jump: `except:` at the end
        return False
    this, dest, src = code.co_varnames[:3]
    steps = [*_steps(code), ("END", None)]
    assigned, k = set(), 0
    while k < len(steps):
        name, argument = steps[k]
        if "JUMP" in name or name == "FOR_ITER":
            return False
        if name.endswith("_FAST") and argument in (this, dest, src):
            adds = steps[k + 1][0] == "COPY"  # as in dest.y += src.y
            attribute = steps[k + 1 + adds]
            allowed = _OF_SELF if argument == this else others if adds else nav | others
            if name != "LOAD_FAST" or attribute[0] != "LOAD_ATTR" or attribute[1] not in allowed:
                return False
            if argument != this and attribute[1] in nav:
                expected = [("LOAD_FAST", src), attribute, ("LOAD_FAST", dest), attribute]
                after = steps[k + 4 :]
                stores = [store for store in _STORES if after[: len(store)] == store]
                if steps[k : k + 4] != expected or not stores:
                    return False
                assigned.add(attribute[1])
                k += 3 + len(stores[0])
        k += 1
    return assigned == nav


def _steps(code: CodeType) -> Iterator[tuple[str, Any]]:
    """Yield the instructions of a code object, those of two variables one by one."""
    for step in dis.get_instructions(code):
        if kinds := _FAST.findall(step.opname):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            yield from ((f"{kind}_FAST", name) for kind, name in zip(kinds, names, strict=True))
        elif step.opname not in _NO_STEPS:
            has_argument = step.opname in ("LOAD_ATTR", "LOAD_CONST", "BUILD_SLICE")
            yield step.opname, step.argval if has_argument else None
