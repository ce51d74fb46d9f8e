"""Names of parameter sets that are the same in each process, so that two processes share tests."""

import re


def without_address(value):
    """Return a value as text, without the addresses of functions and objects in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
