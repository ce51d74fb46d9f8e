"""List the ready-made UDFs, and make one from the text after ``--udf``."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import click

from udfdask import udfs
from udfdask.cli.own_code import find_own, split_place
from udfdask.errors import UDFError
from udfdask.geometry.labeled_values import did_you_mean
from udfdask.io.numpy_file import read_npy
from udfdask.libertem_udfs import as_own, udf_name
from udfdask.masks import DiskTemplate
from udfdask.results.named_results import name_of_class
from udfdask.udf import UDF
from udfdask.udfs import VirtualDetectorUDF
from udfdask.udfs.shared.detector_shapes import DetectorShape, plain_shape

SHAPES: tuple[str, ...] = get_args(DetectorShape)
"""The shapes of detectors, which can be typed like names of UDFs."""

_CONSTANTS = {"true": True, "false": False, "none": None}
_CONSTANTS |= {text: float(text) for text in ("inf", "-inf", "nan")}  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A ready-made UDF, or one of the user."""

    name: str
    """The name of its results: the class name in lower case, without UDF."""
    udf: type[UDF]
    """Its class; this can be a class of LiberTEM."""
    place: str = ""
    """The text after ``--udf`` if it is not ready-made, such as ``mine.py:Peak``."""

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the constructor; those that begin with an underscore are ours."""
        parameters = inspect.signature(self.udf).parameters
        return {name: p for name, p in parameters.items() if not name.startswith("_")}

    @property
    def description(self) -> str:
        """The docstring of the class; empty if it has only that of the base class."""
        described = inspect.getdoc(self.udf) or ""
        bases = [base for base in self.udf.__mro__ if base.__name__ == "UDF"]
        return "" if described in map(inspect.getdoc, bases) else described

    @property
    def usage(self) -> str:
        """The text to write after ``--udf``: ``fem:center=...,rad_in=...,rad_out=...``."""
        variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        needed = [
            f"{p.name}=..."
            for p in self.parameters.values()
            if p.default is p.empty and p.kind not in variable
        ]
        return (self.place or self.name) + (":" + ",".join(needed) if needed else "")


def _catalog() -> dict[str, Entry]:
    """Return all ready-made UDFs by name."""
    classes = [getattr(udfs, name) for name in udfs.__all__]
    found = [c for c in classes if inspect.isclass(c) and issubclass(c, UDF)]
    names = {name_of_class(c.__name__): c for c in found}
    return {name: Entry(name=name, udf=names[name]) for name in sorted(names)}


CATALOG = _catalog()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedUDF:
    """A UDF that was typed after ``--udf``."""

    name: str
    """The name of its results: the typed one, that of the UDF, or the shape of a detector."""
    is_named: bool
    """Whether the name was typed, as in ``BF=disk:r=5``."""
    udf: UDF


def to_udf(text: str) -> TypedUDF:
    """Make the UDF of ``com:cy=64,cx=64``, ``BF=disk:r=5`` or ``mine.py:Peak:r=5``.

    Raise BadParameter if there is no such UDF, or if it does not take these values.
    """
    given = re.match(r"\s*([A-Za-z_]\w*)\s*=\s*(?=[A-Za-z_./~])", text)
    own_name, rest = (given[1], text[given.end() :]) if given else ("", text)
    try:
        entry, made, settings = find_udf(rest)
        udf = _make(entry, made, read_settings(entry, settings))
    except (UDFError, ValueError, OSError) as error:
        raise click.BadParameter(f"{text!r}: {error}", param_hint="'--udf'") from error
    return TypedUDF(name=own_name or entry.name, is_named=bool(own_name), udf=udf)


def find_udf(text: str) -> tuple[Entry, UDF | None, str]:
    """Return the entry for a typed text, and the text of its parameters.

    The second value is the UDF itself if the user's code has made it. Raise ValueError if there is
    no such UDF.
    """
    name, _, settings = (part.strip() for part in text.partition(":"))
    shape = plain_shape(name)
    if shape in SHAPES:
        settings = f"shape={shape},{settings}" if settings else f"shape={shape}"
        return Entry(name=shape, udf=VirtualDetectorUDF), None, settings
    plain = re.sub(r"[-_ ]", "", name).lower()
    for known in (plain, plain.removesuffix("udf")):
        if known in CATALOG:
            return CATALOG[known], None, settings
    place = split_place(text)
    if place is None:
        near = did_you_mean(plain, (*CATALOG, *SHAPES))
        raise ValueError(f"{name!r} is not one of {', '.join(CATALOG)}{near}")
    found = find_own(*place[:2])
    if udf_name(found) is None:
        use = f": to call it with each frame, write auto:f={':'.join(place[:2])}"
        raise ValueError(f"it is not a UDF, but {found!r}{use if inspect.isroutine(found) else ''}")
    cls: Any = found if inspect.isclass(found) else type(found)
    own = Entry(name=name_of_class(cls.__name__), udf=cls, place=":".join(place[:2]))
    return own, None if inspect.isclass(found) else as_own(found), place[2]


def _make(entry: Entry, made: UDF | None, values: Mapping[str, Any]) -> UDF:
    """Return the UDF with these parameters; raise ValueError if its constructor does not."""
    if made is not None:
        if values:
            raise ValueError("it is a UDF that has its parameters, so it takes none here")
        return made
    try:
        inspect.signature(entry.udf).bind(**values)
    except TypeError as error:
        names = ", ".join(entry.parameters) or "no parameters"
        help_with = entry.place or entry.name
        raise ValueError(
            f"{error} ({help_with} takes {names}; more with: udfdask udfs {help_with})"
        ) from None
    try:
        udf: UDF = as_own(entry.udf(**values))
    except UDFError:
        raise
    except Exception as error:  # the user's code can raise anything
        raise ValueError(f"{entry.udf.__name__} raised {type(error).__name__}: {error}") from error
    return udf


def read_settings(entry: Entry, text: str) -> dict[str, Any]:
    """Return the values of ``r=3,peaks=[[1,2]]`` by their names; raise ValueError if wrong."""
    values: dict[str, Any] = {}
    # a comma within brackets or quotes is not before another parameter
    for part in re.split(r",(?=\s*[^\W\d]\w*\s*=)", text) if text.strip() else ():
        name, equals, written = (each.strip() for each in part.partition("="))
        if not (equals and name.isidentifier()):
            raise ValueError(f"{part.strip()!r} has no name: write parameter=value")
        if name in values:
            raise ValueError(f"{name!r} is given twice")
        values[name] = _read_value(entry.parameters.get(name), name, written)
    return values


def _read_value(parameter: inspect.Parameter | None, name: str, text: str) -> Any:
    """Convert the text for a parameter: a number, a constant, a list, an array, or a function.

    A name that ends in .npy is the array in that file, ``module:name`` a function if the parameter
    is one, and a number for a template the radius of a disk. Any other text stays a text.
    """
    annotation = "" if parameter is None else str(parameter.annotation)
    if "PathLike" in annotation:
        return text
    if text.endswith(".npy"):
        return read_npy(text)
    if "Callable" in annotation:
        place = split_place(text)
        if place is None:
            raise ValueError(f"{text!r} is not a function: write numpy:max, or mine.py:peak")
        return find_own(*place[:2])
    value: Any = text
    try:
        value = _CONSTANTS[text.lower()] if text.lower() in _CONSTANTS else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if re.search(r"[][(){},;'\"]", text):
            raise ValueError(
                f"{text!r} cannot be read: write a list such as [[5,6],[8,8]], and numbers "
                'with a unit in quotes, such as ("0 mrad","0 mrad")'
            ) from None
    is_radius = name == "template" and isinstance(value, int | float | str)
    return DiskTemplate(radius=value) if is_radius else value
