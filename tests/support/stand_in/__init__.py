"""A stand-in for CuPy made of NumPy: code for a device runs without one, and its mistakes show.

It is as strict as CuPy where that matters: nothing becomes a NumPy array by itself, arrays of the
two do not mix, and a copy out of pinned memory happens when its stream is waited for.

dask takes an array for CuPy's if the name of its type contains "cupy": the name of this folder
must not.
"""

from stand_in.module import numpy_standing_in_for_cupy

__all__ = ["numpy_standing_in_for_cupy"]
