"""A UDF after ``--udf``: its name, and its parameters behind a colon."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass
from typing import Any

import click

from udfdask.cli.catalogue import CATALOGUE, Entry, plain_name
from udfdask.cli.values import read_value, split_settings
from udfdask.errors import UDFError
from udfdask.udf import UDF


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedUDF:
    """A UDF that a user has asked for."""

    text: str
    """What was typed."""
    name: str
    """What its results are called."""
    udf: UDF
    """The UDF."""


class UDFType(click.ParamType[AskedUDF]):
    """A ready-made UDF: ``sum``, or ``com:cy=64,cx=64``."""

    name = "name[:parameter=value,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> AskedUDF:
        """Turn ``com:cy=64,cx=64`` into a UDF."""
        if isinstance(value, AskedUDF):
            return value
        name, _, settings = value.partition(":")
        entry = CATALOGUE.get(plain_name(name))
        if entry is None:
            self.fail(unknown(name), param, ctx)
        try:
            udf = _make(entry, settings)
        except (UDFError, ValueError) as error:
            self.fail(
                f"{value!r}: {error} ({_allowed(entry)}; more with: udfdask udfs {entry.name})",
                param,
                ctx,
            )
        return AskedUDF(text=value, name=entry.name, udf=udf)


def unknown(name: str) -> str:
    """Return that there is no such UDF, which ones there are, and which may have been meant."""
    names = ", ".join(map(repr, CATALOGUE))
    near = difflib.get_close_matches(plain_name(name), CATALOGUE, n=2)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{name!r} is not one of {names}{hint}"


def _make(entry: Entry, settings: str) -> UDF:
    """Return a UDF with the parameters typed; raise ValueError or UDFError if there is none."""
    parameters = entry.parameters
    unnamed, named = split_settings(settings)
    ordered = [p for p in parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(unnamed) > len(ordered):
        raise ValueError(f"{unnamed[len(ordered)]!r} has no name: write parameter=value")
    typed = dict(zip([p.name for p in ordered], unnamed, strict=False))
    twice = sorted(set(typed) & set(named))
    if twice:
        raise ValueError(f"{twice[0]!r} is given twice, as {typed[twice[0]]!r} without its name")
    typed.update(named)
    for name in typed:
        if name not in parameters:
            raise ValueError(f"there is no parameter {name!r}")
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in typed]
    if missing:
        raise ValueError(f"needed but missing: {', '.join(missing)}")
    return entry.udf(**{name: read_value(parameters[name], text) for name, text in typed.items()})


def _allowed(entry: Entry) -> str:
    """Return in words which parameters a UDF takes."""
    names = ", ".join(entry.parameters)
    return f"{entry.name} takes {names}" if names else f"{entry.name} takes no parameters"
