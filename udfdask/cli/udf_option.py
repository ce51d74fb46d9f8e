"""List the ready-made UDFs, and make one from the text after ``--udf``."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import click
import numpy as np

from udfdask import udfs
from udfdask.cli.own_code import find_own, in_words, own_failure, split_place, without_a_name
from udfdask.errors import ArgumentTypeError, UDFError
from udfdask.io.numpy_file import read_npy
from udfdask.libertem_udfs import as_own, udf_name
from udfdask.masks import DiskTemplate
from udfdask.results.named_results import name_of_class
from udfdask.udf import UDF
from udfdask.udfs.virtual_detector import DetectorShape, numbers_of, plain_shape

DETECTOR = "virtualdetector"
"""The UDF whose shapes can be typed like names of UDFs."""

SHAPES: tuple[str, ...] = get_args(DetectorShape)
"""The shapes of a virtual detector."""

_CONSTANTS = {
    "true": True,
    "false": False,
    "none": None,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
}
_OPENING, _CLOSING = "([{", ")]}"


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
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The named parameters of the constructor."""
        parameters = inspect.signature(self.udf).parameters
        return {
            name: p
            for name, p in parameters.items()
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and not name.startswith("_")
        }

    @property
    def takes_any(self) -> bool:
        """Whether the constructor of the user's class takes parameters of any name."""
        kinds = [p.kind for p in inspect.signature(self.udf).parameters.values()]
        return bool(self.place) and inspect.Parameter.VAR_KEYWORD in kinds

    def parameter(self, name: str) -> inspect.Parameter:
        """Return the parameter of this name, which the class may take without naming it."""
        unknown = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        return self.parameters.get(name, unknown)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self._docstring.partition("\n")[0]

    def section(self, title: str) -> str:
        """Return the text of a section of the docstring, empty if there is no such section."""
        found = re.search(
            rf"^{title}\n-+\n(.*?)(?=^[A-Z][\w ]+\n-+$|\Z)",
            self._docstring,
            re.MULTILINE | re.DOTALL,
        )
        return "" if found is None else found[1].strip()

    @property
    def usage(self) -> str:
        """The text to write after ``--udf``: ``fem:center=...,rad_in=...,rad_out=...``."""
        needed = [f"{p.name}=..." for p in self.parameters.values() if p.default is p.empty]
        return (self.place or self.name) + (":" + ",".join(needed) if needed else "")

    @property
    def _docstring(self) -> str:
        # a class without a docstring has that of the base class, which is about all UDFs
        described = inspect.getdoc(self.udf) or ""
        bases = [base for base in self.udf.__mro__ if base.__name__ == "UDF"]
        return "" if described in map(inspect.getdoc, bases) else described


def _entries() -> dict[str, Entry]:
    """Return all ready-made UDFs by name."""
    classes = [getattr(udfs, name) for name in udfs.__all__]
    found = [c for c in classes if inspect.isclass(c) and issubclass(c, UDF)]
    names = {name_of_class(c.__name__): c for c in found}
    return {name: Entry(name=name, udf=names[name]) for name in sorted(names)}


CATALOG = _entries()
"""All ready-made UDFs by name."""


def plain_name(name: str) -> str:
    """Return the command-line name for ``radial-profile``, ``RadialProfileUDF`` and the like."""
    plain = re.sub(r"[-_ ]", "", name).lower()
    return plain if plain in CATALOG else plain.removesuffix("udf")


def split_settings(text: str) -> tuple[list[str], dict[str, str]]:
    """Split ``5,r=3,peaks=[[1,2]]`` into the values without a name and the values with a name.

    Raise ValueError if the text is ambiguous.
    """
    unnamed: list[str] = []
    named: dict[str, str] = {}
    for part in _split(text):
        found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=(.*)", part, re.DOTALL)
        if found is None and named:
            raise ValueError(f"{part.strip()!r} has no name, but comes after a value with a name")
        if found is None:
            unnamed.append(part.strip())
        elif found[1] in named:
            raise ValueError(f"{found[1]!r} is given twice")
        else:
            named[found[1]] = found[2].strip()
    return unnamed, named


