import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.limits import Rest
from agent_relay.faces.shell._agent_switch import PreferredReturn
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._message_queue import MessageQueue, QueueState
from agent_relay.store.ledger import update_ledger
from tests.support.set_clock import SleepingLoop, SleepingMachine


def _build(folder: os.PathLike[str], **wishes: object) -> tuple[PreferredReturn, Conversation]:
    talk = Conversation("/work", agent="understudy")
    config = UserConfig.parse(wishes)
    return PreferredReturn(talk, lambda: config, f"{folder}/ledger.json"), talk


def _write_ledger(folder: os.PathLike[str], **until: datetime) -> None:
    rests = [Rest(agent, "", "account", at, "", seen_at=at) for agent, at in until.items()]
    update_ledger(f"{folder}/ledger.json", lambda _: rests)


def test_who_gave_way_is_offered_once_after_the_reset(tmp_path: os.PathLike[str]) -> None:
    """An offer that is repeated with every message is nagging."""
    returning, talk = _build(tmp_path)
    assert returning.check() == ""
    returning.note_limit("demo")
    _write_ledger(tmp_path, demo=datetime.now(UTC) + timedelta(hours=1))
    assert returning.check() == ""
    _write_ledger(tmp_path)
    assert returning.check() == "→ demo is available again: /use demo"
    assert (returning.check(), talk.agent) == ("", "understudy")


@pytest.mark.parametrize("wish", ["offer", "auto"])
def test_nobody_is_offered_while_the_ledger_cannot_be_read(tmp_path: os.PathLike[str], wish: str) -> None:
    """Whoever rests still would be given the next message, and refuse it."""
    returning, talk = _build(tmp_path, **{"return": wish})
    returning.note_limit("demo")
    os.symlink("ledger.json", f"{tmp_path}/ledger.json")
    assert (returning.check(), talk.agent) == ("", "understudy")
    os.unlink(f"{tmp_path}/ledger.json")
    assert returning.check().startswith("→ demo is available again")


def test_with_auto_the_preferred_agent_has_the_next_turn(tmp_path: os.PathLike[str]) -> None:
    """Whoever wrote it into their configuration does not want to be asked."""
    returning, talk = _build(tmp_path, **{"return": "auto"})
    returning.note_limit("demo")
    returning.note_limit("understudy")
    assert returning.check() == "→ demo is available again; your next message goes to it."
    assert talk.agent == "demo"


@pytest.mark.parametrize("wish", ["off", "offer"])
def test_nobody_comes_back_unasked(tmp_path: os.PathLike[str], wish: str) -> None:
    """Neither where that is switched off nor after the person chose somebody."""
    returning, talk = _build(tmp_path, **{"return": wish})
    returning.note_limit("demo")
    if wish == "offer":
        returning.forget()
    assert (returning.check(), talk.agent) == ("", "understudy")


def test_work_goes_on_at_the_reset_where_that_is_wished(tmp_path: os.PathLike[str]) -> None:
    """A night's queue should not wait for somebody to press Enter; billing limits have no reset."""
    passed = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    assert _build(tmp_path)[0].count_wait(passed) == 0.0
    unknown = ("", "soon", "2026-11-22T09:00:00")
    assert [_build(tmp_path, resume_at_reset=True)[0].count_wait(one) for one in unknown] == [None] * 3
    assert _build(tmp_path, resume_at_reset=True)[0].goes_on
    assert not _build(tmp_path)[0].goes_on


def test_in_the_quiet_hours_a_queue_waits_for_their_end(tmp_path: os.PathLike[str]) -> None:
    """Nothing works while its user sleeps, and the line says when it does."""
    reset = datetime.now().astimezone().replace(hour=3, minute=0, second=0, microsecond=0)
    quiet = {"resume_at_reset": True, "quiet_hours": "22:00-07:00"}
    put_off = datetime.fromisoformat(_build(tmp_path, **quiet)[0].put_off(reset.isoformat()))
    assert put_off.astimezone().strftime("%H:%M") == "07:00"
    noon = reset.replace(hour=12).isoformat()
    assert _build(tmp_path, **quiet)[0].put_off(noon) == noon
    assert _build(tmp_path, quiet_hours="22:00-07:00")[0].put_off(reset.isoformat()) == reset.isoformat()
    assert not _build(tmp_path, resume_at_reset=True, quiet_hours="always")[0].goes_on


def test_a_reset_that_passed_while_the_machine_slept_is_noticed_when_it_wakes(tmp_path: Path) -> None:
    """A night's queue on a machine whose lid was closed would wait for as long again after it is opened."""
    machine = SleepingMachine()
    typed = MessageQueue(str(tmp_path / "typed"), lambda: None)
    said: list[str] = []
    typed.add("go on")

    async def main() -> None:
        over = asyncio.Event()

        def say(line: str) -> None:
            said.append(line)
            over.set()

        preferred = PreferredReturn(_build(tmp_path)[1], UserConfig, str(tmp_path / "ledger"), machine)
        state = QueueState(typed, preferred, changed=lambda: None, go_on=over.set, say=say)
        state.rest("", (machine.now() + timedelta(hours=7)).isoformat())
        await over.wait()

    with asyncio.Runner(loop_factory=lambda: SleepingLoop(machine)) as runner:
        runner.run(main())
    typed.close()
    assert said == ["→ The first reset has passed: Enter sends what waits."]
    assert machine.waits == [30.0, 0.0]
