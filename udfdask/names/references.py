"""Find the names in a code object: globals with their attributes, and imported modules."""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_TEXT_METHODS = frozenset({"format", "format_map", "join", "lower", "replace", "upper"})
_NO_STEPS = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})

Written = tuple[Literal["constant", "global", "closure", "parameter"], tuple[str, ...]]
"""A path: itself; a variable with attributes; an attribute of an object, as `self.params.log`."""


@dataclass(frozen=True, slots=True)
class References:
    """The names and texts in a code object and in its inner code objects, sorted."""

    chains: tuple[tuple[str, ...], ...]
    """Each global name with the attributes that are read directly after it: `np.linalg.norm`."""
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    """Each import: level of a relative import, module, imported names."""
    texts: tuple[str, ...]
    """Each constant text."""
    written: tuple[Written, ...]
    """The path of each file that is opened for writing."""
    makes_texts: bool
    """Whether texts are put together, so that there can be others than constants."""


@lru_cache(maxsize=4096)
def references_of(code: types.CodeType) -> References:
    """Return the names and texts in a code object."""
    chains: set[tuple[str, ...]] = set()
    imports: set[tuple[int, str, tuple[str, ...]]] = set()
    texts: set[str] = set()
    chain: tuple[str, ...] = ()
    before: list[Any] = [None, None]
    steps = [
        (each.opname, each.argrepr if each.opname == "BINARY_OP" else each.argval)
        for each in dis.get_instructions(code)
        if each.opname not in _NO_STEPS
    ]
    written = set(_written(steps))
    makes_texts = any(_makes_text(steps, k) for k in range(len(steps)))
    for name, value in steps:
        if chain and name in _ATTRIBUTES:
            chain = (*chain, value)
            continue
        if chain:
            chains.add(chain)
        chain = (value,) if name in _LOADS else ()
        if name == "IMPORT_NAME":
            imports.add((before[-2] or 0, value, tuple(before[-1] or ())))
        before = [before[-1], value]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = references_of(constant)
            chains.update(inner.chains)
            imports.update(inner.imports)
            texts.update(inner.texts)
            written.update(inner.written)
            makes_texts |= inner.makes_texts
        for each in constant if isinstance(constant, tuple) else (constant,):
            if isinstance(each, str):
                texts.add(each)
    return References(
        chains=tuple(sorted(chains)),
        imports=tuple(sorted(imports)),
        texts=tuple(sorted(texts)),
        written=tuple(sorted(written)),
        makes_texts=makes_texts,
    )


def _makes_text(steps: Sequence[tuple[str, Any]], k: int) -> bool:
    """Return whether instruction number k puts a text together."""
    name, value = steps[k]
    if name.startswith(("FORMAT_", "BUILD_STRING")):
        return True
    if name in _ATTRIBUTES:
        return value in _TEXT_METHODS
    if name != "BINARY_OP" or value not in ("+", "+=", "%"):
        return False
    right = k - 1
    if _is_text(steps[right]):
        return True
    while right and steps[right][0] in _ATTRIBUTES:
        right -= 1
    return right > 0 and steps[right][0].startswith("LOAD_") and _is_text(steps[right - 1])


def _is_text(step: tuple[str, Any]) -> bool:
    """Return whether an instruction loads a constant text."""
    return step[0] == "LOAD_CONST" and isinstance(step[1], str)


def _written(steps: Sequence[tuple[str, Any]]) -> Iterator[Written]:
    """Yield the paths of files that instructions open for writing.

    These are calls such as ``open(path, "a")``, ``path.open("w")`` and ``path.write_text(...)``.
    """
    for k, (name, value) in enumerate(steps):
        end = k  # of the instructions that load the path
        method = name in _ATTRIBUTES and value in ("write_text", "write_bytes")
        if not method:
            if name != "LOAD_CONST" or not _is_write_mode(value) or not k:
                continue
            method = steps[k - 1][0] in _ATTRIBUTES and steps[k - 1][1] == "open"
            end = k - 1 if method else k
        if method and steps[end - 1][0].startswith("CALL"):  # Path("log.txt")
            end -= 1
        start = end - 1
        while start > 0 and steps[start][0] in _ATTRIBUTES:
            start -= 1
        if start < 0 or not (method or (start and steps[start - 1][1] == "open")):
            continue
        base, first = steps[start]
        names = tuple(attribute for _, attribute in steps[start + 1 : end])
        if base == "LOAD_CONST" and isinstance(first, str):
            yield ("constant", (first,))
        elif base in _LOADS:
            yield ("global", (first, *names))
        elif base == "LOAD_DEREF":
            yield ("closure", (first, *names))
        elif names:
            yield ("parameter", names)


def _is_write_mode(mode: Any) -> bool:
    """Return whether a constant is a mode of `open` that does not read what there is."""
    return isinstance(mode, str) and mode[:1] in {"w", "a", "x"} and set(mode[1:]) <= set("bt+")


@lru_cache(maxsize=4096)
def code_digest(code: types.CodeType) -> str | None:
    """Return a hash of a code object, without its file name and line numbers.

    Return None if it has constants of types that the compiler does not produce.
    """
    try:
        constants = [_constant(c) for c in code.co_consts]
    except TypeError:
        return None
    parts = (
        code.co_code,
        constants,
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        code.co_exceptiontable,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _constant(value: Any) -> Any:
    """Return a constant in a form whose text differs for all different constants."""
    if isinstance(value, types.CodeType):
        digest = code_digest(value)
        if digest is not None:
            return ("code", digest)
    if isinstance(value, tuple):
        return ("tuple", [_constant(v) for v in value])
    if isinstance(value, frozenset):  # its order depends on the hashes of strings
        return ("frozenset", sorted(repr(_constant(v)) for v in value))
    if isinstance(value, slice):
        return ("slice", [_constant(v) for v in (value.start, value.stop, value.step)])
    if type(value) is int:
        return ("int", hex(value))  # Python limits the number of decimal digits
    if value is None or value is ... or type(value) in (bool, float, complex, str, bytes):
        return value
    raise TypeError
