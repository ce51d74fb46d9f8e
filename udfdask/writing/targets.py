"""Decide for all writers whether udfdask can write to a path."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.writing.hidden import clean_up, hidden_folder
from udfdask.writing.stores import foreign_entry, store_root

Identity = tuple[int, int]
"""Device and inode of a file or folder, which are equal for all its names."""

_BEGIN = 1024
"""Number of bytes at the beginning of a file that show its kind; "<svg" comes after comments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file or folder that udfdask writes."""

    words: str
    """Name of the kind in messages."""
    first_bytes: tuple[bytes, ...] = ()
    """Possible first bytes of such a file; empty for folders and texts."""
    contained: bytes | None = None
    """What the beginning of a text file contains; None for folders and other files."""
    elsewhere: str = ""
    """Text for messages: how to write this kind to a place that is not a local folder."""

    @property
    def is_folder(self) -> bool:
        """Whether this kind is a folder."""
        return not self.first_bytes and self.contained is None

    def recognizes(self, begin: bytes) -> bool:
        """Return whether a file is of this kind.

        Parameters
        ----------
        begin : bytes
            The first bytes of the file, 1024 of them if there are as many.

        Returns
        -------
        bool
            True if it is; False for folders.

        Examples
        --------
        >>> from udfdask.writing import PNG, SVG
        >>> PNG.recognizes(b"notes"), SVG.recognizes(b"<?xml version='1.0'?><svg>")
        (False, True)
        """
        if self.contained is None:
            return begin.startswith(self.first_bytes)  # False for the empty tuple of a folder
        return b"\0" not in begin and self.contained in begin


NPY = Kind(words="an .npy file", first_bytes=(b"\x93NUMPY",))
NPZ = Kind(words="an .npz file", first_bytes=(b"PK\x03\x04", b"PK\x05\x06"))
PNG = Kind(words="a PNG file", first_bytes=(b"\x89PNG\r\n\x1a\n",))
PDF = Kind(words="a PDF file", first_bytes=(b"%PDF-",))
SVG = Kind(words="an SVG file", contained=b"<svg")
HDF5 = Kind(words="an HDF5 file", first_bytes=(b"\x89HDF\r\n\x1a\n",))
# little or big endian, each with 32-bit or 64-bit offsets
TIFF = Kind(words="a TIFF file", first_bytes=(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"))
ZARR = Kind(
    words="a zarr store",
    elsewhere=": to write a store elsewhere, use xarray: result.to_xarray().to_zarr(...)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A checked path that udfdask can write to."""

    named: Path
    """The absolute path, as given by the user."""
    path: Path
    """The path with symbolic links resolved: the file or folder to make or replace."""
    kind: Kind
    """The kind of file or folder to write."""
    overwrite: bool
    """Whether an existing target of the same kind can be replaced."""

    def check(self) -> None:
        """Raise if an existing target must not be replaced."""
        with contextlib.suppress(FileNotFoundError):
            self._check_existing(self.path.lstat())

    def _check_existing(self, status: os.stat_result) -> None:
        """Raise if an existing target, which has this status, must not be replaced."""
        self._check_kind(status)
        if not self.overwrite:
            raise FileExistsError(
                f"{self.named} already exists: choose another name, or overwrite it "
                "with overwrite=True (--overwrite for files of --out and --plot)"
            )
        # root can write anywhere, but a missing write permission is a clear intention
        if not status.st_mode & 0o222 or not os.access(self.path, os.W_OK):
            raise PermissionError(
                f"{self.named} is write-protected, so it is not replaced: choose another name, or "
                "add the write permission"
            )

    def _check_kind(self, status: os.stat_result) -> None:
        """Raise unless an existing target is of the kind to write."""
        words = self.kind.words
        if stat.S_ISDIR(status.st_mode):
            if not self.kind.is_folder:
                raise FileExistsError(f"{self.named} is a folder: choose another name")
            if os.path.ismount(self.path) or self.path in (Path.cwd(), *Path.cwd().parents):
                raise FileExistsError(
                    f"{self.named} is the current folder, contains it, or is a disk of its own, so "
                    "it is not replaced: choose another name"
                )
            foreign = foreign_entry(self.path)
            if foreign == self.path:
                raise _other_kind(self.named, f"not a zarr store, so it is not replaced by {words}")
            if foreign is not None:
                raise _other_kind(
                    self.named,
                    f"a zarr store that also contains {foreign.relative_to(self.path)}, which is "
                    "not part of it, so it is not replaced",
                )
        elif not stat.S_ISREG(status.st_mode):
            raise _other_kind(self.named, "neither a file nor a folder, so it is not replaced")
        elif self.kind.is_folder:
            raise _other_kind(self.named, f"not a zarr store, so it is not replaced by {words}")
        elif status.st_size and not self.kind.recognizes(self._first_bytes()):
            raise _other_kind(self.named, f"not {words}, so it is not replaced by {words}")

    def _first_bytes(self) -> bytes:
        """Return the first bytes of the existing file."""
        with self.path.open("rb") as file:
            return file.read(_BEGIN)


