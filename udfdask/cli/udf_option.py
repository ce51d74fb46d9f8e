"""Make a UDF from the text after ``--udf``; the command `udfdask udfs` lists those there are."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import operator
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args

import click
import cloudpickle

from udfdask import analyses, udfs
from udfdask.errors import UDFError
from udfdask.geometry.labels import did_you_mean
from udfdask.io.memmap import read_npy
from udfdask.masks import DiskTemplate
from udfdask.results.named_results import name_of_class
from udfdask.udf import UDF
from udfdask.udf.libertem_udfs import as_own, udf_name
from udfdask.udfs import VirtualDetectorUDF
from udfdask.udfs.shared.detector_shapes import DetectorShape, plain_shape

# the shapes of detectors, which can be typed like names of UDFs
SHAPES: tuple[str, ...] = get_args(DetectorShape)

# `mine.py:Peak:r=3`: a file or module, a name, and the rest
_PLACE = re.compile(r"\s*(.+?\.py|[\w.]+):([A-Za-z_][\w.]*)\s*(?:[:,](.*)|$)", re.DOTALL)

_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "none": None}
_CONSTANTS |= {text: float(text) for text in ("inf", "-inf", "nan")}


_READY_MADE = {name: getattr(room, name) for room in (udfs, analyses) for name in room.__all__}
CATALOG = {
    name_of_class(name): _READY_MADE[name]
    for name in sorted(_READY_MADE, key=name_of_class)
    if inspect.isclass(_READY_MADE[name]) and issubclass(_READY_MADE[name], UDF)
}
"""All ready-made UDFs by name."""


class TypedUDF(NamedTuple):
    """A UDF that was typed after ``--udf``, and whether the name of its results was, too."""

    name: str
    is_named: bool
    udf: UDF


def to_udf(text: str) -> TypedUDF:
    """Make the UDF of ``com:cy=64,cx=64``, ``BF=disk:r=5`` or ``mine.py:Peak:r=5``."""
    given = re.match(r"\s*([A-Za-z_]\w*)\s*=\s*(?=[A-Za-z_./~])", text)
    try:
        name, found, settings = find_udf(text[given.end() :] if given else text)
        udf = _make(name, found, settings)
    except (UDFError, ValueError, OSError) as error:
        raise click.BadParameter(f"{text!r}: {error}", param_hint="'--udf'") from error
    return TypedUDF(given[1] if given else name, given is not None, udf)


def find_udf(text: str) -> tuple[str, Any, str]:
    """Return the name of results, the class or the UDF itself, and the text of its parameters."""
    name, _, settings = (part.strip() for part in text.partition(":"))
    if (shape := plain_shape(name)) in SHAPES:
        settings = ",".join(filter(None, (f"shape={shape}", settings)))
        return str(shape), VirtualDetectorUDF, settings
    plain = re.sub(r"[-_ ]", "", name).lower().removesuffix("udf")
    if plain in CATALOG:
        return plain, CATALOG[plain], settings
    place = _PLACE.fullmatch(text)
    if place is None:
        near = did_you_mean(plain, (*CATALOG, *SHAPES))
        raise ValueError(f"{name!r} is not one of {', '.join(CATALOG)}{near}")
    found = _find_own(place[1], place[2])
    called = udf_name(found)
    if called is None:
        raise ValueError(
            f"{place[2]} in {place[1]} is not a UDF; a function of a frame is called by "
            f"auto:f={place[1]}:{place[2]}"
        )
    return name_of_class(called), found, place[3] or ""


def _make(name: str, found: Any, settings: str) -> UDF:
    """Return the UDF with these parameters; raise ValueError if its constructor lacks them."""
    if not inspect.isclass(found):
        if settings:
            raise ValueError("it is a UDF that has its parameters, so it takes none here")
        return as_own(found)  # type: ignore[no-any-return]
    signature = inspect.signature(found)
    values = read_settings(settings)
    try:
        signature.bind(**values)
    except TypeError as error:
        names = ", ".join(signature.parameters) or "no parameters"
        raise ValueError(f"{error} ({name} takes {names})") from None
    return as_own(found(**values))  # type: ignore[no-any-return]


def read_settings(text: str) -> dict[str, Any]:
    """Return the values of ``r=3,peaks=[[1,2]]`` by their names."""
    values: dict[str, Any] = {}
    # a comma within brackets or quotes is not before another parameter
    for part in re.split(r",(?=\s*[^\W\d]\w*\s*=)", text) if text.strip() else ():
        name, equals, written = (each.strip() for each in part.partition("="))
        if not (equals and name.isidentifier()):
            raise ValueError(f"{part.strip()!r} has no name: write parameter=value")
        if name in values:
            raise ValueError(f"{name!r} is given twice")
        values[name] = _read_value(name, written)
    return values


def _read_value(name: str, text: str) -> Any:
    """Convert the text for a parameter: a number, constant, list, array, function, or the text."""
    if name == "filename":  # a file that the UDF writes, such as RecordUDF
        return text
    if text.endswith(".npy"):
        return read_npy(text)
    if place := _PLACE.fullmatch(text):
        return _find_own(place[1], place[2])
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    value: Any = text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text.startswith(("[", "(", "{")):
            message = f"{text!r} cannot be read: write a list such as [[5,6],[8,8]]"
            raise ValueError(message) from None
    is_radius = name == "template" and isinstance(value, int | float | str)
    return DiskTemplate(radius=value) if is_radius else value


def _find_own(place: str, name: str) -> Any:
    try:
        return operator.attrgetter(name)(_module(place, Path.cwd()))
    except AttributeError as error:
        raise ValueError(str(error)) from error


@functools.cache
def _module(place: str, here: Path) -> ModuleType:
    """Import a module by its name, or run a file as a module; other files of its folder come first.

    Its objects are pickled by value, so that they arrive on workers that cannot import it.
    """
    is_file = place.endswith(".py")
    path = here / Path(place).expanduser()
    if is_file and not path.is_file():
        raise ValueError(f"there is no file {place}")
    folder = path.parent if is_file else here
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        module = _run(path) if is_file else importlib.import_module(place)
    except Exception as error:  # whatever the user's code raises
        lines = "".join(traceback.format_exception(error, limit=-1)[1:]).rstrip()
        raise ValueError(f"{place} cannot be imported:\n{lines}") from error
    for name in {*(sys.modules.keys() - before), module.__name__}:
        file = Path(getattr(sys.modules[name], "__file__", None) or "/")
        if file.is_relative_to(folder) and not {"site-packages", "dist-packages"} & {*file.parts}:
            cloudpickle.register_pickle_by_value(sys.modules[name])
    return module


def _run(path: Path) -> ModuleType:
    """Run a file as a module; its name is not that of a module that others may import."""
    spec = importlib.util.spec_from_file_location(f"_own_{path.stem}", path)
    assert spec is not None  # a name that ends in .py always has a spec
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@click.command("udfs", short_help="List the ready-made UDFs, or describe one.")
@click.argument("name", required=False)
def udfs_command(name: str | None) -> None:
    """List the ready-made UDFs, or describe the UDF called NAME: parameters and results.

    \b
    udfdask udfs
    udfdask udfs com
    udfdask udfs mine.py:Peak
    """  # noqa: D301, click wants the character
    if name is None:
        width = max(map(len, CATALOG))
        for each, cls in CATALOG.items():
            click.echo(f"{each.ljust(width)}  {inspect.getdoc(cls)}".partition("\n")[0])
        return
    try:
        called, found, _ = find_udf(name)
    except ValueError as error:
        raise click.BadParameter(f"{name!r}: {error}", param_hint="NAME") from error
    described = found if inspect.isclass(found) else type(found)
    parameters = ", ".join(inspect.signature(described).parameters)
    click.echo(f"{called}: {parameters}\n\n{inspect.cleandoc(described.__doc__ or '')}".rstrip())
