"""A journal: a folder with the records of one run, which refuses the records of another run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from udfdask.errors import ArgumentValueError, JournalError
from udfdask.records.folder import RecordFolder
from udfdask.records.own_folder import check_folder
from udfdask.writing.renaming import flush_folder

try:
    import fcntl
except ImportError:  # Windows: two processes with one journal are not noticed
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
_LOCK = "lock"
_RECORDS = "records"
_FORMAT = "1"

EVERYTHING = "everything"
UDFS = "UDFs"

Fields = dict[str, str]
"""What a run is, as short texts by what they describe."""


@dataclass(frozen=True, slots=True)
class Journal:
    """An open journal: no other process of this machine has it open."""

    path: Path
    """Absolute path of the folder."""

    @property
    def records(self) -> RecordFolder:
        """The folder of the records."""
        return RecordFolder(str(self.path / _RECORDS))

    def check(self, runs: Sequence[Fields]) -> None:
        """Raise if the journal belongs to other runs; a new journal belongs to these."""
        file = self.path / MANIFEST
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            known = content["format"] == _FORMAT
            before: list[Fields] = [{**fields} for fields in content["runs"]]
        except FileNotFoundError:
            self._start(runs)
            return
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(
                f"{file} is damaged or no manifest of a journal: use another folder, or remove "
                f"{self.path}"
            ) from error
        if not known:
            raise JournalError(
                f"{self.path} was written by another version of udfdask: use another folder, or "
                "remove it"
            )
        differences = _differences(before, runs)
        if differences:
            raise JournalError(
                f"{self.path} is the journal of another run:\n"
                + "\n".join(f"- {line}" for line in differences)
                + "\nRestore what was there before, use another journal, or remove this folder"
            )
        # it is missing if somebody began to remove the journal by hand
        (self.path / _RECORDS).mkdir(exist_ok=True)

    def check_place(self, stores: Iterable[Path]) -> None:
        """Raise if the journal is inside of a store that the data come from."""
        for store in stores:
            if self.path.resolve().is_relative_to(store.resolve()):
                if not (self.path / MANIFEST).exists():
                    self.remove()  # else the store would have files of others
                raise ArgumentValueError(
                    f"the journal {self.path} would be inside of {store}, which the data are read "
                    "from: choose another folder"
                )

    def _start(self, runs: Sequence[Fields]) -> None:
        """Write the manifest of a new journal."""
        records = self.path / _RECORDS
        records.mkdir(exist_ok=True)
        # records without a manifest: the journal was being removed when its process was killed
        self.records.remove(self.records.names())
        unfinished = self.path / f".{MANIFEST}"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "runs": list(runs)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path / MANIFEST)
        flush_folder(self.path)

    def remove(self) -> None:
        """Remove the journal; killed at any moment, the rest is a new journal."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / MANIFEST).unlink()
        shutil.rmtree(self.path, ignore_errors=True)


@contextmanager
def open_journal(path: str | os.PathLike[str]) -> Iterator[Journal]:
    """Open or make a journal; no other process can open it meanwhile.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `path` is not the path of a folder that is a journal, new or empty.
    JournalError
        If another process has the journal open.
    """
    # a journal that was being removed when its process was killed has any of these files
    folder = check_folder(path, "journal", "", {MANIFEST, f".{MANIFEST}", _LOCK, _RECORDS})
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalError(
                    f"{folder} is used by another process: wait for its end, or use another journal"
                ) from None
            except OSError:  # some network file systems have no locks
                pass
        journal = Journal(folder)
        journal.records.clean_up()
        yield journal
    finally:
        os.close(lock)


def remove_journal(path: str | os.PathLike[str]) -> None:
    """Remove a journal whose results are safe elsewhere."""
    with open_journal(path) as journal:
        journal.remove()


def has_records(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a journal with partial results."""
    try:
        return bool(Journal(Path(path)).records.names())
    except OSError:  # no folder, or no permission
        return False


def journal_beside(path: str | os.PathLike[str]) -> str:
    """Return the path of the journal of a file or store that is written."""
    return f"{os.fspath(path).rstrip(os.sep)}.journal"


def _differences(before: Sequence[Fields], now: Sequence[Fields]) -> list[str]:
    """Return a line for each field that differs."""
    if len(before) != len(now):
        return [f"number of runs: {len(before)} in the journal, now {len(now)}"]
    lines = []
    for k, (old, new) in enumerate(zip(before, now, strict=True)):
        prefix = f"run {k + 1}, " if len(now) > 1 else ""
        lines += [f"{prefix}{line}" for line in different_fields(old, new)]
    return lines


def different_fields(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each field of a run that differs.

    A value can end in a hash in brackets, which is not shown. The field "data: everything" sums up
    all fields of the topic "data": it is shown only if no other field of its topic differs.
    """
    different = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    if UDFS in different:  # the fields of each UDF would only repeat it
        different = [name for name in different if not name.startswith("UDF ")]
    for name in different:
        topic, _, rest = name.partition(": ")
        if rest == EVERYTHING:
            # a file that a UDF names changes the name of the UDF too
            causes = (f"{topic}: ", "file ")
            if any(n.startswith(causes) for n in different if n != name):
                continue
            name = topic  # noqa: PLW2901
        one, other = (
            _shown(fields.get(name, fields.get(f"{name}: {rest}"))) for fields in (old, new)
        )
        if one == other:
            yield f"{name}: {one} has changed"
        else:
            yield f"{name}: {one or 'nothing'} in the journal, now {other or 'nothing'}"


def _shown(value: str | None) -> str:
    """Return a value without its hash."""
    if value is None:
        return ""
    return value.rpartition(" [")[0] if value.endswith("]") and " [" in value else value