def check_target(
    path: str | os.PathLike[str],
    kind: Kind,
    *,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Target:
    """Return the checked target for a file or store; raise if udfdask must not write there.

    An existing target is only replaced with `overwrite`, and only by the same kind: a PNG file by
    a PNG file, a zarr store that contains nothing else by a zarr store. A source is never replaced,
    and neither is anything that contains it or is inside it. This function tests whether the folder
    is writable, and removes leftovers of dead writers to the same target.

    Parameters
    ----------
    path : str or path-like
        Path to write to; ``~`` is the home folder, symbolic links are followed.
    kind : Kind
        Kind of file or folder to write.
    overwrite : bool
        Whether an existing target of the same kind can be replaced.
    sources : sequence of str or path-like
        Input files and stores, which must not change.

    Returns
    -------
    Target
        The target, for `replacing`.

    Raises
    ------
    ArgumentTypeError
        If `path` is not a path.
    ArgumentValueError
        If `path` is not a local path; if it is a source, contains one, or is inside one.
    FileExistsError
        If there is an existing target that must not be replaced.
    FileNotFoundError, NotADirectoryError
        If the folder of the target does not exist.
    OSError
        If writing is impossible: missing permissions, a read-only disk, too long a name.

    Examples
    --------
    >>> from udfdask.writing import PNG, check_target
    >>> check_target("notes.png", PNG).path.name
    'notes.png'
    """
    named = _local_path(path, kind)
    real = Path(os.path.realpath(named))
    _check_sources(named, real, sources)
    if not real.name:
        raise FileExistsError(f"{named} is a folder: choose another name")
    try:
        if not real.parent.is_dir():
            raise _no_folder(named, real.parent)
        # test by writing, because permissions are not reliable on network disks and on Windows
        with hidden_folder(real):
            clean_up(real)
        target = Target(named=named, path=real, kind=kind, overwrite=overwrite)
        target.check()
    except OSError as error:
        if error.errno is None:  # our own message
            raise
        raise type(error)(
            error.errno, f"{kind.words} cannot be written here: {error.strerror}", str(named)
        ) from error
    return target


def check_apart(targets: Sequence[Target]) -> None:
    """Raise if two of several targets are the same, or one is inside another.

    Parameters
    ----------
    targets : sequence of Target
        All targets of one run.

    Raises
    ------
    ArgumentValueError
        If two of them cannot both be written.
    """
    for one, other in itertools.permutations(targets, 2):
        # compare in lower case: some file systems do not distinguish upper and lower case
        folded = [Path(str(target.path).casefold()) for target in (one, other)]
        if folded[0] in (folded[1], *folded[1].parents) or _same(one.path, other.path):
            raise ArgumentValueError(
                f"{one.named} and {other.named} cannot both be written: they are the same path, "
                "or one is inside the other. Choose different names"
            )


def _local_path(path: str | os.PathLike[str], kind: Kind) -> Path:
    """Return a user's path as an absolute path; raise if it is not a local path."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"the path of {kind.words} must be a string or path, such as 'results', but this is a "
            f"{type(path).__name__}: {path!r}{kind.elsewhere}"
        )
    if "://" in text:
        raise ArgumentValueError(
            f"{text} is not a local path{kind.elsewhere or ': choose a local path'}"
        )
    if not text.strip() or "\0" in text:
        raise ArgumentValueError(f"{text!r} is not a possible name: choose another one")
    if kind.is_folder and text.lower().rstrip("/").endswith(".zip"):
        raise ArgumentValueError(
            f"{text} would be a folder, but has the name of a .zip file: choose another name, and "
            "zip the store later"
        )
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # ~somebody
        raise ArgumentValueError(f"{text} is not a path: {error}") from error


def _check_sources(named: Path, target: Path, sources: Sequence[str | os.PathLike[str]]) -> None:
    """Raise if a target is a source, contains one, or is inside one."""
    if not sources:
        return
    # a symbolic link to itself exists, but has no identity
    place, *around = _identities(target) or (None, *_above(target))
    for source in sources:
        root = store_root(Path(os.path.realpath(source)))
        identities = _identities(root)
        if not identities:  # the source does not exist any more
            continue
        read, *above = identities
        if read == place:
            what = "is the source of the data"
        elif place is not None and place in above:
            what = "contains the source of the data"
        elif read in around:
            what = "is inside the source of the data"
        else:
            continue
        raise ArgumentValueError(
            f"{named} {what}, {root}, which udfdask never changes: choose another path"
        )


def _identities(path: Path) -> list[Identity]:
    """Return the identities of a path and all folders above it; an empty list without a path."""
    identity = _identity(path)
    return [] if identity is None else [identity, *_above(path)]


def _above(path: Path) -> Iterator[Identity]:
    """Return the identities of the folders above a path."""
    identities = map(_identity, path.parents)
    return (identity for identity in identities if identity is not None)


def _identity(path: Path) -> Identity | None:
    """Return the identity of a file or folder; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths refer to the same file or folder."""
    identity = _identity(one)
    return identity is not None and identity == _identity(other)


def _no_folder(named: Path, folder: Path) -> OSError:
    """Return an error that says which folder is missing."""
    if folder.exists():
        return NotADirectoryError(
            f"{folder} is not a folder, so {named.name} cannot be written into it"
        )
    return FileNotFoundError(
        f"there is no folder {folder} to write {named.name} into: create it first"
    )


def _other_kind(named: Path, what: str) -> FileExistsError:
    """Return an error about an existing target that is never replaced."""
    return FileExistsError(
        f"{named} already exists and is {what}: choose another name, or remove it yourself"
    )
