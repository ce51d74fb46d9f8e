"""Define the interface for authors of UDFs: base class, buffers, parameters, aux data."""

from udfdask.udf.base import UDF
from udfdask.udf.processing import UDFMethod

__all__ = ["UDF", "UDFMethod"]
