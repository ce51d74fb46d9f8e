"""Define the exception of a failed check, and describe exceptions of a run."""

from __future__ import annotations

from udfdask.errors import UDFError
from udfdask.udf import UDF


class UDFCheckError(AssertionError):
    """Raised if a UDF breaks a law of `check_udf`; the message says which law, and how.

    Attributes
    ----------
    law : str
        Name of the law, as in the argument `skip` of `check_udf`.

    Examples
    --------
    >>> from udfdask.testing import UDFCheckError
    >>> issubclass(UDFCheckError, AssertionError)
    True
    """

    law: str = ""


def in_words(error: Exception, udf: UDF) -> str:
    """Return the message for an exception that a run of a UDF raised."""
    if is_read_only(error) and not udf.writable_input:
        method = udf.get_method().value
        return (
            f"process_{method} writes into its input: copy it or set writable_input = True "
            f"({error})"
        )
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = str(error) if isinstance(error, UDFError) else f"{type(error).__name__}: {error}"
    return f"{text} ({notes})" if notes else text


def is_read_only(error: Exception) -> bool:
    """Return whether the error comes from writing to a read-only array."""
    text = str(error)
    return isinstance(error, (ValueError, TypeError, RuntimeError)) and (
        "read-only" in text or "readonly" in text or "not writ" in text
    )
