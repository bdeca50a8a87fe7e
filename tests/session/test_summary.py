from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.events import session as words
from agent_relay.domain.events import standby, work
from agent_relay.domain.events.codec import render_event
from agent_relay.domain.events.session import Event
from agent_relay.domain.session import Standby
from agent_relay.session.fold import fold_event
from agent_relay.session.transitions import TRANSITIONS
from agent_relay.session.views.summary import summarize

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
BODIES = (
    words.LegStarting("L1", "ada", 1),
    words.LegStarting("L2", "bob", 2, handoff="H1"),
    words.LegStarted("L1", 10, 11, 12),
    words.LegNamed("L1", "n", "t"),
    words.LegReady("L1"),
    words.LegBusy("L1"),
    words.LegPrompted("L1"),
    words.PromptSeen("L1", "please", START.isoformat()),
    words.LegAsking("L1"),
    words.LegAnswered("L1"),
    words.LegAnswered("L2"),
    words.SignalSeen("L1", "ada", "failure", "auth", "hook", "Invalid API key", decides=True),
    words.SignalSeen("L2", "bob", "failure", "auth", "screen", "sign in", decides=True),
    words.SignalSeen("L1", "ada", "failure", "auth", "screen", "Invalid API key", decides=False),
    words.SignalSeen("L1", "ada", "limit", "account", "hook", "session limit", decides=True, until=""),
    words.SignalSeen("L1", "ada", "limit", "account", "screen", "session limit", decides=False),
    words.SignalSeen("L1", "ada", "near-limit", "warning", "hook", "92%", decides=True),
    words.SignalSeen("L1", "ada", "near-limit", "warning", "screen", "95%", decides=False),
    work.ContextNoted("L1", 720, 1000, "advise", START.isoformat()),
    work.ContextNoted("L2", 100, 0, "low", START.isoformat()),
    work.ContextCompacting("L1"),
    work.ContextSpared("L1"),
    work.DraftBegun("L1", "context"),
    work.SuccessorChosen("L1", "bob", ("cas: not installed",)),
    work.SuccessorChosen("L2", "ada"),
    work.BudgetNoted("L1", "b", "warn", "$4 of it", "ada", "stop", "2026-11-20", "2026-11-21T00:00:00+00:00"),
    work.BudgetNoted("L1", "b", "spent", "used up"),
    work.BudgetNoted("L1", "c", "half", "what?"),
    work.BudgetApplied("L1", "b"),
    work.HandoffBegun("H1", "L1", "ada", "bob", "rate_limit"),
    work.PredecessorStopped("H1", "L1"),
    work.DigestBegun("H1", "bob"),
    work.DigestEnded("H1", "bob", "failed", "no answer came"),
    work.PacketPublished("H1", "P1", 1, "bob", "resume/0001-bob.json", "resume/0001-bob.md", "f"),
    work.PacketSaved("P2", 2, "cas", "resume/0002-cas.json", "resume/0002-cas.md", "f"),
    work.PacketDelivered("H1", "L2"),
    work.HandoffConfirmed("H1", "L2"),
    work.HandoffFailed("H1", "spawned", "no"),
    work.HandoffCancelled("H1", "stopped"),
    work.HandoffRetried("H1"),
    work.CriterionChecked("H1", "it opens", "unmet"),
    work.BlockerNamed("H1", "access", "no key"),
    work.HandoffClosed("H1", "failed", "no"),
    work.HandoffRequested("H2", "L1", "bob", "finish it", "the rest", "test it"),
    work.HandoffWithdrawn("H2"),
    work.HandoffAccepted("H1", "L2"),
    work.AgentNoted("L1", "half done", "the other half"),
    words.LegEnded("L1", "exited", 0),
    words.SessionRested("all rest"),
    words.SessionWoke(),
    words.SessionWoke("its reset has come", offers=True),
    words.LegStarting("L1", "ada", 1, model="small"),
    words.ReturnOffered("ada"),
    words.ReturnOffered("bob", by_itself=True),
    words.ReturnPutOff("bob", "its 5 h window reads full again"),
    words.ConsentUsed("bob", "return"),
    words.ResumeAgreed(),
    words.SessionStopping("by hand"),
    words.SessionEnded("over"),
    work.TurnBegun("ada", "fix it"),
    work.TurnEnded("L1", "done"),
    work.ChatBegun(("ada", "bob")),
    work.SessionWaits(),
    words.LegStarting("L1", "ada", 1, headless=True),
    standby.StandbyStarting("L3", "bob"),
    standby.StandbyStarting("L2", "bob"),
    standby.StandbyStarted("L3", 20, 21, 22),
    standby.StandbyReady("L3", "bob"),
    standby.StandbyDropped("L3", "bob", "cas takes over"),
    standby.StandbyEnded("L3", "bob"),
    standby.StandbyEnded("L2", "bob", "it ended"),
    words.Unknown("later.event", {"x": 1}),
)


