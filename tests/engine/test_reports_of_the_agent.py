"""What an agent's records say of its own conversation, and of the user's newest words, is kept."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agent_relay.domain.events.session import PromptSeen
from agent_relay.domain.inputs import Answered, PromptTaken
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.session import Leg, Prompt
from agent_relay.engine.legs.monitor import LegMonitor
from tests.support.monitored import Reports, build_config, build_monitor

BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
LATER = BEGAN + timedelta(minutes=1)


def build_watch(agent: str, asked: Prompt | None = None, reports: Reports | None = None) -> LegMonitor:
    """A watch over a leg of whose newest prompt the journal knows this, and nothing else."""
    return build_monitor(Leg("leg", agent, 1, BEGAN, asked=asked), build_config(agent), reports)


def hear(watch: LegMonitor, records: Sequence[Record]) -> None:
    """What a source hands on."""
    asyncio.run(watch.hear(records))


def tell_session(kind: str, name: str, **more: object) -> Record:
    """An event of a server that says no time."""
    info = {"id": name, "directory": "/r", **more}
    return Record(Source.EVENT, {"type": kind, "properties": {"sessionID": name, "info": info}}, None)


def test_a_server_names_the_conversation_of_its_own_process() -> None:
    """The newest name counts, and a subagent's does not."""
    watch = build_watch("opencode")
    hear(watch, [tell_session("session.created", "ses_1")])
    assert watch.names == {"native_id": "ses_1"}
    hear(watch, [tell_session("session.created", "ses_2", parentID="ses_1")])
    hear(watch, [tell_session("session.deleted", "ses_3")])
    assert watch.names == {"native_id": "ses_1"}
    hear(watch, [tell_session("session.updated", "ses_4")])
    assert watch.names == {"native_id": "ses_4"}


def test_a_transcript_names_its_conversation_in_its_first_record() -> None:
    """One that was begun before the leg is gone on with under the name it has."""
    watch = build_watch("codex")
    meta = {"type": "session_meta", "payload": {"id": "t-1", "cwd": "/r", "source": "cli"}}
    hear(watch, [Record(Source.TRANSCRIPT, meta, BEGAN - timedelta(days=1))])
    assert watch.names == {}
    hear(watch, [Record(Source.TRANSCRIPT, meta, LATER)])
    other = {"type": "turn_context", "payload": {"id": "t-2", "cwd": "/r"}}
    hear(watch, [Record(Source.TRANSCRIPT, other, LATER)])
    assert watch.names == {"native_id": "t-1"}


def test_the_users_words_are_kept_where_a_hook_tells_them() -> None:
    """A transcript that nobody understands must not cost the prompt."""
    reports = Reports()
    watch = build_watch("claude", reports=reports)
    for text, at in (("old", BEGAN - timedelta(days=1)), ("paint the shed", LATER)):
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": text}
        hear(watch, [Record(Source.HOOK, {"at": at.isoformat(), "payload": payload}, at)])
    assert reports.prompts == [PromptSeen("leg", "paint the shed", LATER.isoformat(), "s")]


def write_hook(event: str, at: datetime, **more: object) -> Record:
    """What the hook of an event leaves behind."""
    payload = {"hook_event_name": event, "session_id": "s", **more}
    return Record(Source.HOOK, {"at": at.isoformat(), "payload": payload}, at)


def test_a_hook_says_that_a_prompt_was_taken_and_answered() -> None:
    """Its record has an envelope, in which nobody found who spoke."""
    reports = Reports()
    watch = build_watch("claude", reports=reports)
    hear(watch, [write_hook("UserPromptSubmit", LATER, prompt="paint the shed")])
    assert reports.inputs == [PromptTaken("leg")]
    answered_at = datetime.now(UTC) + timedelta(minutes=1)
    hear(watch, [write_hook("Stop", answered_at)])
    assert reports.inputs == [PromptTaken("leg"), Answered("leg", answered_at)]


def test_a_prompt_an_earlier_daemon_journalled_is_not_told_again() -> None:
    """A new daemon reads all hooks again; a journal of what it has read already would never end."""
    reports = Reports()
    watch = build_watch("claude", Prompt("paint the shed", LATER, "s"), reports=reports)
    later = LATER + timedelta(seconds=1)
    hear(watch, [write_hook("UserPromptSubmit", LATER, prompt="paint the shed")])
    hear(watch, [write_hook("UserPromptSubmit", later, prompt="and the door")])
    assert reports.prompts == [PromptSeen("leg", "and the door", later.isoformat(), "s")]


def test_a_packet_is_no_prompt_of_the_users() -> None:
    """Relay typed it; a journal is no place for packets."""
    reports = Reports()
    watch = build_watch("claude", reports=reports)
    packet = "<handoff-context>\nlong\n</handoff-context>"
    hear(watch, [write_hook("UserPromptSubmit", LATER, prompt=packet)])
    hear(watch, [write_hook("UserPromptSubmit", LATER, prompt=f"{packet}\nGo on.")])
    assert reports.prompts == [PromptSeen("leg", "Go on.", LATER.isoformat(), "s")]


def test_the_screen_an_agent_leaves_behind_is_not_its_last_one() -> None:
    """What stands there once it has gone is the shell's, or nothing."""
    watch = build_watch("claude")
    watch.seen.see(["starting …", ""], "starting")
    watch.seen.see(["> paint the shed", "  ", "limit reached"], "ready")
    watch.seen.see(["$ "], "unknown")
    watch.seen.see([" ", ""], "ready")
    assert watch.seen.screen == "> paint the shed\nlimit reached"
