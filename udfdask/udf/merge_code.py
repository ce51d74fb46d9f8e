"""Read in the code of a `merge` whether it assigns nav buffers, and does no more with them."""

from __future__ import annotations

import dis
import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any

_NO_STEPS = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "RESUME"})
_FAST = re.compile("(LOAD|STORE|DELETE)_FAST")
_OF_SELF = frozenset({"meta", "params", "task_data", "xp"})
"""Attributes of a UDF that no buffer can be reached by."""

_ALL = (
    "(?:LOAD_CONST=None LOAD_CONST=None (?:BUILD_SLICE=2 {0}_SUBSCR|{0}_SLICE)|"
    r"LOAD_CONST=(?:Ellipsis|slice\(None,None,None\)) {0}_SUBSCR) "
)
"""Pattern of ``[:]`` and ``[...]`` in the code of Python 3.11, 3.12 and 3.14."""


def assigns_nav(merge: Any, nav: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Return whether the code of a `merge` shows that it only assigns nav buffers.

    It has no branches and no error handling, takes buffers from `dest` and `src` and passes neither
    of them on, and contains each nav buffer as ``dest.x[:] = src.x`` and in no other way. There may
    be ``[...]`` in place of ``[:]``, one of them after ``src.x``, and ``["x"]`` in place of ``.x``.
    `others` are the names of the other buffers.
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
    text = _text(code)
    if "JUMP" in text or "FOR_ITER" in text:
        return False
    item = rf"(_FAST=(?:{dest}|{src})) LOAD_CONST='(\w+)' BINARY_SUBSCR"
    text = re.sub(item, r"\1 LOAD_ATTR=\2", text)
    copy = (
        rf"LOAD_FAST={src} LOAD_ATTR=(\w+) (?:{_ALL.format('BINARY')})?"
        rf"LOAD_FAST={dest} LOAD_ATTR=\1 {_ALL.format('STORE')}"
    )
    use = rf"(\w+)_FAST=({this}|{dest}|{src}) (?:COPY )?(?:LOAD_ATTR=(\w+))?"  # COPY: dest.y += 1
    return {*re.findall(copy, text)} - others == nav and all(
        kind == "LOAD" and attribute in (_OF_SELF if variable == this else others)
        for kind, variable, attribute in re.findall(use, re.sub(copy, "", text))
    )


def _text(code: CodeType) -> str:
    """Return the instructions of a code object, those of two variables one by one."""
    words = []
    for step in dis.get_instructions(code):
        name, value = step.opname, step.argval
        if kinds := _FAST.findall(name):
            names = value if isinstance(value, tuple) else (value,)
            words += [f"{kind}_FAST={each}" for kind, each in zip(kinds, names, strict=True)]
        elif name == "LOAD_ATTR":
            words.append(f"{name}={value}")
        elif name in ("LOAD_CONST", "BUILD_SLICE"):
            words.append(f"{name}={value!r}".replace(" ", ""))
        elif name not in _NO_STEPS:
            words.append("BINARY_SUBSCR" if step.argrepr == "[]" else name)  # Python 3.14
    return " ".join([*words, ""])
