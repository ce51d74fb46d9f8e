"""The arithmetic of `kernels.cpu` for arrays on a CUDA device, written in CuPy.

The functions also accept NumPy arrays. Results are in the same memory as the arguments.
"""
