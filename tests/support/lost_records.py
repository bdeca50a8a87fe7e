"""Records that grow turn by turn under checkpoints, and are lost then."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from agent_relay.agents.catalog import read_catalog
from agent_relay.domain.facts import Facts
from agent_relay.domain.session import Leg, Session
from agent_relay.engine.publishing.checkpoint_building import CheckpointOrder, build_checkpoint
from agent_relay.engine.publishing.native_records import gather_facts
from agent_relay.redact.known_values import build_allow
from agent_relay.sources.transcript_reader import read_whole_facts
from agent_relay.store.checkpoints import add_checkpoint, replace_checkpoints
from agent_relay.store.project import make_session_folder
from agent_relay.system.disk.folders import get_folders

SESSION, LEG = "01JD0000000000000000000001", "01JE0000000000000000000001"
_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)


def lose(agent: str, path: str, root: str, *, most: int = 10) -> Facts:
    """What is known of the transcript at `path`, which is deleted after some checkpoints at a turn's end.

    `root` is an empty folder for the session, `most` about the number of checkpoints.
    """
    loaded = read_catalog(get_folders()).get(agent)
    spec = loaded.adapter.transcript
    assert spec is not None
    whole = read_whole_facts(spec.reader, path, agent=agent)
    leg = Leg(LEG, agent, 1, _BEGAN, native_id=whole.native_id, transcript=path, was_busy=True)
    session = Session(SESSION, root, root, _BEGAN, _BEGAN, legs=(leg,))
    folder, progress = make_session_folder(root, SESSION), None
    for grow in _iterate_turns(path, whole, most):
        grow()
        at = datetime.now(UTC)
        order = CheckpointOrder(session, leg, loaded, {}, at, build_allow((), ()), progress)
        built = build_checkpoint(order)
        if built is None:
            continue
        progress = built.progress
        if built.contents is not None:
            replace_checkpoints(folder, built.contents)
        else:
            add_checkpoint(folder, built.line)
    os.unlink(path)
    return gather_facts(loaded, session, leg, {})


def _iterate_turns(path: str, whole: Facts, most: int) -> Iterator[Callable[[], object]]:
    """Yield functions that make the transcript as long as it was at the end of some turns."""
    own = (said for said in whole.conversation if said.role == "user" and said.place.startswith(path))
    places = [said.place.removeprefix(path) for said in own][1:]
    places = places[:: max(1, len(places) // most)]
    copy = f"{path}.whole"
    shutil.copyfile(path, copy)
    if "#" in "".join(places):
        ends = [place.removeprefix("#") for place in places]
        for end in ends:
            yield partial(_cut_rows, copy, path, end)
    else:
        with open(copy, "rb") as file:
            lines = file.readlines()
        for place in dict.fromkeys(places):
            yield partial(_write, path, b"".join(lines[: _find_turn(lines, int(place.lstrip(":")) - 1)]))
    yield partial(os.replace, copy, path)


def _find_turn(lines: list[bytes], prompt: int) -> int:
    """Return the line that begins the turn of the prompt's line: some agents write more of it before."""
    for line in range(prompt, max(0, prompt - 8), -1):
        if b'"task_started"' in lines[line] or b'"turn_started"' in lines[line]:
            return line
    return prompt


def _write(path: str, data: bytes) -> None:
    """Let the file grow to `data`."""
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def _cut_rows(copy: str, path: str, end: str) -> None:
    shutil.copyfile(copy, path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM part WHERE message_id >= ?", (end,))
        database.execute("DELETE FROM message WHERE id >= ?", (end,))
        database.commit()
