"""A file or folder that is written under another name and then renamed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Take a path; give one beside it to write to, and rename that when all went well."""
    # Beside it, because only on the same disk is renaming one step.
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield scratch / "new"
        if target.exists():
            target.rename(scratch / "old")
        try:
            (scratch / "new").rename(target)
        except OSError:
            if (scratch / "old").exists():
                (scratch / "old").rename(target)
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
