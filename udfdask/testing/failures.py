"""Define the exception of a failed check."""

from __future__ import annotations


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
