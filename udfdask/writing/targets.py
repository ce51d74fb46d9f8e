"""Whether something may be written to a path: the one place that decides it, for all writers."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.writing.scratch import clean_up, scratch_for
from udfdask.writing.stores import foreign_entry, store_root

Identity = tuple[int, int]
"""Device and inode of a file or folder: equal for all its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of files or folders that are written."""

    words: str
    """What to call one."""
    begins: tuple[bytes, ...] = ()
    """What such a file may begin with; empty for folders."""
    elsewhere: str = ""
    """How to write such a thing where there is no local folder."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return not self.begins


NPY = Kind(words="an .npy file", begins=(b"\x93NUMPY",))
NPZ = Kind(words="an .npz file", begins=(b"PK\x03\x04", b"PK\x05\x06"))
PNG = Kind(words="a PNG file", begins=(b"\x89PNG\r\n\x1a\n",))
ZARR = Kind(
    words="a zarr store",
    elsewhere=": stores elsewhere are written by xarray, with result.to_xarray().to_zarr(...)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A place that has been checked, to which something may be written."""

    named: Path
    """The absolute path, as the user called it."""
    path: Path
    """The same with symbolic links followed: the file or folder that is made or replaced."""
    kind: Kind
    """What is written."""
    overwrite: bool
    """Whether one of the same kind may be replaced."""

    def check(self) -> None:
        """Raise if what is there now may not be replaced."""
        try:
            there = self.path.lstat()
        except FileNotFoundError:
            return
        self._check_kind(there)
        if not self.overwrite:
            raise FileExistsError(
                f"{self.named} is there already: choose another name, or ask for it to be "
                "overwritten (overwrite=True, on the command line --overwrite)"
            )
        # root may write anywhere, but has the permissions taken away for a reason, too
        if not there.st_mode & 0o222 or not os.access(self.path, os.W_OK):
            raise PermissionError(
                f"{self.named} is write-protected, so it is not replaced: choose another name, or "
                "allow to write to it"
            )

    def _check_kind(self, there: os.stat_result) -> None:
        """Raise unless something is of the kind that is written."""
        words = self.kind.words
        if stat.S_ISDIR(there.st_mode):
            if not self.kind.is_folder:
                raise FileExistsError(f"{self.named} is a folder: choose another name")
            if os.path.ismount(self.path) or self.path in (Path.cwd(), *Path.cwd().parents):
                raise FileExistsError(
                    f"{self.named} is the current folder, contains it, or is a disk of its own, so "
                    "it is not replaced: choose another name"
                )
            foreign = foreign_entry(self.path)
            if foreign == self.path:
                raise _other_kind(self.named, f"no zarr store, so it is not replaced by {words}")
            if foreign is not None:
                raise _other_kind(
                    self.named,
                    f"a zarr store that also holds {foreign.relative_to(self.path)}, which is no "
                    "part of it, so it is not replaced",
                )
        elif not stat.S_ISREG(there.st_mode):
            raise _other_kind(self.named, "neither a file nor a folder, so it is not replaced")
        elif self.kind.is_folder:
            raise _other_kind(self.named, f"no zarr store, so it is not replaced by {words}")
        elif there.st_size and not self._begin().startswith(self.kind.begins):
            raise _other_kind(self.named, f"not {words}, so it is not replaced by one")

    def _begin(self) -> bytes:
        """Return the first bytes of the file that is there."""
        with self.path.open("rb") as file:
            return file.read(max(map(len, self.kind.begins)))


def check_target(
    path: str | os.PathLike[str],
    kind: Kind,
    *,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Target:
    """Return the place at which a file or store can be written, or raise if it must not be.

    Something that is there is only replaced if that was asked for and it is of the same kind:
    a PNG file by a PNG file, a zarr store, with nothing else in it, by a zarr store. A source is
    never replaced, nor anything that contains it or lies in it. Whether the folder can be written
    to is tried; leftovers of dead writers to the same place are removed.

    Parameters
    ----------
    path : str or path-like
        Where to write; ``~`` is the home folder, symbolic links are followed.
    kind : Kind
        What is to be written.
    overwrite : bool
        Whether something of the same kind may be replaced.
    sources : sequence of str or path-like
        Files and stores that are read, and that must stay as they are.

    Returns
    -------
    Target
        The place, for `replacing`.

    Raises
    ------
    ArgumentTypeError
        If `path` is no path.
    ArgumentValueError
        If `path` is no local path, or it is a source, contains one, or lies in one.
    FileExistsError
        If there is something that may not, or must not, be replaced.
    FileNotFoundError, NotADirectoryError
        If there is no folder to write in.
    OSError
        If nothing can be written there: missing permissions, a read-only disk, too long a name.

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
        # by trying: permissions do not tell it on network disks, nor on Windows
        with scratch_for(real):
            clean_up(real)
        target = Target(named=named, path=real, kind=kind, overwrite=overwrite)
        target.check()
    except OSError as error:
        if error.errno is None:  # our own words
            raise
        raise type(error)(
            error.errno, f"{kind.words} cannot be written here: {error.strerror}", str(named)
        ) from error
    return target


def check_apart(targets: Sequence[Target]) -> None:
    """Raise if two of several targets are the same, or one lies in another.

    Parameters
    ----------
    targets : sequence of Target
        What one run is to write.

    Raises
    ------
    ArgumentValueError
        If two of them cannot both be written.
    """
    for one, other in itertools.permutations(targets, 2):
        # folded: where upper and lower case are one, the second would replace the first
        folded = [Path(str(target.path).casefold()) for target in (one, other)]
        if folded[0] in (folded[1], *folded[1].parents) or _same(one.path, other.path):
            raise ArgumentValueError(
                f"{one.named} and {other.named} cannot both be written: they are the same place, "
                "or one lies in the other. Choose different names"
            )


def _local_path(path: str | os.PathLike[str], kind: Kind) -> Path:
    """Take what a user gives as a path; return it absolute, or raise if it is no local path."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"{kind.words} is written to a path, such as 'results', but this is a "
            f"{type(path).__name__}: {path!r}{kind.elsewhere}"
        )
    if "://" in text:
        raise ArgumentValueError(f"{text} is no local path{kind.elsewhere or ': choose one'}")
    if not text.strip() or "\0" in text:
        raise ArgumentValueError(f"{text!r} is not a possible name: choose another one")
    if kind.is_folder and text.lower().rstrip("/").endswith(".zip"):
        raise ArgumentValueError(
            f"{text} would be a folder, but is called like a .zip file: choose another name, and "
            "zip the store later"
        )
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # ~somebody
        raise ArgumentValueError(f"{text} is no path: {error}") from error


def _check_sources(named: Path, target: Path, sources: Sequence[str | os.PathLike[str]]) -> None:
    """Raise if a target is a source, contains one, or lies in one."""
    if not sources:
        return
    # a link that leads to itself is there, and yet is nothing
    place, *around = _identities(target) or (None, *_above(target))
    for source in sources:
        root = store_root(Path(os.path.realpath(source)))
        identities = _identities(root)
        if not identities:  # it has gone
            continue
        read, *above = identities
        if read == place:
            what = "is the source of the data"
        elif place is not None and place in above:
            what = "contains the source of the data"
        elif read in around:
            what = "lies in the source of the data"
        else:
            continue
        raise ArgumentValueError(
            f"{named} {what}, {root}, which is never written to: choose another place"
        )


def _identities(path: Path) -> list[Identity]:
    """Return what identifies a path and all folders above it; nothing if there is no such path."""
    identity = _identity(path)
    return [] if identity is None else [identity, *_above(path)]


def _above(path: Path) -> Iterator[Identity]:
    """Return what identifies the folders above a path."""
    found = (_identity(folder) for folder in path.parents)
    return (identity for identity in found if identity is not None)


def _identity(path: Path) -> Identity | None:
    """Return what identifies a file or folder; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file or folder."""
    identity = _identity(one)
    return identity is not None and identity == _identity(other)


def _no_folder(named: Path, folder: Path) -> OSError:
    """Return an error that says what is missing."""
    if folder.exists():
        return NotADirectoryError(f"{folder} is no folder, so {named.name} cannot be written in it")
    return FileNotFoundError(f"there is no folder {folder} to write {named.name} in: make it first")


def _other_kind(named: Path, what: str) -> FileExistsError:
    """Return an error about something that is never replaced."""
    return FileExistsError(
        f"{named} is there already and is {what}: choose another name, or remove it yourself"
    )
