"""Keep computed results that could not be written where the user wanted them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from udfdask.io.named_variables import axes_of_data, result_variables
from udfdask.io.npz_file import write_npz


def keep_results(
    error: Exception,
    path: str | os.PathLike[str],
    results: Mapping[str, Any],
    *,
    attrs: Mapping[str, str] | None,
) -> bool:
    """Save results that could not be written to a path in an .npz file elsewhere.

    The file is in a new folder next to the path, or in one for temporary files. A note of the error
    says where. Return False if neither takes the file.
    """
    if hasattr(error, "results_saved"):
        return True  # the complete file has got another name
    wanted = Path(path).expanduser().absolute()
    for folder in (wanted.parent, tempfile.gettempdir()):
        with suppress(Exception):  # what failed before may fail again
            # a folder of its own, which other users cannot read
            own = Path(tempfile.mkdtemp(prefix="udfdask-results-", dir=folder))
            try:
                # this format needs no package
                axes, variables = axes_of_data(results), result_variables(results)
                kept = write_npz(own / f"{wanted.stem}.npz", variables, axes=axes, attrs=attrs)
            except BaseException:
                own.rmdir()
                raise
            error.add_note(
                f"The results were computed and are saved in {kept}: udfdask.io.open_results opens "
                "it"
            )
            return True
    return False
