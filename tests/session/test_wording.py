"""The one line a user reads when the agent on the terminal changes."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.session import Handoff, Leg, Limit, PreparedSuccessor, Session
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.views.messages import (
    render_message,
    render_resting_note,
    render_sign_in,
    render_slow_start,
)

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
HANDOFF = Handoff("H", "L1", "ann", "bob", "rate_limit", NOW, text_path="resume/0001-bob.md")
SESSION = Session("S", "/r", "/r", NOW, NOW, legs=(Leg("L1", "ann", 1, NOW),))


def limit(text: str, until: str = "2026-11-21T21:00:00+00:00", scope: str = "account") -> Limit:
    return Limit("ann", scope, until, text, "hook", NOW)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            limit("You've hit your session limit · resets 9pm (UTC)"),
            (
                "→ ann hit its session limit (resets 21:00). Continuing with bob. "
                "Packet: /r/.agent-relay/sessions/S/resume/0001-bob.md"
            ),
        ),
        (
            limit("Retrying after 30548425ms", "2026-11-23T02:00:00+00:00"),
            (
                "→ ann hit its usage limit (resets Nov 23, 02:00). Continuing with bob. "
                "Packet: /r/.agent-relay/sessions/S/resume/0001-bob.md"
            ),
        ),
        (
            limit("Credit balance is too low", "", "billing"),
            (
                "→ ann hit its credit limit. Continuing with bob. "
                "Packet: /r/.agent-relay/sessions/S/resume/0001-bob.md"
            ),
        ),
    ],
)
def test_the_handoff_line_names_the_limit_its_reset_the_successor_and_the_packet(
    found: Limit, line: str
) -> None:
    """A tired user must see in one line why the screen changed."""
    session = replace(SESSION, state=State.STARTING, handoff=HANDOFF, limit=found)
    assert render_message(session, UTC) == line


def test_a_resting_session_says_who_rests_and_when_the_first_is_back() -> None:
    """Waiting needs a moment to wait for."""
    session = replace(
        SESSION,
        state=State.RESTING,
        limit=limit("You've hit your weekly limit"),
        rested_until="2026-11-21T20:00:00+00:00",
        skipped=("bob: rests until 20:00", "cas: not installed"),
    )
    assert render_message(session, UTC) == (
        "→ ann hit its weekly limit (resets 21:00). No agent is available "
        "(bob: rests until 20:00; cas: not installed). The first reset is at 20:00."
    )
    assert render_message(replace(session, reset_assumed=True), UTC).endswith(
        "The first reset is at about 20:00 (assumed)."
    )


def test_a_session_that_no_agent_began_says_so_of_itself() -> None:
    """A turn that finds every agent resting has none to name."""
    session = replace(SESSION, state=State.RESTING, legs=(), skipped=("bob: rests until 20:00",))
    assert render_message(session, UTC) == (
        "→ The session cannot go on. No agent is available (bob: rests until 20:00)."
    )


def test_a_lost_agent_and_a_failed_handoff_say_how_to_go_on() -> None:
    """Nothing to repair by hand, one command to type."""
    lost = replace(SESSION, state=State.ENDED, legs=(Leg("L1", "ann", 1, NOW, how="lost"),))
    assert render_message(lost, UTC) == "→ ann was lost. Go on: agent-relay ann --session S"
    failed = replace(SESSION, state=State.ENDED, failure="the disk is full")
    assert render_message(failed, UTC) == (
        "→ The handoff failed: the disk is full. Go on: agent-relay ann --session S"
    )
    owed = replace(failed, retriable=replace(HANDOFF, to_agent="demo"))
    assert render_message(owed, UTC) == (
        "→ The handoff failed: the disk is full. Go on: agent-relay agent demo --session S"
    )


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("exited", 137, "→ bob was ended by signal 9 before it worked on its packet. "),
        ("exited", 1, "→ bob ended with status 1 before it worked on its packet. "),
        ("exited", 0, "→ bob ended before it worked on its packet. "),
        ("lost", -1, "→ bob was lost before it worked on its packet. "),
    ],
)
def test_a_session_that_ended_with_a_packet_undelivered_names_the_command_that_delivers_it(
    how: str, status: int, said: str
) -> None:
    """A status alone tells nobody that what they typed is still there, and how it reaches somebody."""
    leg = Leg("L2", "bob", 2, NOW, how=how, status=status)
    ended = replace(SESSION, state=State.ENDED, legs=(leg,), retriable=replace(HANDOFF, to_agent="bob"))
    assert render_message(ended, UTC) == f"{said}Give it the packet: agent-relay bob --session S"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (137, "→ ann was ended by signal 9. Go on: agent-relay ann --session S"),
        (3, "→ ann ended with status 3. Go on: agent-relay ann --session S"),
        (0, ""),
        (130, ""),
    ],
)
def test_an_agent_that_did_not_end_in_order_is_told_of_with_the_way_on(status: int, said: str) -> None:
    """Killed for want of memory it leaves nothing but a number; a person's own quit needs no words."""
    leg = Leg("L1", "ann", 1, NOW, how="exited", status=status)
    assert render_message(replace(SESSION, state=State.ENDED, legs=(leg,)), UTC) == said


