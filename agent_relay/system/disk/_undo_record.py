"""The record on disk of a change of several files, so that an interrupted change can be undone."""

import contextlib
import json
import os

import msgspec

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.values import replace
from agent_relay.system.disk.files import cannot_write, read_bounded, sync_folder, write_atomic

_LIMIT_BYTES = 256 << 20


class UndoStep(msgspec.Struct, frozen=True):
    """One file: what was at `path` and what shall be, each as `describe_file` returns it, empty for nothing.

    Until all is done its new contents are at `staged` and its old ones at `old`. All names are relative.
    """

    path: str
    before: str
    after: str
    staged: str
    old: str


class ChangeRecord(msgspec.Struct, frozen=True):
    """A change of the files of folder `root`.

    `folders` are created for it, the outermost first. `emptied` are removed to make room for files, the
    innermost first, each with its mode. With `is_done` every step is done, and only old contents are left to
    remove.
    """

    root: str
    steps: tuple[UndoStep, ...]
    folders: tuple[str, ...]
    emptied: tuple[tuple[str, int], ...]
    is_done: bool = False

    def locate(self, name: str) -> str:
        """Return the absolute path of a relative name."""
        return os.path.join(self.root, name)

    def finish(self) -> "ChangeRecord":
        """Return the same change, marked as done."""
        return replace(self, is_done=True)


def write_record(path: str, record: ChangeRecord) -> None:
    """Write the record to `path`, so that it survives a power cut. Raise RelayError."""
    # ASCII with escapes: names may hold bytes that are no text.
    write_atomic(path, json.dumps(msgspec.to_builtins(record)).encode("ascii"))


def read_record(path: str) -> ChangeRecord | None:
    """Return the record at `path`; `None` for no file. Raise UntrustedDataError if it is not one of ours."""
    try:
        data = json.loads(read_bounded(path, limit_bytes=_LIMIT_BYTES))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        data = None
    try:
        record = ChangeRecord(
            root=data["root"],
            steps=tuple(UndoStep(**step) for step in data["steps"]),
            folders=tuple(data["folders"]),
            emptied=tuple((folder, mode) for folder, mode in data["emptied"]),
            is_done=data["is_done"],
        )
        is_ours = _is_ours(record)
    except (KeyError, TypeError, ValueError):
        is_ours = False
    if not is_ours:
        raise UntrustedDataError(
            f"{path} is not a record of an interrupted change",
            hint="Look at the files it speaks of, then remove it.",
        )
    return record


def _is_ours(record: ChangeRecord) -> bool:
    """Check the types of everything in the record, and that its names can be names of files."""
    texts = [text for step in record.steps for text in (step.before, step.after)]
    names = [name for step in record.steps for name in (step.path, step.staged, step.old)]
    names += [record.root, *record.folders, *(folder for folder, _ in record.emptied)]
    return (
        all(isinstance(text, str) for text in (*texts, *names))
        and all(isinstance(mode, int) for _, mode in record.emptied)
        and isinstance(record.is_done, bool)
        and not any(b"\0" in os.fsencode(name) for name in names)
    )


def remove_record(path: str) -> None:
    """Remove the record of a change that is over. Raise RelayError."""
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            sync_folder(os.path.dirname(path))
    except OSError as error:
        raise cannot_write(path, error) from error
