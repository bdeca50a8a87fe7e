"""The one table of state changes: where each event leads a session from each state."""

from collections.abc import Mapping
from types import MappingProxyType

from agent_relay.domain.events.handoff import (
    HandoffBegun,
    HandoffCancelled,
    HandoffClosed,
    HandoffConfirmed,
    HandoffFailed,
    HandoffRetried,
    PacketDelivered,
    PacketPublished,
    PacketSaved,
    PredecessorStopped,
)
from agent_relay.domain.events.session import (
    Body,
    ClockWasSetBack,
    LegAnswered,
    LegAsking,
    LegBusy,
    LegContinues,
    LegEnded,
    LegNamed,
    LegPrompted,
    LegReady,
    LegStarted,
    LegStarting,
    PromptSeen,
    ResumeAgreed,
    ReturnOffered,
    SessionEnded,
    SessionMoved,
    SessionRested,
    SessionStopping,
    SessionWoke,
    SignalSeen,
    TaskDelivered,
    Unknown,
)
from agent_relay.domain.events.turn import ChatBegun, SessionWaits, TurnBegun, TurnEnded
from agent_relay.domain.events.usage import (
    BudgetApplied,
    BudgetNoted,
    ContextCompacting,
    ContextNoted,
    ContextSpared,
    DraftBegun,
)
from agent_relay.domain.state import LIVE, State

S = State


def _to(target: State, *sources: State) -> dict[State, State]:
    return dict.fromkeys(sources, target)


def _stay(*sources: State) -> dict[State, State]:
    return {source: source for source in sources}


TRANSITIONS: Mapping[type[Body], Mapping[State, State]] = MappingProxyType(
    {
        LegStarting: _to(S.STARTING, S.STARTING, S.READY, S.HANDING_OFF, S.RESTING, S.ENDED),
        LegStarted: _stay(*S),
        LegNamed: _stay(*S),
        LegReady: _to(S.READY, *LIVE),
        LegBusy: _to(S.BUSY, *LIVE),
        LegPrompted: _stay(*S),
        PromptSeen: _stay(*S),
        LegAnswered: _stay(*S),
        ClockWasSetBack: _stay(*S),
        LegAsking: _to(S.ASKING, *LIVE),
        SignalSeen: _stay(*S),
        HandoffBegun: _to(S.HANDING_OFF, *LIVE, S.LIMITED, S.RESTING, S.ENDED),
        PredecessorStopped: _stay(S.HANDING_OFF),
        PacketPublished: _stay(S.HANDING_OFF),
        PacketSaved: _stay(*S),
        PacketDelivered: _stay(*LIVE),
        TaskDelivered: _stay(*S),
        SessionMoved: _stay(*S),
        HandoffConfirmed: _stay(*LIVE),
        HandoffFailed: _stay(*LIVE) | _to(S.LIMITED, S.HANDING_OFF, S.STOPPING, S.LIMITED),
        HandoffCancelled: _to(S.HANDING_OFF, *LIVE, S.HANDING_OFF),
        HandoffRetried: _stay(*LIVE) | _to(S.HANDING_OFF, S.LIMITED, S.RESTING, S.ENDED),
        HandoffClosed: _stay(*S),
        LegEnded: _to(S.STOPPING, *LIVE, S.STOPPING) | _stay(S.LIMITED, S.HANDING_OFF, S.RESTING, S.ENDED),
        SessionRested: _to(S.RESTING, *LIVE, S.LIMITED, S.RESTING, S.HANDING_OFF),
        SessionWoke: _to(S.READY, S.RESTING),
        ReturnOffered: _stay(*S),
        ResumeAgreed: _stay(*S),
        LegContinues: _stay(*S),
        ContextNoted: _stay(*S),
        ContextCompacting: _stay(*S),
        ContextSpared: _stay(*S),
        DraftBegun: _stay(*S),
        BudgetNoted: _stay(*S),
        BudgetApplied: _stay(*S),
        SessionStopping: _to(S.STOPPING, *LIVE, S.LIMITED, S.RESTING, S.HANDING_OFF, S.STOPPING),
        SessionEnded: _to(S.ENDED, S.STOPPING, S.LIMITED, S.RESTING, S.STARTING, S.ENDED),
        ChatBegun: _stay(S.STARTING, S.READY, S.RESTING, S.ENDED),
        TurnBegun: _to(S.STARTING, S.STARTING, S.READY, S.RESTING, S.ENDED),
        TurnEnded: _stay(*S),
        SessionWaits: _to(S.READY, S.STOPPING),
        Unknown: _stay(*S),
    }
)
"""Where each event leads from each state; a deciding limit also leads from a live state to limited."""
