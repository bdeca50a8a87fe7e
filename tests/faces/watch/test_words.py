"""What happened, in the words a watcher reads."""

from datetime import UTC

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.session import Leg, Session
from agent_relay.session.views.event_lines import render_event_line
from tests.faces.watch.lives import START, lay

SESSION = Session("S", "/r", "/r", START, START, legs=(Leg("L1", "ada", 1, START),))
UNTIL = "2026-11-20T21:00:00+00:00"


ROWS: list[tuple[words.Body, str]] = [
    (words.SessionCreated("S", "/r", "/r"), "session begins in /r"),
    (words.LegStarting("L1", "ada", 1), "ada starts"),
    (
        words.LegStarting("L1", "ada", 1, model="m1", resumes=True, headless=True),
        "ada starts on m1 in its earlier conversation without a screen",
    ),
    (words.LegReady("L1"), "ada waits for a prompt"),
    (words.LegBusy("L1"), "ada works"),
    (words.LegBusy("L7"), "the agent works"),
    (words.LegAsking("L1"), "ada asks for an approval"),
    (words.LegAnswered("L1"), "ada answers again"),
    (words.LegEnded("L1", "exited", 3), "ada exited with status 3"),
    (words.LegEnded("L1", "lost"), "ada was lost"),
    (work.ContextNoted("L1", 80, 100, "draft", UNTIL), "the context of ada is 80 % full"),
    (work.ContextNoted("L1", 8000, 0, "draft", UNTIL), "the context of ada is 8,000 tokens long"),
    (work.ContextCompacting("L1"), "ada is asked to compact its context"),
    (work.DraftBegun("L1", "context"), "ada is asked for a handoff document: context"),
    (
        work.SuccessorChosen("L1", "bob", ("cem: not installed",)),
        "at its limit bob would take over from ada (cem: not installed)",
    ),
    (
        words.SignalSeen("L1", "ada", "limit", "account", "hook", "secret", decides=True, until=UNTIL),
        "ada hit its usage limit, resets 21:00",
    ),
    (
        words.SignalSeen("L1", "ada", "near-limit", "warning", "screen", "x", decides=False, until="soon"),
        "ada is near a limit, not acted on",
    ),
    (
        work.HandoffBegun("H", "L1", "ada", "bob", "rate_limit", focus="secret"),
        "handoff from ada to bob begins: rate limit",
    ),
    (work.DigestBegun("H", "bob"), "bob is asked for a handoff document from the record"),
    (work.DigestEnded("H", "bob", "written"), "bob wrote a handoff document from the record"),
    (
        work.DigestEnded("H", "bob", "failed", "no key"),
        "the packet goes out without a document from bob: no key",
    ),
    (
        work.DigestEnded("H", "bob", "empty"),
        "the packet goes out without a document from bob: its answer was empty",
    ),
    (work.PacketPublished("H", "P", 1, "bob", "1.json", "1.md", "f"), "its packet is published: 1.md"),
    (work.PacketSaved("P", 1, "bob", "1.json", "1.md", "f"), "a packet for bob is saved: 1.md"),
    (work.PacketDelivered("H", "L1"), "the successor has its packet"),
    (work.HandoffConfirmed("H", "L1"), "handoff done: ada works on it"),
    (
        work.HandoffFailed("H", "spawned", "it broke"),
        "handoff failed before its successor had its packet: it broke",
    ),
    (work.HandoffFailed("H", "of-later", "it broke"), "handoff failed after of-later: it broke"),
    (words.LegEnded("L1", "unstarted"), "ada could not be started"),
    (work.HandoffCancelled("H", "begun"), "handoff cancelled"),
    (work.HandoffRetried("H"), "handoff tried again"),
    (
        work.CriterionChecked("H", "secret", "met", "secret", "relay", "secret"),
        "a criterion of the handoff is met, says relay",
    ),
    (work.CriterionChecked("H", "secret", "unmet"), "a criterion of the handoff is unmet"),
    (work.BlockerNamed("H", "access", "secret", "secret"), "the handoff's task is blocked: access"),
    (work.HandoffClosed("H", "completed", "secret"), "handoff judged: completed"),
    (
        work.HandoffRequested("H2", "L1", "bob", "secret", "secret", "secret"),
        "ada requests a handoff to bob after this turn",
    ),
    (work.HandoffWithdrawn("H2"), "the requested handoff does not begin"),
    (
        work.HandoffWithdrawn("H2", "bob: not installed"),
        "the requested handoff does not begin: bob: not installed",
    ),
    (work.HandoffAccepted("H", "L1", "secret"), "handoff accepted by ada"),
    (work.AgentNoted("L1", "secret", "secret"), "ada saves a note on its work"),
    (words.SessionRested("all rest", UNTIL), "session rests until 21:00: all rest"),
    (words.SessionRested("all rest"), "session rests: all rest"),
    (words.SessionWoke(), "session continues"),
    (words.SessionWoke(offers=True), "its limit has reset; waiting for you to continue"),
    (words.ReturnOffered("bob"), "bob is available again"),
    (
        words.ReturnOffered("bob", why="these are quiet hours"),
        "bob is available again; it does not go on by itself: these are quiet hours",
    ),
    (
        words.ReturnPutOff("bob", "its 5 h window reads full again", UNTIL),
        "bob does not take over again until 21:00: its 5 h window reads full again",
    ),
    (words.ConsentUsed("bob", "once"), "bob goes on unasked, as a person agreed during this rest"),
    (words.ConsentUsed("bob", "return"), 'bob goes on unasked, by return = "auto"'),
    (words.ResumeAgreed(), "work will continue at the reset"),
    (words.ResumeAgreed(agreed=False), "work will wait for you at the reset"),
    (words.LegContinues("L1", UNTIL), "ada will continue by itself at 21:00"),
    (
        words.LegContinues("L1", "soon", allowed=False),
        "ada planned to continue by itself; relay is cancelling that",
    ),
    (words.LegContinues("L1"), ""),
    (words.SessionStopping("by hand"), "session is stopped: by hand"),
    (words.SessionStopping(), "session is stopped"),
    (words.SessionEnded("over"), "session ended: over"),
    (words.SessionEnded(), "session ended"),
    (work.TurnBegun("ada", "secret"), "a turn for ada begins"),
    (work.TurnEnded("L1", "failed", "it broke"), "the turn is over: failed, it broke"),
    (work.TurnEnded("L1", "done"), "the turn is over: done"),
    (words.LegStarted("L1", 1, 2, 3), ""),
    (work.PredecessorStopped("H", "L1"), ""),
    (words.Unknown("later.event", {"x": 1}), ""),
]


def test_a_line_of_the_journal_is_told_in_words() -> None:
    """A watcher reads sentences, and never the user's prompt or an agent's screen in them."""
    told = [(body, render_event_line(SESSION, lay([body])[0], UTC)) for body, _ in ROWS]
    assert [(row, found) for row, found in zip(ROWS, told, strict=True) if found != row] == []
    assert "secret" not in str([line for _, line in told])
