"""The only place that uses private parts of numba and llvmlite."""
