"""The error for a package that an extra of udfdask would have installed."""

from __future__ import annotations


def missing_package(package: str, *, purpose: str, extra: str = "io") -> ImportError:
    """Take the name of a package that cannot be imported; return an error that says what to do."""
    return ImportError(
        f'{purpose} needs {package}, which is not installed: pip install "udfdask[{extra}]"',
        name=package,
    )
