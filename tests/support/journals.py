"""Sessions as they stand on disk, written without a daemon."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent_relay.domain.events.session import (
    Body,
    LegEnded,
    LegReady,
    LegStarting,
    SessionCreated,
    SessionEnded,
)
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal

AT = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
LEG = "01JE0000000000000000000000"


def write_session(
    root: Path, session: str, *, index: Path | None, ended: bool = False, task: str = "mow the lawn"
) -> Path:
    """The folder of a session of one leg in `root`, ready or ended; named by `index`, if one is given."""
    folder = Path(make_session_folder(str(root), session))
    bodies: list[Body] = [
        SessionCreated(session, str(root), str(root), ("demo", "understudy"), task),
        LegStarting(LEG, "demo", 1),
        LegReady(LEG),
    ]
    if ended:
        bodies += [LegEnded(LEG, "exited", 0), SessionEnded("the agent was left")]
    with closing(SessionJournal(str(folder / "journal.jsonl"))) as journal:
        for count, body in enumerate(bodies):
            generation = min(count, 1)
            journal.append(body, at=AT + timedelta(seconds=count), generation=generation, durable=False)
    if index is not None:
        write_entry(str(index), session, root=str(root), cwd=str(root))
    return folder
