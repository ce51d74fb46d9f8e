"""Say with the words of the command line what messages say with the names of Python."""

from __future__ import annotations

import re
from collections.abc import Callable

from udfdask.cli.axes_option import EXAMPLE
from udfdask.cli.udf_option import CATALOG

_EVERYWHERE = "nav_shape|sig_shape|sig_dims|sync_offset|max_memory|merge_small"
"""Names of arguments that can mean nothing else."""

_WITH_SIGN = f"{_EVERYWHERE}|roi|chunks|dataset|scheduler"
"""Names of arguments that mean an option if "=" follows."""

_START, _END = r"(?<![\w./\\-])", r"(?![\w/\\]|\.\w)"  # not a part of the name of a file


def _sizes(match: re.Match[str]) -> str:
    """Return sizes as they are typed: ``4,4,-1,-1``."""
    return ",".join(re.findall(r"-?\d+", match[match.lastindex or 0]))


def _option(name: str) -> str:
    """Return the option for an argument."""
    return f"--{name.replace('_', '-')}"


def _udf_name(match: re.Match[str]) -> str:
    """Return the name of a ready-made UDF for its class."""
    return match[1].lower() if match[1].lower() in CATALOG else match[0]


_REPLACED: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\(overwrite=True, on the command line ([^)]*)\)", r"(\1)"),
    (r", or array\.rechunk\((?:\{[-\d:, ]+\}|\([-\d, ]+\))\)", ""),
    (r"array\.rechunk\(\(([-\d, ]+)\)\)", lambda m: f"--chunks {_sizes(m)}"),
    (
        r"chunks=\(([-\d, ]+)\) where the array is made or the file is opened",
        lambda m: f"--chunks {_sizes(m)}",
    ),
    (r"give center=find_center\(pattern\); center='middle'", "type --center find; --center middle"),
    (r"\b(r|ri|ro|rad_in|rad_out|start|stop|width|height)='([-+.\w]+) ([^\s\d']+)'", r"\1=\2\3"),
    (r"\broi=np\.isfinite\(shifts\)\.all\(axis=-1\)", "--roi"),
    (rf"{_START}descan(?= (?:has|needs|takes) )", "--descan"),
    (r"array\[:(\d+)\]", r"--roi 0:\1"),
    (r"dask\.config\.set\(num_workers=(\d+)\)", r"DASK_NUM_WORKERS=\1 in the environment"),
    (
        r"dask\.config\.set\(\{'udfdask\.worker-threads': (\d+)\}\)",
        r"DASK_UDFDASK__WORKER_THREADS=\1 in the environment",
    ),
    (
        r"axes=\[\.\.\.\] with one udfdask\.Axis\(.*?\) for each dimension.*",
        f"--axes {EXAMPLE}",
    ),
    (r" \(Axis\.to_pixels converts from units\)", ""),
    (r"split_every=(\d+)", r"DASK_UDFDASK__SPLIT_EVERY=\1 in the environment"),
    (
        rf"{_START}(nav_shape|sig_shape|chunks)=\(([-\d, ]+)\)",
        lambda m: f"{_option(m[1])} {_sizes(m)}",
    ),
    (rf"{_START}({_WITH_SIGN})=(?=[\s,.;:)]|$)", lambda m: _option(m[1])),
    (rf"{_START}({_WITH_SIGN})=", lambda m: f"{_option(m[1])} "),
    (rf"{_START}({_EVERYWHERE})\b{_END}", lambda m: _option(m[1])),
    (rf"{_START}([A-Z]\w*)UDF\b{_END}", _udf_name),
)

_OF_RAW_FILES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (rf"{_START}(dtype|offset)=", lambda m: f"{_option(m[1])} "),
    (rf"{_START}(?<!the )(dtype|offset)\b{_END}", lambda m: _option(m[1])),
)
"""Names that mean an option in messages about raw files, and elsewhere also parameters of UDFs."""


def in_typed_words(text: str) -> str:
    """Return a message with options in place of arguments, and names of UDFs in place of classes.

    Parameters
    ----------
    text : str
        A message for Python users.

    Returns
    -------
    str
        The same message for users of the command line.

    Examples
    --------
    >>> from udfdask.cli.words import in_typed_words
    >>> in_typed_words("sig_dims must be from 1 to 4; array.rechunk((4, 4, -1, -1)) helps SumUDF")
    '--sig-dims must be from 1 to 4; --chunks 4,4,-1,-1 helps sum'
    """
    rules = _REPLACED
    if re.search(r"\b(nav_shape|sig_shape)\b", text):
        rules = (*rules, *_OF_RAW_FILES)
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text