@pytest.mark.parametrize(
    ("handoff", "line"),
    [
        (
            replace(
                HANDOFF, reason="failure", why="bob ended before it was ready", to_agent="cas", text_path=""
            ),
            "→ bob ended before it was ready. Continuing with cas.",
        ),
        (replace(HANDOFF, reason="manual", text_path=""), "→ ann hands over. Continuing with bob."),
        (
            replace(HANDOFF, reason="manual", text_path="", to_agent="ann", model="small"),
            "→ ann hands over. Continuing with ann on small.",
        ),
    ],
)
def test_a_handoff_without_a_limit_says_what_led_to_it(handoff: Handoff, line: str) -> None:
    """The user must never wonder why somebody else is on the screen."""
    assert render_message(replace(SESSION, handoff=handoff), UTC) == line
    assert render_message(replace(SESSION, done=(handoff,)), UTC) == line


def test_a_session_with_one_agent_has_nothing_to_say() -> None:
    """No line is drawn over an agent at work."""
    assert render_message(SESSION, UTC) == ""
    assert render_message(replace(SESSION, state=State.ENDED), UTC) == ""


def test_a_packet_nobody_took_is_told_with_the_way_to_read_it() -> None:
    """The successor works on without it: only the user can say what it should have known."""
    leg = Leg("L2", "bob", 2, NOW, handoff="H")
    session = replace(SESSION, state=State.READY, failure="bob did not take its packet", legs=(leg,))
    assert render_message(session, UTC) == (
        "→ bob did not take its packet. What it should have read: agent-relay packet show S --text"
    )


def test_an_agent_that_went_on_without_a_packet_is_told_as_that() -> None:
    """The disk was full: the user knows what it has not read."""
    session = replace(
        SESSION, state=State.READY, failure="the disk is full", legs=(Leg("L3", "ann", 3, NOW),)
    )
    assert render_message(session, UTC) == (
        "→ The handoff failed: the disk is full. ann goes on in its own session"
    )


def test_a_slow_start_says_what_is_waited_for_and_what_waits() -> None:
    """An empty screen tells nobody whether to wait or to look for the mistake."""
    begun = "→ ann is still starting"
    assert render_slow_start(SESSION, "ann") == f"{begun}: waiting for its prompt"
    tasked = replace(SESSION, task="paint it")
    assert render_slow_start(tasked, "ann") == f"{begun}. It gets its task once it shows its prompt"
    again = replace(tasked, legs=(*SESSION.legs, *SESSION.legs))
    assert render_slow_start(again, "ann") == f"{begun}: waiting for its prompt"
    handing = replace(SESSION, handoff=HANDOFF)
    assert render_slow_start(handing, "bob") == (
        "→ bob is still starting. It gets its packet once it shows its prompt"
    )
    assert render_slow_start(handing, "ann") == f"{begun}: waiting for its prompt"


REFUSAL = Limit("ann", "auth", "", "Invalid API key.\n  Fix it", "hook", NOW)


def test_a_refused_agent_is_told_with_the_two_ways_out() -> None:
    """Nobody takes over for that, so the user must know that it is their turn."""
    told = (
        "→ ann is signed out or its key is refused (Invalid API key. Fix it). "
        "Sign in there and go on, or hand over: agent-relay relay"
    )
    working = replace(SESSION, state=State.BUSY, refused=(REFUSAL,), done=(HANDOFF,))
    assert render_message(working, UTC) == told
    assert render_message(replace(working, state=State.RESTING), UTC) == told
    handing = replace(
        working, state=State.HANDING_OFF, handoff=replace(HANDOFF, reason="manual", text_path="")
    )
    assert render_message(handing, UTC) == "→ ann hands over. Continuing with bob."
    silent = replace(working, refused=(replace(REFUSAL, text=""),))
    assert render_message(silent, UTC).startswith("→ ann is signed out or its key is refused. Sign in")