def tell_standby(ahead: Standby | None) -> dict[str, str] | None:
    """What `status` says of an agent started ahead."""
    if ahead is None:
        return None
    state = "ending" if ahead.is_dropped else "ready" if ahead.leg.was_ready else "starting"
    return {"agent": ahead.leg.agent, "leg": ahead.leg.id, "state": state}


@given(st.lists(st.sampled_from(BODIES), max_size=60))
def test_the_short_form_tells_the_same_story_as_the_whole(wanted: list[words.Body]) -> None:
    """`status` and the daemon must never disagree about what a session is doing."""
    events = [Event(1, START, 0, words.SessionCreated("S", "/r", "/r/c", ("ada",), "fix it"))]
    session = fold_event(None, events[0])
    for body in wanted:
        assert session is not None
        if session.state not in TRANSITIONS[type(body)]:
            continue
        number = session.number + 1
        events.append(Event(number, START + timedelta(seconds=number), session.generation, body))
        session = fold_event(session, events[-1])
    view = summarize([render_event(event) for event in events])
    assert session is not None
    assert view is not None
    assert (view["session"], view["cwd"], view["task"]) == ("S", "/r/c", "fix it")
    assert (view["state"], view["agent"]) == (session.shown_state.value, session.agent)
    assert view["refused"] == (
        None if session.refusal is None else {"agent": session.refusal.agent, "text": session.refusal.text}
    )
    assert view["offered"] == session.offer
    assert view["agreed"] == session.agreed
    assert (view["consent"] is None) == (not session.unasked)
    newest = [event.body for event in events if isinstance(event.body, words.LegStarting | work.TurnBegun)]
    assert view["headless"] == (bool(newest) and getattr(newest[-1], "headless", True))
    assert view["updated_at"] == session.updated_at.isoformat()
    assert view["handoffs"] == len(events_of(events, work.HandoffConfirmed))
    assert (view["limit"] is None) == (session.limit is None)
    assert (view["near"] is None) == (session.near is None)
    assert view["budgets"] == {
        known.budget: {
            "mark": known.mark.value, "text": known.text, "agent": known.agent, "until": known.until,
        }
        for known in session.budgets
    }  # fmt: skip
    assert view["standby"] == tell_standby(session.standby)
    noted, context = view["context"], session.context
    if isinstance(noted, dict):
        assert (noted["used"], noted["room"], noted["level"]) == (context.used, context.room, context.level)
    else:
        assert context.read_at is None


def test_who_was_refused_or_offered_is_told_until_that_is_over() -> None:
    """`status` must not send people to sign in who have done so."""
    refusal = words.SignalSeen("L1", "ada", "failure", "auth", "hook", "Invalid API key", decides=True)
    bodies = [
        words.SessionCreated("S", "/r", "/r"),
        words.LegStarting("L1", "ada", 1),
        refusal,
        words.ReturnOffered("bob"),
        words.LegAnswered("L1"),
        words.LegStarting("L2", "bob", 2),
    ]
    rows = [render_event(Event(number, START, 0, body)) for number, body in enumerate(bodies, 1)]
    told = [summarize(rows[:count]) for count in range(4, 7)]
    shown = [(view["refused"], view["offered"]) for view in told if view is not None]
    assert shown == [({"agent": "ada", "text": "Invalid API key"}, "bob"), (None, "bob"), (None, "")]


def test_how_full_the_running_agents_context_is_is_told_until_the_next_begins() -> None:
    """A reading of an agent that left, or of another one's leg, says nothing about who works now."""
    at = START.isoformat()
    begun = (words.LegStarting("L1", "ada", 1), work.ContextNoted("L1", 720, 1000, "advise", at))
    assert _look(*begun)["context"] == {"used": 720, "room": 1000, "level": "advise", "at": at}
    assert _look(*begun, work.ContextNoted("L0", 1, 1000, "low", at))["context"] == _look(*begun)["context"]
    assert _look(*begun, words.LegStarting("L2", "bob", 2))["context"] is None


