"""Create, find and read races on disk: each has a folder and in it a journal, which is the truth."""

import os
from datetime import datetime

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.values.ulid import is_ulid
from agent_relay.race._events import RaceBegun, RaceBody, RaceEvent, parse_race_event
from agent_relay.race._fold import fold_race, fold_race_event
from agent_relay.race.model import Race
from agent_relay.store.journal import Journal, read_journal
from agent_relay.system.disk.files import cannot_write, sync_folder
from agent_relay.system.disk.folders import Folders, ensure_private

JOURNAL = "journal.jsonl"
_SPACED = (", ", ": ")


class RaceJournal:
    """The journal of the race in `folder`, owned by this process; `race` is its fold.

    Raises UntrustedDataError if a line cannot be trusted, StaleOwnerError if another process owns it,
    RelayError if it cannot be opened.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._journal = Journal(os.path.join(folder, JOURNAL), parse_race_event, separators=_SPACED)
        try:
            self.race: Race | None = fold_race(self._journal.events)
        except RelayError:
            self._journal.close()
            raise

    def append(self, body: RaceBody, *, at: datetime) -> Race:
        """Append `body`, durably, and return the race after it. Raise RelayError, with nothing changed."""
        event = RaceEvent(len(self._journal.events) + 1, at, body)
        # Folded before it is written: an impossible event must be loud here, not on every later start.
        folded = fold_race_event(self.race, event)
        self._journal.append(event, durable=True)
        self.race = folded
        return folded

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._journal.close()


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
    return fold_race(read_journal(os.path.join(folder, JOURNAL), parse_race_event))


def list_races(folders: Folders) -> list[str]:
    """Return the ids of all races, newest first."""
    try:
        names = os.listdir(folders.races)
    except OSError:
        return []
    return sorted((name for name in names if is_ulid(name)), reverse=True)


def find_race(folders: Folders, text: str, *, root: str) -> tuple[str, Race]:
    """Return folder and race whose id begins or ends with `text`; for an empty one the newest of `root`.

    Raise WrongUseError for none or several.
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
        what = f"no race is named {text[:40]!r}" if text else f"there is no race in {root}"
        raise WrongUseError(what, hint="See: agent-relay race list")
    if wanted and len(found) > 1:
        raise WrongUseError(f"{len(found)} races are named {text[:40]!r}", hint="See: agent-relay race list")
    return found[0]
