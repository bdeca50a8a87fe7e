"""The rule that picks the next agent, with a reason for everyone it skips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agent_relay.domain.text.limit_names import name_rest
from agent_relay.domain.values.moments import render_moment

_TRIES = 2
"""How often an agent may fail to take over before the next one is asked: one crash is bad luck."""


@dataclass(frozen=True, slots=True)
class Availability:
    """What is known about one agent now.

    `resting` is whether the ledger says it rests; `rests_until` when, `None` while it rests without a
    known reset. `capabilities` are what its adapter declares. `fault` is why it could not be started
    although it is installed, empty for nothing: our installation that would start it no longer exists.
    """

    installed: bool
    signed_in: bool = True
    resting: bool = False
    rests_until: datetime | None = None
    scope: str = ""
    capabilities: frozenset[str] = frozenset()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy's answer.

    `successor` is empty if no agent can take over; `earliest` is the first reset of those resting.
    """

    successor: str
    skipped: tuple[str, ...]
    earliest: datetime | None


def choose_successor(
    roster: Sequence[str],
    availability: Mapping[str, Availability],
    *,
    current: str,
    tried: Sequence[str] = (),
    now: datetime,
    zone: tzinfo = UTC,
    needs: Sequence[str] = (),
) -> Choice:
    """Return the first agent of the roster, by preference, that can take over from `current` at `now`.

    `current` is never its own successor. `needs` are capabilities the successor has to have. Reasons read
    `agent: why`, in the order considered, with the moments in `zone`.
    """
    skipped: list[str] = []
    resets: list[datetime] = []
    known = availability.get(current)
    if known is not None and known.resting and known.rests_until is not None:
        resets.append(known.rests_until)
    successor = ""
    for name in roster:
        if name == current:
            continue
        why = explain_unavailable(
            availability.get(name), tries=tried.count(name), now=now, zone=zone, needs=needs
        )
        if not why:
            successor = name
            break
        skipped.append(f"{name}: {why}")
        state = availability.get(name)
        if state is not None and state.resting and state.rests_until is not None:
            resets.append(state.rests_until)
    return Choice(successor, tuple(skipped), min(resets, default=None))


def explain_unavailable(
    state: Availability | None,
    *,
    tries: int = 0,
    now: datetime,
    zone: tzinfo = UTC,
    needs: Sequence[str] = (),
) -> str:
    """Return what keeps an agent from taking over at `now`; empty for nothing."""
    if state is None or not state.installed:
        return "not installed"
    if state.fault:
        return state.fault
    if not state.signed_in:
        return "not signed in"
    if lacking := [need for need in needs if need not in state.capabilities]:
        return f"its adapter does not declare {', '.join(lacking)}"
    if state.resting and (state.rests_until is None or state.rests_until > now):
        return _tell_rest(state, now, zone)
    return "could not take over just now" if tries >= _TRIES else ""


def _tell_rest(state: Availability, now: datetime, zone: tzinfo) -> str:
    if state.rests_until is None:
        return f"rests until you say otherwise ({name_rest(state.scope)})"
    return f"rests until {render_moment(state.rests_until, now, zone)}"