def test_a_session_between_two_turns_waits() -> None:
    """No leg runs, and nothing is wrong."""
    bodies = [
        words.SessionCreated("S", "/r", "/r"),
        words.SessionEnded("it fell over"),
        work.TurnBegun("ada", "fix it"),
        words.LegStarting("L1", "ada", 1, headless=True),
        work.TurnEnded("L1", "done"),
        words.LegEnded("L1", "exited", 0),
        work.SessionWaits(),
    ]
    rows = [render_event(Event(number, START, 0, body)) for number, body in enumerate(bodies, 1)]
    told = [summarize(rows[:count]) for count in (2, 3, 7)]
    shown = [(view["state"], view["why"]) for view in told if view is not None]
    assert shown == [("ended", "it fell over"), ("starting", ""), ("ready", "")]


def events_of(events: list[Event], kind: type[words.Body]) -> list[Event]:
    """The events of one kind."""
    return [event for event in events if isinstance(event.body, kind)]


def test_the_state_is_as_old_as_its_first_moment() -> None:
    """`limited since 18:20` is about the limit, not about the last line written."""
    rows = [
        render_event(Event(1, START, 0, words.SessionCreated("S", "/r", "/r"))),
        render_event(Event(2, START + timedelta(seconds=5), 1, words.LegStarting("L1", "ada", 1))),
        render_event(Event(3, START + timedelta(seconds=6), 1, words.LegReady("L1"))),
        render_event(Event(4, START + timedelta(seconds=9), 1, words.LegNamed("L1", "n"))),
    ]
    view = summarize(rows)
    assert view is not None
    assert (view["since"], view["updated_at"]) == ("2026-11-20T18:00:06+00:00", "2026-11-20T18:00:09+00:00")


def test_rows_that_are_no_session_are_nothing() -> None:
    """A torn or foreign file must not become a session."""
    assert summarize([]) is None
    assert summarize([{"event": "leg.ready", "data": {}}, {"event": 7}, {"data": []}]) is None


def _look(*bodies: words.Body) -> dict[str, object]:
    """The short form of a session with these events."""
    rows = enumerate((words.SessionCreated("S", "/r", "/r"), *bodies), 1)
    view = summarize([render_event(Event(number, START, 0, body)) for number, body in rows])
    assert view is not None
    return view


def test_what_the_newest_packet_lacks_is_in_the_view() -> None:
    """`status` tells of it as long as nothing newer is known."""
    published = work.PacketPublished("H1", "P1", 1, "bob", "1.json", "1.md", "f", "something is missing")
    created = words.SessionCreated("S", "/r", "/r", ("ada",), "paint the shed")
    rows = [
        render_event(Event(number, START, 1, body)) for number, body in enumerate((created, published), 1)
    ]
    view = summarize(rows)
    assert view is not None
    assert (view["packet"], view["lacks"]) == ("1.md", "something is missing")


def test_an_agent_is_ready_only_once_its_packet_was_delivered() -> None:
    """`status` said `ready` of a successor that still waited for all it was to know."""
    bodies = [
        words.SessionCreated("S", "/r", "/r", ("ada", "bob"), ""),
        words.LegStarting("L1", "ada", 1),
        words.LegReady("L1"),
        work.HandoffBegun("H1", "L1", "ada", "bob", "manual"),
        work.PredecessorStopped("H1", "L1"),
        work.PacketPublished("H1", "P1", 1, "bob", "1.json", "1.md", "f"),
        words.LegStarting("L2", "bob", 2, handoff="H1"),
        words.LegAsking("L2"),
        words.LegReady("L2"),
        work.PacketDelivered("H1", "L2"),
        words.LegBusy("L2"),
        work.HandoffConfirmed("H1", "L2"),
        words.LegReady("L2"),
    ]
    rows = [render_event(Event(number, START, 0, body)) for number, body in enumerate(bodies, 1)]
    states = [summarize(rows[:length])["state"] for length in range(7, len(rows) + 1)]  # type: ignore[index]
    assert states == ["starting", "asking", "starting", "starting", "busy", "busy", "ready"]
