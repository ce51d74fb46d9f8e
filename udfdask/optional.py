"""The error for a package that an extra of udfdask would have installed."""

from __future__ import annotations


def missing_package(package: str, *, purpose: str, extra: str = "io") -> ImportError:
    """Take the name of a package that cannot be imported; return an error that says what to do."""
    return ImportError(
        f'{purpose} needs {package}, which is not installed: pip install "udfdask[{extra}]"',
        name=package,
    )


def outdated_package(package: str, version: str, *, needed: str, purpose: str) -> ImportError:
    """Take a package and the version that is too old; return an error that says what to do."""
    return ImportError(
        f"{purpose} needs {package}>={needed}, but {version} is installed: "
        f'pip install "{package}>={needed}"',
        name=package,
    )
