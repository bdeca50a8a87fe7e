"""One session at work: its host, its effect runner, and who follows its headless turn."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_relay.domain.effects import StopLeg
from agent_relay.domain.inputs import StopAsked, TurnAsked
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.engine._effect_runner import EffectRunner
from agent_relay.engine._host import Host
from agent_relay.engine._tree_claims import TreeClaims
from agent_relay.engine.legs.live_leg import LaunchEnvironment
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.services import Services
from agent_relay.engine.sessions._notifications import SessionNotifier
from agent_relay.engine.sessions.change_notifier import ChangeNotifier
from agent_relay.session.turns.lifecycle import check_free
from agent_relay.store.session_journals import SessionJournal

_LOST_S = 60.0
"""A follower of a turn asks three times as often; one silent for longer counts as gone."""
_ENDS_S = 5.0
"""Longest wait for the rest of a turn's end: the polite steps of a headless agent take no time."""


@dataclass(slots=True)
class TurnFollowers:
    """Who follows a headless turn, and when each last read from it (monotonic seconds).

    `is_done` once all have read it.
    """

    followers: dict[int, float] = field(default_factory=dict)
    is_done: bool = False

    def begin(self) -> None:
        """Reset for another turn, of which nobody has read anything."""
        self.followers.clear()
        self.is_done = False

    def note(self, follower: int, at_s: float) -> None:
        """Note that `follower` reads on."""
        self.followers[follower] = at_s

    def leave(self, follower: int, at_s: float) -> None:
        """Note that `follower` has read it to its end; one that was silent for a while does not count."""
        self.followers.pop(follower, None)
        self.is_done = all(at_s - last_s > _LOST_S for last_s in self.followers.values())


@dataclass(frozen=True, slots=True)
class ActiveSession:
    """A session's host and effect runner (`stage`); `changes` counts its changes and its agent's output.

    `patience_s` is how long the rest of a turn's end is waited for.
    """

    host: Host
    stage: EffectRunner
    changes: ChangeNotifier
    notifying: SessionNotifier
    reading: TurnFollowers = field(default_factory=TurnFollowers)
    patience_s: float = _ENDS_S

    @property
    def session(self) -> Session:
        """The session now."""
        return self.host.session

    @property
    def trouble(self) -> str:
        """What keeps the session from going on, for the user; empty for nothing."""
        return self.host.trouble or self.stage.trouble

    @property
    def is_ending(self) -> bool:
        """Whether an end is under way that will be complete in a moment."""
        if self.host.refusal:
            return False
        is_stopping = self.session.state is State.STOPPING
        return is_stopping or not self.host.is_idle or self.stage.is_collecting

    def is_read(self) -> bool:
        """Tell whether the followers of its headless turn have read everything."""
        return self.reading.is_done

    @property
    def is_leaving(self) -> bool:
        """Whether the end of its last turn is not complete yet.

        Followers of a turn learn of its end before its agent is gone; a journal between two lines of one
        decision is no state to decide anything from.
        """
        leg = self.session.living_leg
        return self.is_ending or (leg is not None and leg.headless and self.session.open_turn is None)

    async def see_end(self) -> bool:
        """Wait until the end of its last turn is complete, at most `patience_s`; return whether it is."""
        return await self.changes.wait_while(lambda: self.is_leaving, self.patience_s)

    async def take_turn(self, luggage: LaunchEnvironment, asked: TurnAsked) -> None:
        """Begin the turn; its legs get `luggage` and its prompt as it was asked.

        Raises WrongUseError if something else is under way: what that is still to be given stays the same.
        """
        check_free(self.session)
        self.stage.take(luggage, asked.prompt)
        await self.host.ask(asked)

    async def end_unwritten(self, asked: StopAsked) -> None:
        """Stop its agent although nothing can be written; what was `asked` is journalled later."""
        self.host.tell(asked)
        living = self.session.living_leg
        happened = await self.stage.perform(StopLeg(living.id)) if living is not None else None
        if happened is not None:
            self.host.tell(happened)

    async def abandon(self) -> None:
        """Stop its agent and everything of it in this process: for when nothing can be written."""
        living = self.session.living_leg
        if living is not None:
            await self.stage.perform(StopLeg(living.id))
        await self.close()

    async def close(self) -> None:
        """Stop everything of it in this process; its agent and holder are left as they are."""
        await self.notifying.close()
        await self.stage.close()
        await self.host.close()


def activate_session(
    services: Services,
    narrating: NarrativeWriter,
    trees: TreeClaims,
    journal: SessionJournal,
    *,
    changed: Callable[[Session], None],
    above: ChangeNotifier,
) -> ActiveSession:
    """Return the session of `journal`, at work; if its history cannot be used, close it and raise why.

    Its changes are counted by `above`, too.
    """
    changes = ChangeNotifier(above)
    stage = EffectRunner(services, narrating, trees, changes.notify)
    notifying = SessionNotifier(services, len(journal.events), stage)

    def see(session: Session) -> None:
        stage.see(session)
        notifying.see(session, journal.events)
        changes.notify()
        changed(session)

    host = None
    try:
        host = Host(
            journal,
            services.clock,
            build_world=stage.build_world,
            perform=stage.perform,
            redact=stage.redact,
            changed=see,
            report=services.report,
        )
    finally:
        if host is None:
            journal.close()
    stage.host = host
    host.start()
    changes.notify()
    return ActiveSession(host, stage, changes, notifying)
