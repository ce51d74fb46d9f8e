"""What the author of a UDF sees: the base class, its buffers, parameters and aux data."""

from udfdask.udf.base import UDF, UDFMethod

__all__ = ["UDF", "UDFMethod"]