def test_an_agent_that_ended_refused_is_told_with_the_way_back() -> None:
    """It left in order and did nothing; the reason must not be lost with its screen."""
    ended = replace(SESSION, state=State.ENDED, refused=(REFUSAL,))
    assert render_message(ended, UTC) == (
        "→ ann is signed out or its key is refused (Invalid API key. Fix it). "
        "Sign in, then go on: agent-relay ann --session S"
    )
    assert render_message(ended, UTC, sign_in="ann login").endswith(
        "Sign in (ann login), then go on: agent-relay ann --session S"
    )


def test_who_is_signed_out_is_told_the_command_or_where_it_is_asked_for() -> None:
    """Nobody should have to look up how another tool is signed in to."""
    assert render_sign_in("ann", "ann login") == "Sign in: ann login"
    assert render_sign_in("ann", "") == "Sign in on its own screen: agent-relay ann"


def test_an_offer_to_return_names_the_command_that_takes_it() -> None:
    """One sentence; or that nothing need be done."""
    offered = replace(SESSION, state=State.BUSY, offer="cas", done=(HANDOFF,))
    assert render_message(offered, UTC) == (
        "→ cas is available again. To switch back: agent-relay cas, or press the relay key and type /use cas"
    )
    assert render_message(replace(offered, returns=True), UTC) == (
        "→ cas is available again, and takes over at the end of this turn."
    )
    under_way = replace(offered, handoff=replace(HANDOFF, reason="manual", text_path=""))
    assert render_message(under_way, UTC) == "→ ann hands over. Continuing with bob."


def test_a_session_begun_under_a_resting_agent_is_told_so() -> None:
    """The user named it, and may know better than the ledger."""
    until = NOW + timedelta(hours=1)
    rests = Availability(installed=True, resting=True, rests_until=until)
    assert render_resting_note("ann", rests, NOW, UTC) == (
        "→ ann rests until 19:20, as far as relay knows; it was started all the same. "
        "If it does not rest: agent-relay limits clear ann"
    )
    unknown = Availability(installed=True, resting=True)
    assert render_resting_note("ann", unknown, NOW, UTC).startswith(
        "→ ann rests until you say otherwise, as far"
    )
    assumed = Availability(installed=True, resting=True, rests_until=until, assumed=True)
    assert render_resting_note("ann", assumed, NOW, UTC).startswith(
        "→ ann rests until about 19:20 (assumed), as far"
    )


NEAR = Limit(
    "ann",
    "warning",
    "2026-11-21T21:00:00+00:00",
    "You've used 92% of your session limit · resets 9pm (UTC) · /upgrade",
    "hook",
    NOW,
)


def test_a_limit_that_is_near_is_told_with_its_reset_and_the_way_to_hand_over_sooner() -> None:
    """The agent's own words once, without what it advertises behind them."""
    near = replace(SESSION, state=State.BUSY, near=NEAR, done=(HANDOFF,), failure="bob did not take it")
    assert render_message(near, UTC) == (
        "→ ann is near its session limit (You've used 92% of your session limit; resets 21:00). "
        "It keeps working; to hand over sooner: agent-relay relay"
    )
    prepared = replace(near, prepared=PreparedSuccessor("bob"))
    assert render_message(prepared, UTC).endswith(
        "It keeps working, then bob takes over; to hand over sooner: agent-relay relay"
    )
    alone = replace(near, prepared=PreparedSuccessor("", ("bob: not installed",)))
    assert render_message(alone, UTC).endswith(
        "It keeps working, but no agent could take over (bob: not installed)"
    )
    window = replace(near, near=replace(NEAR, text="92 % of its weekly window is used", until=""))
    said = "→ ann is near a limit (92 % of its weekly window is used). It keeps working"
    assert render_message(window, UTC).startswith(said)
    logged = 'level=WARN message="stream error" error.error="AI_APICallError: Rate limit reached for m1."'
    raw = replace(near, near=replace(NEAR, text=logged, until=""))
    assert render_message(raw, UTC).startswith("→ ann is near a limit (Rate limit reached for m1). It keeps")
    under_way = replace(near, handoff=replace(HANDOFF, reason="manual", text_path=""))
    assert render_message(under_way, UTC) == "→ ann hands over. Continuing with bob."


def test_a_limit_that_is_near_and_an_agent_that_can_be_had_back_are_told_together() -> None:
    """The one is the way out of the other."""
    both = replace(SESSION, state=State.READY, near=NEAR, offer="cas")
    assert render_message(both, UTC) == (
        "→ ann is near its session limit (You've used 92% of your session limit; resets 21:00). "
        "It keeps working; to hand over sooner: agent-relay relay. "
        "cas is available again. To switch back: agent-relay cas, or press the relay key and type /use cas"
    )
