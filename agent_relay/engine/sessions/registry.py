"""The sessions at work in this daemon by id, and the working trees it has claimed for them."""

import asyncio
import contextlib
import logging
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from functools import partial

from agent_relay.detect.window_usage import WindowUsage
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.inputs import LegGone
from agent_relay.domain.names import get_journal_path
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values import AgentName, Owner, has_passed, replace
from agent_relay.engine._effect_runner import EffectRunner
from agent_relay.engine.legs import shutdown
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.threads import BackgroundTasks, ChangeNotifier
from agent_relay.session.decision import Outcome
from agent_relay.session.fold import fold_events
from agent_relay.session.ownership import OwnerRelation, build_move, find_owner_relation
from agent_relay.store import tree_owner
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, was_moved, write_entry
from agent_relay.store.session_journals import SessionJournal, ensure_indexed, open_journal

_log = logging.getLogger(__name__)

_OURS_S = 15.0
"""Longest wait for an earlier daemon to release its claim, in seconds: more than it waits for its end."""
_LOOK_S = 0.1


class TreeClaims:
    """The claims of one daemon. `is_used` tells whether a session that has not ended is at work in a tree."""

    def __init__(self, owner: Owner, is_used: Callable[[str], bool]) -> None:
        self._owner = owner
        self._is_used = is_used
        self._claims: dict[str, int] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._entering: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def enter(self, root: str, *, by_hand: bool = False) -> AsyncIterator[None]:
        """Claim the tree while a session is opened in it, and for as long as one is at work there.

        Raises TreeOwnedError if it is somebody else's; see `claim_tree` for `by_hand`.
        """
        self._entering[root] += 1
        try:
            await self._claim(root, by_hand=by_hand)
            yield
        finally:
            self._entering[root] -= 1
            await self.tidy(root)

    async def tidy(self, root: str) -> None:
        """Release the claim of a tree in which none of our sessions is at work any more."""
        async with self._turns[root]:
            if root in self._claims and not self._entering[root] and not self._is_used(root):
                await asyncio.to_thread(tree_owner.release_tree, root, self._claims.pop(root))

    async def follow_move(self, old: str, new: str) -> None:
        """Move the claim of a renamed tree to its new path."""
        async with self._turns[old], self._turns[new]:
            claim = self._claims.pop(old, None)
            if claim is None:
                return
            if new in self._claims or not await asyncio.to_thread(tree_owner.is_claim_of, claim, new):
                tree_owner.close_claim(claim)
            else:
                self._claims[new] = claim

    def close(self) -> None:
        """Close the claims; their trees stay recorded as ours, for the next daemon."""
        for claim in self._claims.values():
            tree_owner.close_claim(claim)
        self._claims.clear()

    async def _claim(self, root: str, *, by_hand: bool) -> None:
        async with self._turns[root]:
            held = self._claims.get(root)
            if held is not None:
                if not await asyncio.to_thread(tree_owner.is_claim_gone, held):
                    return
                # Its folder was deleted under us, and others would find nobody there.
                tree_owner.close_claim(self._claims.pop(root))
            until = asyncio.get_running_loop().time() + _OURS_S
            while True:
                try:
                    self._claims[root] = await asyncio.to_thread(
                        tree_owner.claim_tree, root, self._owner, by_hand=by_hand
                    )
                except tree_owner.TreeOwnedError as error:
                    is_ours = (
                        error.owner.is_known
                        and find_owner_relation(error.owner, self._owner) is OwnerRelation.SELF
                    )
                    if not is_ours or asyncio.get_running_loop().time() >= until:
                        raise
                else:
                    return
                await asyncio.sleep(_LOOK_S)


_REMEMBERED = timedelta(minutes=1)
"""Time an ended session stays at work: terminals still ask how it ended."""

_SETTLED_S = 5.0
_ENDINGS_S = 7.0
"""Longest wait of a stopped daemon for what is ending, in seconds: nearly every agent's polite steps."""


