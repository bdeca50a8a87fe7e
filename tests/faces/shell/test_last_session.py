"""`agent-relay` alone offers the session that was left here last, and shells know who else has one."""

import json
import os
from pathlib import Path

import pytest

from agent_relay.faces.shell._conversation import SessionLock, find_last, is_shared, render_offer
from agent_relay.store.session_index import write_entry
from tests.support.runs import find_sessions
from tests.support.shells import ShellPerson, list_prompts

OLD, NEW = "01K0000000000000000000000A", "01K0000000000000000000000B"
ENDED = (("leg.starting", {"leg": "L1", "agent": "ada"}), ("session.ended", {"why": "over"}))


def _write(
    folder: Path, session: str, *, at_s: int, events: tuple[tuple[str, dict[str, object]], ...] = ENDED
) -> None:
    """A session of the user's whose journal was written last at `at_s`."""
    place = folder / "work" / ".agent-relay" / "sessions" / session
    place.mkdir(parents=True)
    created = ("session.created", {"session": session, "root": "", "cwd": "", "task": f"task {session[-1]}"})
    rows = [
        {"v": 1, "n": number, "at": "2026-11-21T18:20:00+00:00", "g": 0, "event": name, "data": data}
        for number, (name, data) in enumerate((created, *events), 1)
    ]
    journal = place / "journal.jsonl"
    journal.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    journal.chmod(0o600)
    os.utime(journal, (at_s, at_s))
    write_entry(f"{folder}/home/sessions", session, root=f"{folder}/work", cwd=f"{folder}/work")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder."""
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path


def _find(folder: Path) -> str:
    """The session that is offered there; empty for none."""
    company = folder / "company"
    company.mkdir(exist_ok=True)
    view = find_last(f"{folder}/work", f"{folder}/home/sessions", SessionLock(f"{company}"))
    assert os.listdir(company) == []
    return "" if view is None else str(view["session"])


def test_the_session_that_was_written_to_last_is_offered(folder: Path) -> None:
    """The one begun last need not be the one worked in last."""
    assert _find(folder) == ""
    _write(folder, OLD, at_s=2000)
    _write(folder, NEW, at_s=1000)
    assert _find(folder) == OLD


def test_a_session_that_is_at_work_is_not_offered(folder: Path) -> None:
    """Its agent has a screen of its own elsewhere, or a turn under way; two owners spoil the work."""
    _write(folder, OLD, at_s=1000)
    ready = (("leg.starting", {"leg": "L1", "agent": "ada"}), ("leg.ready", {"leg": "L1"}))
    _write(folder, NEW, at_s=2000, events=ready)
    assert _find(folder) == ""


def test_a_session_that_rests_is_offered_where_it_has_no_screen(folder: Path) -> None:
    """In its own screen somebody may wait for the reset."""
    rested = ("session.rested", {"why": "all rest"})
    _write(folder, OLD, at_s=1000, events=(("leg.starting", {"leg": "L1", "agent": "ada"}), rested))
    assert _find(folder) == ""
    headless = ("leg.starting", {"leg": "L1", "agent": "ada", "headless": True})
    _write(folder, NEW, at_s=2000, events=(headless, rested))
    assert _find(folder) == NEW


def test_a_session_no_agent_ever_had_is_not_offered(folder: Path) -> None:
    """There is nobody to go on with it, and nothing to go on with."""
    _write(folder, OLD, at_s=1000, events=(("session.ended", {"why": "over"}),))
    assert _find(folder) == ""


def test_the_offer_names_the_work_its_agent_and_the_day() -> None:
    """An id says nothing; without a title its end is what can be typed."""
    view = {
        "title": "fix the cents",
        "agent": "ada",
        "updated_at": "2020-11-21T12:00:00+00:00",
        "session": OLD,
    }
    assert render_offer(view) == "Press Enter to continue 'fix the cents' (ada, Nov 21, 2020)"
    assert render_offer(view | {"title": ""}) == "Press Enter to continue session 00000A (ada, Nov 21, 2020)"


def test_each_shell_learns_of_the_others_and_the_last_one_leaves_no_file(tmp_path: os.PathLike[str]) -> None:
    """Two shells that hand a session back and forth unknowingly confuse their people."""
    first, second = SessionLock(str(tmp_path)), SessionLock(str(tmp_path))
    assert [first.enter("S"), first.enter("S"), second.enter("S"), first.enter("S")] == [
        False,
        False,
        True,
        True,
    ]
    second.enter("T")
    assert not first.enter("S")
    assert sorted(os.listdir(tmp_path)) == ["S.here", "T.here"]
    first.leave()
    second.leave()
    assert os.listdir(tmp_path) == []


def test_where_nobody_can_tell_nobody_is_said_to_be_there(tmp_path: os.PathLike[str]) -> None:
    """A full or foreign disk is no reason to refuse a session."""
    assert not is_shared(SessionLock(f"{tmp_path}/missing"), "S")
    assert not is_shared(None, "S")


@pytest.mark.size("test")
def test_enter_on_the_first_line_goes_on_with_the_last_session(person: ShellPerson) -> None:
    """Opening the shell again after lunch should not need an id."""
    person.turn("fix the cents")
    person.type("/exit")
    person.terminal.wait_exit()
    again = ShellPerson(person.world)
    again.wait_for(r"Press Enter to continue 'fix the cents' \(demo, today \d\d:\d\d\)")
    again.type("", shows=f"Session {person.session()}. Your next message goes to demo.")
    again.turn("and the euros")
    assert list_prompts(person.world, person.session()) == ["fix the cents", "and the euros"]


@pytest.mark.size("every")
def test_anything_else_that_is_typed_ends_the_offer(person: ShellPerson) -> None:
    """An Enter too many, later, must not take the conversation to another session."""
    person.turn("fix the cents")
    first = person.session()
    beside = ShellPerson(person.world)
    assert "Enter: go on" not in beside.screen
    beside.terminal.close()
    person.type("/exit")
    person.terminal.wait_exit()
    again = ShellPerson(person.world)
    again.wait_for("Press Enter to continue 'fix the cents'")
    again.turn("something else")
    again.type("")
    again.type("/status", shows="task: something else")
    assert list_prompts(person.world, first) == ["fix the cents"]
    assert len(find_sessions(person.world)) == 2
