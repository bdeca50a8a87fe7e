"""What a webhook is told."""

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.faces.export._figures import build_hook_event
from tests.faces.watch.lives import BEGINNING, follow

SECRET = "the user's own words"


def build(*bodies: words.Body) -> list[dict[str, object]]:
    """What is sent of these lines."""
    told = follow(*BEGINNING, *bodies).told[4:]
    return [body for event in told if (body := build_hook_event(event)) is not None]


def test_a_limit_and_what_follows_are_told_by_codes_and_names() -> None:
    """Enough to page somebody or to plan by; not a word of anybody."""
    until = "2026-11-20T21:00:00+00:00"
    (seen, begun, failed, rested) = build(
        words.SignalSeen("L1", "ada", "limit", "account", "hook", SECRET, decides=True, until=until),
        work.HandoffBegun("H1", "L1", "ada", "bob", "rate_limit", why=SECRET, focus=SECRET),
        work.HandoffFailed("H1", "begun", SECRET),
        words.SessionRested(SECRET, until),
    )
    assert seen == {
        "schema": "agent-relay/webhook",
        "version": 1,
        "id": "S:6",
        "session": "S",
        "event": "signal.seen",
        "at": "2026-11-20T18:00:50+00:00",
        "agent": "ada",
        "kind": "limit",
        "scope": "account",
        "until": until,
    }
    assert (begun["from_agent"], begun["to_agent"], begun["reason"]) == ("ada", "bob", "rate_limit")
    assert (failed["event"], failed["handoff"], failed["step"]) == ("handoff.failed", "H1", "begun")
    assert rested["until"] == until
    assert SECRET not in str((seen, begun, failed, rested))


def test_what_is_no_code_does_not_leave() -> None:
    """A field that should hold a name may hold anything in a journal somebody damaged."""
    (body,) = build(words.SignalSeen("L1", SECRET, "limit", "a\nb", "hook", "", decides=True, until=SECRET))
    assert set(body) == {"schema", "version", "id", "session", "event", "at", "kind"}


def test_what_nobody_needs_to_be_told_is_not_sent() -> None:
    """Not every busy moment, and no warning that was not acted on."""
    seen = words.SignalSeen("L1", "ada", "limit", "account", "screen", "", decides=False)
    assert build(seen, words.LegAsking("L1"), words.LegBusy("L1"))[0]["event"] == "leg.asking"
    assert len(build(seen, words.LegAsking("L1"), words.LegBusy("L1"))) == 1
