"""Eight numbers of a kernel, written to an array that tests can look at."""

from numba import njit


@njit
def write_eight(flat, place, numbers):
    for k in range(len(numbers)):
        flat[place + k] = numbers[k]
