"""What a check raises, and exceptions of a run put into words."""

from __future__ import annotations

from udfdask.errors import UDFError
from udfdask.udf import UDF


class UDFCheckError(AssertionError):
    """A UDF breaks a law that `check_udf` knows; the message says which one, and where.

    Attributes
    ----------
    law : str
        Name of the law, one of those that `check_udf` takes as `skip`.

    Examples
    --------
    >>> from udfdask.testing import UDFCheckError
    >>> issubclass(UDFCheckError, AssertionError)
    True
    """

    law: str = ""


def in_words(error: Exception, udf: UDF) -> str:
    """Return what an exception out of a run says about a UDF."""
    if _is_read_only(error) and not udf.writable_input:
        method = udf.get_method().value
        return (
            f"process_{method} writes into its input: copy it or set writable_input = True "
            f"({error})"
        )
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = str(error) if isinstance(error, UDFError) else f"{type(error).__name__}: {error}"
    return f"{text} ({notes})" if notes else text


def _is_read_only(error: Exception) -> bool:
    """Return whether somebody tried to write to a read-only array."""
    text = str(error)
    return isinstance(error, (ValueError, TypeError, RuntimeError)) and (
        "read-only" in text or "readonly" in text or "not writ" in text
    )