def _split(text: str) -> list[str]:
    """Split a text at the commas that are outside brackets and quotes."""
    if not text.strip():
        return []
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += 0 if quote else (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if depth or quote:
        raise ValueError(f"a bracket or a quote in {text!r} is not closed")
    return parts


def read_value(parameter: inspect.Parameter, text: str) -> Any:
    """Convert the text for a parameter of a UDF to its value.

    Numbers, true, false, none, inf and lists in brackets are converted to Python values. A name
    that ends in .npy is the array in that file. If the parameter is a function, ``module:name`` or
    ``file.py:name`` is that function. A number or length
    for a template is the radius of a disk. Any other text is passed as it is. Raise ValueError or
    ArgumentTypeError if the conversion fails.
    """
    annotation = str(parameter.annotation)
    if "PathLike" in annotation:
        return text
    if text.endswith(".npy"):
        return _load(text)
    if "Callable" in annotation:
        return _function(text)
    value = _literal(text)
    if parameter.name == "template" and isinstance(value, int | float | str):
        return DiskTemplate(radius=value)
    return value


def _is_elsewhere(parameter: inspect.Parameter, text: str) -> bool:
    """Return whether the value of a parameter is in a file, or a function."""
    annotation = str(parameter.annotation)
    return "PathLike" not in annotation and (text.endswith(".npy") or "Callable" in annotation)


def _literal(text: str) -> Any:
    """Convert a text to a number, a list or a constant; otherwise return the text itself."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text[:1] in (*_OPENING, "'", '"'):
            raise ValueError(
                f"{text!r} cannot be read: write a list such as [[5,6],[8,8]], and numbers with a "
                'unit in quotes, such as ("0 mrad","0 mrad")'
            ) from None
        return text


def _load(name: str) -> np.ndarray[Any, Any]:
    """Return the array in an .npy file."""
    try:
        return read_npy(name)
    except OSError as error:
        raise ValueError(str(error)) from None


def _function(text: str) -> Any:
    """Return the function for ``module:name`` or ``file.py:name``."""
    place = split_place(text)
    if place is None or place[2]:
        raise ValueError(
            f"{text!r} is not a function: write numpy:max, or analysis.py:peak for your own file"
        )
    try:
        found = find_own(*place[:2])
    except ValueError as error:
        raise ValueError(f"{text!r} is not found: {error}") from None
    if not callable(found):
        raise ArgumentTypeError(f"{text!r} is not a function, but {found!r}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedUDF:
    """A UDF as typed after ``--udf``. Its parameters are known, but not all of its values."""

    text: str
    """The typed text."""
    name: str
    """The name of its results: the typed one, or that of the UDF, or the shape of a detector."""
    is_named: bool
    """Whether the name was typed, as in ``BF=disk:r=5``."""
    entry: Entry
    """The UDF."""
    settings: Mapping[str, str]
    """Texts of its parameters."""
    made: UDF | None = None
    """The UDF itself, if the user's code has made it."""

    @property
    def missing(self) -> list[str]:
        """The names of required parameters that are not typed."""
        if self.made is not None:
            return []
        named = self.entry.parameters.items()
        return [n for n, p in named if p.default is p.empty and n not in self.settings]

    @property
    def needs_files(self) -> bool:
        """Whether a value is in a file, or a function of the user."""
        entry = self.entry
        return any(_is_elsewhere(entry.parameter(n), text) for n, text in self.settings.items())

    def make(self) -> UDF:
        """Return the UDF; raise BadParameter if a value is invalid. This can read files."""
        if self.made is not None:
            return self.made
        entry = self.entry
        if self.missing:
            missing = f"required parameters are missing: {', '.join(self.missing)}"
            raise self._refused(ValueError(missing))
        try:
            values = {n: read_value(entry.parameter(n), text) for n, text in self.settings.items()}
        except (UDFError, ValueError) as error:
            raise self._refused(error) from error
        try:
            made: UDF = as_own(entry.udf(**values))
        except (UDFError, ValueError) as error:
            raise self._refused(error) from error
        except Exception as error:
            if not entry.place:
                raise
            failure = own_failure(entry.udf.__name__, error)  # the user's code can raise anything
            raise self._refused(ValueError(failure)) from error
        return made

    def _refused(self, error: Exception) -> click.BadParameter:
        """Return the message about a text that is no UDF."""
        shape = shape_name(_split_name(_split_given_name(self.text)[1])[0])
        is_shape = shape in SHAPES and not self.entry.place
        help_with = shape if is_shape else self.entry.place or self.entry.name
        names = ", ".join(numbers_of(shape) if is_shape else self.entry.parameters)
        any_name = "parameters of any name" if self.entry.takes_any else "no parameters"
        takes = f"{help_with} takes {names or any_name}"
        more = f"{takes}; more with: udfdask udfs {help_with}"
        return click.BadParameter(f"{self.text!r}: {error} ({more})", param_hint="'--udf'")


def to_udf(typed_text: str) -> TypedUDF:
    """Convert the text after ``--udf``: ``com:cy=64,cx=64``, ``BF=disk:r=5``, ``mine.py:Peak:r=5``.

    Files that the text names are not read yet, but a module or file with a class is imported. Raise
    BadParameter if it can never be a UDF.
    """
    given, text = _split_given_name(typed_text)
    try:
        own = find_own_entry(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}", param_hint="'--udf'") from error
    name, rest = _split_name(text)
    entry, made = find_entry(name), None
    if own is not None:
        entry, rest, made = own
    if entry is None:
        raise click.BadParameter(unknown(name))
    shape = shape_name(name)
    is_shape = own is None and shape in SHAPES
    if own is None and entry.name == DETECTOR and not is_shape and not rest.strip():
        raise click.BadParameter(
            f"{typed_text!r} names no detector: write its shape and its numbers, such as "
            "--udf ring:ri=10,ro=20",
            param_hint="'--udf'",
        )
    typed = TypedUDF(
        text=typed_text,
        name=given or (shape if is_shape else entry.name),
        is_named=bool(given),
        entry=entry,
        settings={},
        made=made,
    )
    try:
        settings = _settings(entry, rest, {"shape": shape} if is_shape else {}, made is not None)
    except ValueError as error:
        raise typed._refused(error) from error
    typed = replace(typed, settings=settings)
    if typed.missing or not typed.needs_files:
        typed.make()  # a wrong value is reported before any file is read
    return typed


def find_entry(name: str) -> Entry | None:
    """Return the UDF for a typed name, or for a shape of a detector; None if there is none."""
    return CATALOG.get(DETECTOR if shape_name(name) in SHAPES else plain_name(name))


def find_own_entry(text: str) -> tuple[Entry, str, UDF | None] | None:
    """Return a UDF of the user, the rest of the text, and the UDF itself if the code has made it.

    Return None if the text is not ``module:Class`` or ``file.py:Class``; raise ValueError if there
    is no such UDF.
    """
    found = split_place(text)
    if found is None or find_entry(_split_name(text)[0]) is not None:
        return None
    place, name, rest = found
    try:
        udf = find_own(place, name)
    except ValueError as error:
        # a misspelled name of a ready-made UDF has the same form
        near = "" if place.endswith(".py") else _did_you_mean(plain_name(place), (*CATALOG,))
        raise ValueError(f"{error}{near}") from error.__cause__
    if udf_name(udf) is None:
        use = f": to call it with each frame, write auto:{place}:{name}"
        raise ValueError(
            f"{name!r} in {place} is not a UDF, but {in_words(udf)}"
            + (use if inspect.isroutine(udf) else "")
        )
    made: UDF | None = None if inspect.isclass(udf) else as_own(udf)
    cls: Any = udf if inspect.isclass(udf) else type(udf)
    return Entry(name=name_of_class(cls.__name__), udf=cls, place=f"{place}:{name}"), rest, made


def shape_name(name: str) -> str:
    """Return the shape of a detector for ``Disk``, ``disc`` and the like."""
    return plain_shape(name)


def unknown(name: str) -> str:
    """Return the message for an unknown UDF, with the names that can be meant."""
    if name.endswith(".py"):
        return without_a_name(name)
    names = ", ".join(map(repr, CATALOG))
    return f"{name!r} is not one of {names}{_did_you_mean(plain_name(name), (*CATALOG, *SHAPES))}"


def _did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Return a question with the known names that are most similar to a name, if there are any."""
    near = difflib.get_close_matches(name, known, n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _split_name(text: str) -> tuple[str, str]:
    """Split ``com:r=5`` or ``disk,r=5`` into the name and the rest."""
    found = re.match(r"\s*([^:,]*?)\s*(?:[:,]|$)", text)
    assert found is not None  # the pattern matches every text
    return found[1], text[found.end() :]


def _split_given_name(text: str) -> tuple[str, str]:
    """Split ``BF=disk:r=5`` into the name of the results and the rest; the name can be empty."""
    found = re.match(r"\s*([A-Za-z_]\w*)\s*=\s*(?=[A-Za-z_./~])", text)
    return ("", text) if found is None else (found[1], text[found.end() :])


def _settings(entry: Entry, text: str, known: dict[str, str], is_made: bool) -> dict[str, str]:
    """Return the texts of all parameters by name; raise ValueError if the names are wrong."""
    if is_made:
        if text.strip():
            raise ValueError("it is a UDF that has its parameters, so it takes none here")
        return {}
    parameters = entry.parameters
    unnamed, named = split_settings(text)
    ordered = [p for p in parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    free = [p.name for p in ordered if p.name not in known]
    if len(unnamed) > len(free):
        raise ValueError(f"{unnamed[len(free)]!r} has no name: write parameter=value")
    typed = {**known, **dict(zip(free, unnamed, strict=False))}
    twice = sorted(set(typed) & set(named))
    if twice:
        raise ValueError(f"{twice[0]!r} is given twice, as {typed[twice[0]]!r} without its name")
    typed.update(named)
    for name in typed:
        if name not in parameters and not entry.takes_any:
            near = _did_you_mean(name, tuple(parameters))
            raise ValueError(f"there is no parameter {name!r}{near}")
    if entry.name == DETECTOR and not entry.place and "shape" in typed:
        typed["shape"] = shape_name(typed["shape"])
    return typed
