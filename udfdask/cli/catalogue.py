"""List the ready-made UDFs by their command-line names, with texts from their docstrings."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from udfdask import udfs
from udfdask.udf import UDF


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A ready-made UDF."""

    name: str
    """The name after ``--udf``: the class name in lower case, without UDF."""
    udf: type[UDF]
    """Its class."""

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The named parameters of the constructor."""
        found = inspect.signature(self.udf).parameters
        return {
            name: p
            for name, p in found.items()
            if p.kind is not p.VAR_KEYWORD and not name.startswith("_")
        }

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
        return self.name + (":" + ",".join(needed) if needed else "")

    @property
    def _docstring(self) -> str:
        return inspect.getdoc(self.udf) or ""


def _entries() -> dict[str, Entry]:
    """Return all ready-made UDFs by name."""
    classes = [getattr(udfs, name) for name in udfs.__all__]
    found = [c for c in classes if inspect.isclass(c) and issubclass(c, UDF)]
    names = {c.__name__.removesuffix("UDF").lower(): c for c in found}
    return {name: Entry(name=name, udf=names[name]) for name in sorted(names)}


CATALOGUE = _entries()
"""All ready-made UDFs by name."""


def plain_name(name: str) -> str:
    """Return the command-line name for ``radial-profile``, ``RadialProfileUDF`` and the like."""
    plain = re.sub(r"[-_ ]", "", name).lower()
    return plain if plain in CATALOGUE else plain.removesuffix("udf")
