"""Create, find and read races on disk: each has a folder and in it a journal, which is the truth."""

import json
import os
from datetime import datetime

from agent_relay.domain.errors import RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.protocol.quick_json import parse_line
from agent_relay.domain.values.ulid import is_ulid
from agent_relay.race._events import RaceBegun, RaceBody, RaceEvent, parse_race_event, render_race_event
from agent_relay.race._fold import fold_race, fold_race_event
from agent_relay.race.model import Race
from agent_relay.store.append_only_file import AppendOnlyFile
from agent_relay.system.disk.files import cannot_write, read_bounded, sync_folder
from agent_relay.system.disk.folders import Folders, ensure_private

JOURNAL = "journal.jsonl"
_LIMIT_BYTES = 16 << 20


class RaceJournal:
    """The journal of the race in `folder`, owned by this process; `race` is its fold.

    Raises UntrustedDataError if a line cannot be trusted, StaleOwnerError if another process owns it,
    RelayError if it cannot be opened.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        path = os.path.join(folder, JOURNAL)
        self._lines = AppendOnlyFile(path, limit_bytes=_LIMIT_BYTES)
        try:
            self.race: Race | None = fold_race(_parse_lines(self._lines.found, path))
            self._lines.accept()
        except RelayError:
            self._lines.close()
            raise

    def append(self, body: RaceBody, *, at: datetime) -> Race:
        """Append `body`, durably, and return the race after it. Raise RelayError, with nothing changed."""
        number = self.race.number + 1 if self.race is not None else 1
        event = RaceEvent(number, at, body)
        # Folded before it is written: an impossible event must be loud here, not on every later start.
        folded = fold_race_event(self.race, event)
        self._lines.append(json.dumps(render_race_event(event)).encode() + b"\n", durable=True)
        self.race = folded
        return folded

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._lines.close()


def create_race(folders: Folders, begun: RaceBegun, *, at: datetime) -> RaceJournal:
    """Create a race's folder and journal with its first line. Raise RelayError on failure."""
    ensure_private(folders.state)
    races = ensure_private(folders.races)
    folder = ensure_private(os.path.join(races, begun.race))
    try:
        sync_folder(races)
    except OSError as error:
        raise cannot_write(folder, error) from error
    journal = RaceJournal(folder)
    try:
        journal.append(begun, at=at)
    except RelayError:
        journal.close()
        raise
    return journal


def read_race(folder: str) -> Race | None:
    """Read the race in `folder` without a lock; `None` if there is none or it never began.

    Raises UntrustedDataError if its journal cannot be trusted.
    """
    path = os.path.join(folder, JOURNAL)
    try:
        data = read_bounded(path, limit_bytes=_LIMIT_BYTES)
    except FileNotFoundError:
        return None
    return fold_race(_parse_lines(data[: data.rfind(b"\n") + 1], path))


def list_races(folders: Folders) -> list[str]:
    """Return the ids of all races, newest first."""
    try:
        names = os.listdir(folders.races)
    except OSError:
        return []
    return sorted((name for name in names if is_ulid(name)), reverse=True)


def find_race(folders: Folders, text: str, *, root: str) -> tuple[str, Race]:
    """Return folder and race whose id begins or ends with `text`; for an empty one the newest of `root`.

    Raises WrongUseError for none or several.
    """
    found: list[tuple[str, Race]] = []
    wanted = text.upper()
    for name in list_races(folders):
        if wanted and not (name.startswith(wanted) or name.endswith(wanted)):
            continue
        folder = os.path.join(folders.races, name)
        race = read_race(folder)
        if race is not None and (wanted or race.root == root):
            found.append((folder, race))
    if not found:
        what = f"no race is named {text[:40]!r}" if text else f"there is no race of {root}"
        raise WrongUseError(what, hint="See: agent-relay race list")
    if wanted and len(found) > 1:
        raise WrongUseError(f"{len(found)} races are named {text[:40]!r}", hint="See: agent-relay race list")
    return found[0]


def _parse_lines(data: bytes, path: str) -> list[RaceEvent]:
    events: list[RaceEvent] = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found = parse_line(line)
            event = parse_race_event(found if isinstance(found, dict) else {})
        except (ValueError, RecursionError):
            raise UntrustedDataError(f"line {number} of {path} is not JSON") from None
        except UntrustedDataError as error:
            raise UntrustedDataError(f"line {number} of {path}: {error.sentence}", hint=error.hint) from None
        if event.number != number:
            raise UntrustedDataError(f"line {number} of {path} says it is line {event.number}")
        events.append(event)
    return events
