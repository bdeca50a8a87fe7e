"""The line at the bottom of the screen during a handoff: who takes over, why, what is awaited."""

from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum

from agent_relay.domain.session import Handoff, Session, Step
from agent_relay.domain.state import State
from agent_relay.domain.text.counts import count_columns
from agent_relay.domain.text.plain import clean_text
from agent_relay.domain.values.moments import render_moment_text
from agent_relay.session.views.messages import render_limit
from agent_relay.session.warnings import find_spent

SHORTEST_COLUMNS = 18
"""What the last text of a bar fits into: a terminal of 20 columns, and one on either side."""
_HOW = "Esc cancels"
_LONGEST_WHY = 200
"""A reason may quote an agent: what is longer fits into no terminal."""


class DeliveryStage(StrEnum):
    """What a delivery is doing now, beyond what the journal says."""

    NONE = ""
    GIVING = "giving"
    WAITS_FOR_LINE = "waits-for-line"
    """Somebody has typed into the agent's line: it is theirs to send or to clear."""
    SUBMITTED = "submitted"


@dataclass(frozen=True, slots=True)
class DeliveryProgress:
    """A packet on its way into the agent of `leg`. `note` explains a long wait; empty for none."""

    leg: str = ""
    stage: DeliveryStage = DeliveryStage.NONE
    note: str = ""


NO_DELIVERY_PROGRESS = DeliveryProgress()


@dataclass(frozen=True, slots=True)
class HandoffBar:
    """The bar's `texts`: the same message in decreasing length; no text means no bar.

    With `holds_keys`, what is typed is held until the bar is removed; else it goes to the agent. With
    `only_held` the bar is shown only while keys typed earlier are held.
    """

    texts: tuple[str, ...] = ()
    holds_keys: bool = False
    only_held: bool = False


NO_BAR = HandoffBar()


@dataclass(frozen=True, slots=True)
class _Awaited:
    """What a handoff waits for: a clause, one word, who gets the keys, and whether it can be cancelled.

    `agent` is the one the word is about if that is not the successor.
    """

    clause: str
    word: str
    holds_keys: bool = True
    can_stop: bool = True
    agent: str = ""


def build_bar(session: Session, delivery: DeliveryProgress, zone: tzinfo) -> HandoffBar:
    """Return the bar of the session as it is now; none if no handoff is under way; times in `zone`."""
    handoff = session.handoff
    if handoff is None or session.open_turn is not None:
        return NO_BAR
    delivery = delivery if delivery.leg == handoff.leg else NO_DELIVERY_PROGRESS
    awaited = _find_cancelled(handoff) if handoff.is_cancelled else _find_awaited(session, handoff, delivery)
    who = f"{handoff.from_agent} → {_name_successor(handoff)}"
    what = delivery.note or awaited.clause
    how = _HOW if awaited.can_stop and awaited.holds_keys else ""
    long, short = (why[:_LONGEST_WHY] for why in _render_why(session, handoff, zone))
    pair = f"{handoff.from_agent}→{handoff.to_agent}"
    texts = [
        f"relay: {_join(who, long, what, how)}",
        _join(who, short, what, how),
        _join(who, what, how),
        _join(who, awaited.clause),
        f"{pair} {awaited.word}",
        _fit(pair, awaited.agent or f"→{handoff.to_agent}", awaited.word),
    ]
    return HandoffBar(_list_falling(texts), awaited.holds_keys)


def build_question_bar(session: Session) -> HandoffBar:
    """Return the bar to show, if keys are held, while an agent at work asks something; else none."""
    if session.state is not State.ASKING or session.handoff is not None or session.open_turn is not None:
        return NO_BAR
    asks = f"{session.agent} needs an answer"
    texts = [
        f"relay: {asks}: give it here · what you typed before it waits",
        f"{asks} · earlier keys wait",
        asks,
        "needs answer",
    ]
    return HandoffBar(_list_falling(texts), only_held=True)


def _find_awaited(session: Session, handoff: Handoff, delivery: DeliveryProgress) -> _Awaited:
    source, target = handoff.from_agent, handoff.to_agent
    match handoff.step:
        case Step.BEGUN:
            return _Awaited(f"{source} is ending", "ending", agent=source)
        case Step.STOPPED:
            return _Awaited("writing the packet", "writing packet")
        case Step.PUBLISHED | Step.SPAWNING:
            return _Awaited(f"{target} is starting", "starts")
        case _:
            return _find_awaited_of(target, session.state, handoff.step, delivery.stage)


def _find_awaited_of(target: str, state: State, step: Step, stage: DeliveryStage) -> _Awaited:
    """Return what is awaited of a living successor; what it asks comes first: only the user can answer."""
    if state is State.ASKING:
        return _Awaited(f"{target} needs an answer: give it here", "needs answer", holds_keys=False)
    if step is Step.DELIVERED or stage is DeliveryStage.SUBMITTED:
        return _Awaited(f"{target} reads the packet", "reads", can_stop=step is not Step.DELIVERED)
    if stage is DeliveryStage.WAITS_FOR_LINE:
        return _Awaited(f"{target}'s input line has text: send or clear it", "clear input", holds_keys=False)
    if stage is DeliveryStage.GIVING or state is State.READY:
        return _Awaited(f"giving {target} the packet", "giving packet")
    if state is State.BUSY:
        return _Awaited(f"{target} is busy; it gets the packet next", "busy", holds_keys=False)
    return _Awaited(f"{target} is starting", "starts")


def _find_cancelled(handoff: Handoff) -> _Awaited:
    source, target = handoff.from_agent, handoff.to_agent
    left = {Step.BEGUN: f"{source} is ending", Step.STOPPED: "its packet is still written"}
    clause = left.get(handoff.step, f"{target} is being stopped")
    return _Awaited(f"cancelled: {clause}", "cancelled", can_stop=False)


def _name_successor(handoff: Handoff) -> str:
    """Return the successor's name; if it is the same agent, what differs about it."""
    if handoff.model:
        return f"{handoff.to_agent} on {handoff.model}"
    if handoff.to_agent != handoff.from_agent:
        return handoff.to_agent
    return f"{handoff.to_agent} ({'restarted' if handoff.reason == 'failure' else 'new conversation'})"


def _render_why(session: Session, handoff: Handoff, zone: tzinfo) -> tuple[str, str]:
    """Return why the handoff was begun, in a sentence and in a few words."""
    limit = session.limit
    if find_spent(session, handoff):
        return handoff.why, "budget used up"
    if handoff.reason == "rate_limit" and limit is not None and limit.agent == handoff.from_agent:
        until = render_moment_text(limit.until, handoff.began_at, zone)
        return render_limit(limit, handoff.began_at, zone), f"limit until {until}" if until else "limit"
    if handoff.reason == "context":
        return handoff.why, "context full"
    if handoff.reason == "failure":
        return handoff.why, f"{handoff.from_agent} failed"
    is_asked = handoff.why in {"", "asked for"}
    return ("on request", "on request") if is_asked else (handoff.why, "")


def _join(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _fit(pair: str, agent: str, word: str) -> str:
    """Return the longest form that fits a very narrow terminal: the names are dropped first."""
    forms = (f"{pair} {word}", f"{agent} {word}", word)
    return next(form for form in forms if count_columns(form) <= SHORTEST_COLUMNS)


def _list_falling(texts: list[str]) -> tuple[str, ...]:
    """Return the texts without those that are no shorter than the one before."""
    falling: list[str] = []
    for text in texts:
        clean = " ".join(clean_text(text).split())
        if not falling or count_columns(clean) < count_columns(falling[-1]):
            falling.append(clean)
    return tuple(falling)
