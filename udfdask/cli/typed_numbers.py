"""Show lengths in errors as they were typed: ``cy=5cm`` in place of ``cy='5 cm'``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from udfdask.errors import UDFError
from udfdask.geometry.units import Quantity
from udfdask.udf import UDF


@contextmanager
def typed_numbers(udfs: Iterable[UDF]) -> Iterator[None]:
    """Write the lengths in an error as the command line takes them."""
    try:
        yield
    except UDFError as error:
        if error.args:
            text = str(error.args[0])
            for udf in udfs:
                for value in udf._kwargs.values():
                    if isinstance(value, Quantity):
                        text = text.replace(repr(str(value)), _in_one(value))
            error.args = (text, *error.args[1:])
        raise


def _in_one(quantity: Quantity) -> str:
    """Return a quantity in one word: 5cm."""
    space = " " if quantity.unit[:1].isdigit() else ""
    return f"{quantity.value:g}{space}{quantity.unit}"
