"""The dtype in which kernels take data."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.udf import UDF


def own_dtype(data: np.dtype[Any]) -> Any:
    """Return the preferred input dtype that leaves data as they are; float16 becomes float32."""
    return np.float32 if data.kind == "f" and data.itemsize == 2 else UDF.USE_NATIVE_DTYPE
