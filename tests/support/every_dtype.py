"""Data of every dtype that kernels know, and more, that reach the ends of their range."""

import numpy as np

KNOWN = "b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16".split()
FOREIGN = ["g", ">u2", ">i2", ">u4", ">i4", ">u8", ">i8", ">f2", ">f4", ">f8", ">c8", ">c16"]
"""Long doubles, which NumPy adds up, and values of the other byte order."""


def sample(dtype, shape, seed=0):
    """Random values: integers of the whole range, others within -1000 and 1000."""
    dt, rng = np.dtype(dtype), np.random.default_rng(seed)
    if dt.kind == "b":
        return rng.random(shape) < 0.5
    if dt.kind in "iu":
        limits = np.iinfo(dt)
        values = rng.integers(limits.min, limits.max, shape, dt.newbyteorder("="), endpoint=True)
        ends = rng.random(shape)
        values[ends < 0.1], values[ends > 0.9] = limits.min, limits.max
        return values.astype(dt)
    values = rng.uniform(-1000, 1000, shape)
    return (values + 1j * rng.uniform(-9, 9, shape) if dt.kind == "c" else values).astype(dt)


def summable(dtype, shape, times=1):
    """As `sample`, but sums of all values fit 64 bits, also if each is multiplied by `times`."""
    values = sample(dtype, shape)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        values >>= (times * values.size).bit_length()
    return values


def total_dtype(dtype):
    kind = np.dtype(dtype).kind
    natural = np.dtype({"u": "u8", "b": "i8", "i": "i8", "f": "f8", "c": "c16"}[kind])
    return np.promote_types(natural, np.dtype(dtype)) if kind in "fc" else natural