class SessionRegistry:
    """The sessions at work in one daemon. Use it from the event loop only.

    `lock` is held while a session is looked for or made, but not during waits. `changes` counts the changes
    of all sessions. `trees` are the working trees claimed for them.
    `owned_elsewhere` are the sessions another owner has, or may have, each with the error for the user: they
    are left alone.
    """

    def __init__(self, services: Services, narratives: NarrativeWriter) -> None:
        self.services = services
        self._narratives = narratives
        self.lock = asyncio.Lock()
        self._hosts: dict[str, Host] = {}
        self.changes = ChangeNotifier()
        self._wakers = BackgroundTasks()
        self.trees = TreeClaims(services.owner, self._is_at_work_in)
        self.owned_elsewhere: dict[str, tree_owner.TreeOwnedError] = {}

    def __contains__(self, session_id: object) -> bool:
        """Tell whether the session is in the registry."""
        return session_id in self._hosts

    def get(self, session_id: str) -> Host:
        """Return the session of that id.

        Raises WrongUseError if no such session is at work, TreeOwnedError if another owner has it.
        """
        host = self._hosts.get(session_id)
        if host is None and session_id in self.owned_elsewhere:
            raise self.owned_elsewhere[session_id]
        if host is None:
            raise WrongUseError(f"no session {session_id[:26]} is at work", hint="See: agent-relay sessions")
        return host

    def __iter__(self) -> Iterator[Host]:
        """Iterate over all sessions, including those that ended a moment ago."""
        return iter(list(self._hosts.values()))

    def at_work(self) -> list[Session]:
        """Return the sessions that have not ended, newest change first."""
        living = [host.session for host in self._hosts.values() if host.session.state is not State.ENDED]
        return sorted(living, key=lambda session: session.updated_at, reverse=True)

    async def look(self) -> None:
        """Bring all sessions up to what their journals show by now, and the index to those at work."""
        await asyncio.to_thread(self._name_all, self.at_work())
        await asyncio.gather(*(host.look() for host in self))

    def list_windows(self) -> dict[str, tuple[WindowUsage, ...]]:
        """Return, by agent, the usage windows it last reported, in whichever session."""
        return self.services.windows.list_known(self.services.clock.now())

    def get_socket(self, leg_id: str) -> str:
        """Return the path of the socket of the leg's holder."""
        return f"{self.services.folders.legs}/{leg_id}/sock"

    def find_sign_in(self, agent: str) -> str:
        """Return what a person types to sign in to `agent`; empty if its adapter does not say it."""
        loaded = self.services.adapters.get(AgentName(agent))
        return loaded.adapter.sign_in if loaded is not None else ""

    def add(self, journal: SessionJournal) -> Host:
        """Add the journal's session, at work from now on; close a journal whose history cannot be used."""
        build_runner = partial(EffectRunner, self.services, self._narratives, self.trees.enter)
        host = None
        try:
            host = Host(self.services, journal, build_runner, changed=self._changed, above=self.changes)
        finally:
            if host is None:
                journal.close()
        host.start()
        host.changes.notify()
        self._hosts[host.session.id] = host
        self.owned_elsewhere.pop(host.session.id, None)
        return host

    async def _resume(self, journal: SessionJournal, root: str) -> None:
        """Reopen the journal's session and monitor its leg if that lives; keep nothing of it if this fails.

        It is in `root` now, whatever its journal says so far.
        """
        host = self.add(journal)
        if host.session.root != root:
            host.tell(Outcome((build_move(host.session, root),)))
        if host.session.state is State.ENDED:
            if host.session.standby is not None:
                await shutdown.end_standby(self.services, host.session)
                host.tell(LegGone(host.session.standby.leg.id, "lost"))
            return
        news = None
        try:
            news = await host.runner.adopt(host.session)
        finally:
            if news is None:
                self._hosts.pop(host.session.id, None)
                await host.close()
        # What follows may be the start of an agent, which needs the user's environment.
        host.tell(news, ready=None if news.leg_lives else host.runner.await_launch_environment)

    async def find(self, session_id: str, root: str = "") -> Host:
        """Return the session as `get` does, after looking again for one that another owner had.

        With `root` it is followed there, if its folder was moved.
        """
        if root or session_id in self.owned_elsewhere:
            async with self.lock:
                if root:
                    await self.follow_move(session_id, root)
                if session_id in self.owned_elsewhere:
                    await self.enter_released(self.owned_elsewhere[session_id].root)
        return self.get(session_id)

    async def follow_move(self, session_id: str, root: str) -> None:
        """Reopen the session in `root` if its folder was moved there; raise RelayError as `reopen` does."""
        folders = self.services.folders
        if not await asyncio.to_thread(was_moved, root, folders.sessions, session_id):
            return
        _log.info("session-moved session=%s", session_id)
        before = await asyncio.to_thread(find_root, folders.sessions, session_id)
        await self.let_go(session_id)
        await self.trees.follow_move(before, root)
        await asyncio.to_thread(write_entry, folders.sessions, session_id, root=root, cwd=root)
        await self.reopen(session_id)

    async def reopen(self, session_id: str) -> None:
        """Reopen the session, with or without a leg.

        Raises WrongUseError if it is unknown, RelayError if its journal is gone.
        """
        folders = self.services.folders
        root = await asyncio.to_thread(find_root, folders.sessions, session_id)
        if not root:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        path = get_journal_path(root, session_id)
        if not await asyncio.to_thread(os.path.exists, path):
            raise RelayError(f"the journal {path} is gone")
        await self.enter(session_id, root)

    async def take_over(self, root: str) -> None:
        """Claim the tree, because a person says that its owner, which cannot be seen from here, is gone.

        Raises TreeOwnedError if that owner lives.
        """
        async with self.lock, self.trees.enter(root, by_hand=True):
            await self.enter_released(root)

    async def enter_released(self, root: str) -> None:
        """Reopen the sessions in `root` that another owner had.

        Raises TreeOwnedError if that owner still has them.
        """
        for session_id, known in list(self.owned_elsewhere.items()):
            if known.root != root:
                continue
            session = fold_events(await asyncio.to_thread(read_events, get_journal_path(root, session_id)))
            if session is None or session.state is State.ENDED:
                self.owned_elsewhere.pop(session_id, None)
            else:
                await self.enter(session_id, root)

    async def enter(self, session_id: str, root: str) -> None:
        """Reopen the session that is in `root`. Raise TreeOwnedError if the tree is somebody else's."""
        async with self.trees.enter(root):
            journal = await asyncio.to_thread(open_journal, self.services.folders, session_id, root)
            await self._resume(journal, root)

    def offer(self, launch_environment: LaunchEnvironment, *, root: str, session: str = "") -> None:
        """Offer a terminal's environment to the sessions in `root` that lost theirs, or to the one named."""
        for host in self:
            if host.session.id == session or (not session and host.session.root == root):
                host.runner.offer(launch_environment)

    async def let_go(self, session_id: str) -> None:
        """Stop everything of the session in this process; its agent and holder are left as they are."""
        host = self._hosts.pop(session_id, None)
        if host is not None:
            await host.close()

    async def retire(self) -> None:
        """Remove the sessions that ended a while ago: each holds a file and a task."""
        now = self.services.clock.now()
        for host in list(self._hosts.values()):
            session = host.session
            remembered = (
                _REMEMBERED if session.turn is None or host.followers.is_done else shutdown.UNREAD_RETENTION
            )
            is_old = has_passed(remembered, session.updated_at, now)
            if session.state is State.ENDED and is_old and host.is_idle:
                del self._hosts[session.id]
                await host.close()
                await shutdown.forget_streams(self.services, session)
                await shutdown.note_ended(self.services, session)

    async def abandon(self, session_id: str) -> Session:
        """End everything of a session whose folder is gone; return it as it last was."""
        host = self._hosts.pop(session_id)
        await host.stop_agent()
        await host.close()
        legs = tuple(replace(leg, how=leg.how or "lost") for leg in host.session.legs)
        left = replace(host.session, legs=legs)
        await shutdown.end_standby(self.services, left)
        await shutdown.release_legs(self.services, left)
        await shutdown.forget_streams(self.services, left)
        await self.trees.tidy(host.session.root)
        return host.session

    async def settle(self) -> None:
        """Wait until every session's inputs are processed, as far as disks allow, or 5 s have passed.

        A session that a new daemon found may have ended before anybody could be at work in it.
        """
        await self.changes.wait_while(
            lambda: any(not (host.is_idle or host.refusal) for host in self), _SETTLED_S
        )

    async def stop(self) -> None:
        """Stop everything in this process; agents and holders are left as they are.

        Those that are ending are waited for: it may be long until another daemon could collect them.
        """
        if not await self.changes.wait_while(lambda: any(host.is_ending for host in self), _ENDINGS_S):
            _log.info("still-ending sessions=%d", sum(host.is_ending for host in self))
        await asyncio.gather(*(host.close() for host in self._hosts.values()), return_exceptions=True)
        self.trees.close()

    def _is_at_work_in(self, root: str) -> bool:
        return any(
            host.session.root == root and host.session.state is not State.ENDED
            for host in self._hosts.values()
        )

    def _name_all(self, sessions: list[Session]) -> None:
        for session in sessions:
            ensure_indexed(self.services.folders, session)

    def _changed(self, session: Session) -> None:
        self.services.teller.tell(session.id)
        self._wakers.begin(self._wake(session), name="changed")

    async def _wake(self, session: Session) -> None:
        if session.state is not State.ENDED:
            await asyncio.to_thread(ensure_indexed, self.services.folders, session)
        if session.state is not State.ENDED:
            return
        await self.trees.tidy(session.root)
        host = self._hosts.get(session.id)
        if host is not None and host.followers.is_done:
            # Who followed its last turn may have read all of it before the session was over.
            await shutdown.forget_streams(self.services, session)
