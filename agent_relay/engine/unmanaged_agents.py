"""Follow agents that relay did not start through their hooks, and notify the user of their limits.

A report names a conversation and its transcript, which is followed from then on: some agents have no hook
that tells of a limit. Nothing is done to the agent, which may go on by itself: the rest is the user's choice.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec

from agent_relay.agents.adapters import LoadedAdapter, find_program, load_rules
from agent_relay.agents.source_paths import LegPlace
from agent_relay.detect.detector import Detector
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.documents.agent_configuration import Hooks
from agent_relay.domain.documents.config import NOTIFY_AUTO, NOTIFY_OFF, find_webhook_addresses
from agent_relay.domain.documents.record_matching import find_dotted, is_meant
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.effects import NoteRest
from agent_relay.domain.errors import RelayError
from agent_relay.domain.limits import Kind, Record, Scope, Signal, Source
from agent_relay.domain.moments import render_moment
from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.operations import HOOKS_FOLLOW, Handler, Peer
from agent_relay.domain.session import Limit, Session
from agent_relay.domain.text.names import agent_command
from agent_relay.domain.values import AgentName
from agent_relay.engine.services import Services
from agent_relay.engine.threads import BackgroundTasks
from agent_relay.redact.text import redact_text
from agent_relay.session.decision import choose_successor
from agent_relay.session.views.messages import render_limit
from agent_relay.sources.native_sessions import find_running
from agent_relay.sources.record_fields import find_record_time
from agent_relay.sources.record_framing import Framing, build_framer
from agent_relay.store.session_index import find_near_root
from agent_relay.system.disk.files import read_bounded, read_end, write_atomic
from agent_relay.system.processes import read_environ
from agent_relay.terminal.notification import clean, find_form, render_notification

_log = logging.getLogger(__name__)

_REPORTS = "hooks.jsonl"
_ANNOUNCED = "announced"
_RECENT = timedelta(hours=12)
"""The age from which reports are ignored: their conversations have most likely ended."""
_STALE = timedelta(minutes=15)
"""The age from which a limit is not notified: the user has seen it on the agent's screen."""
_EARLIER = timedelta(seconds=5)
"""Longest time by which rows may be older than the hook report they belong to."""
_SETTLES_S = 1.0
"""Seconds an agent needs to write when its limit resets, and whether it goes on by itself."""
_TAIL_BYTES = 256 << 10
_MOST = 64
"""Most conversations followed at once; beyond that the oldest are dropped."""
_ACTS = frozenset({Scope.MODEL, Scope.ACCOUNT, Scope.BILLING})
_KINDS = frozenset({Kind.LIMIT, Kind.SILENT_LIMIT})
_LONGEST_PATH = 4096


class _Conversation(msgspec.Struct):
    """One conversation of an agent that relay did not start; `limit` is the newest, seen at `limit_at`."""

    agent: str
    native_id: str
    cwd: str
    transcript: str
    rules: Rules
    detector: Detector
    limit: Signal | None = None
    limit_at: datetime | None = None
    is_due: bool = False

    @property
    def followed_as(self) -> str:
        """The name by which its transcript is followed."""
        return f"conversation {self.agent} {self.native_id}"


class UnmanagedAgents:
    """The conversations that hooks reported. Use it from the event loop only.

    `list_sessions` returns the sessions at work: what these go on with is theirs to watch.
    """

    def __init__(self, services: Services, list_sessions: Callable[[], Iterable[Session]]) -> None:
        self._services = services
        self._list_sessions = list_sessions
        self._followed: set[str] = set()
        self._conversations: dict[tuple[str, str], _Conversation] = {}
        self._announced: dict[str, datetime] = {}
        self._tasks = BackgroundTasks(services.report)

    async def follow(self) -> list[str]:
        """Follow the reports of every agent that has relay's hooks; return the agents' names."""
        for name, loaded in self._services.adapters.items():
            folder = os.path.join(self._services.folders.hooks, name)
            hooks = loaded.adapter.hooks
            if hooks is None or not hooks.files or name in self._followed:
                continue
            if not await asyncio.to_thread(os.path.isdir, folder):
                continue
            self._followed.add(name)
            self._announced[name] = await asyncio.to_thread(_read_moment, os.path.join(folder, _ANNOUNCED))
            place = LegPlace(f"hooks {name}", self._services.clock.now() - _RECENT, {"leg_folder": folder})
            spec = SourceSpec(role="hook", framing="jsonl", path=f"{{leg_folder}}/{_REPORTS}")
            hear = partial(self._hear_reports, loaded, hooks)
            self._services.evidence.follow(place, (spec,), hear, is_new=False)
        return sorted(self._followed)

    async def close(self) -> None:
        """Cancel the notifications that are still due."""
        await self._tasks.close()

    async def _hear_reports(self, loaded: LoadedAdapter, hooks: Hooks, records: Sequence[Record]) -> None:
        for record in records:
            found = {name: find_dotted(record.data, path) for name, path in hooks.names.items()}
            named = {str(name): one for name, one in found.items() if isinstance(one, str) and one}
            is_usable = len(named) == len(hooks.names) and all(map(_is_usable, named.values()))
            if not is_usable or record.at is None:
                continue
            if not os.path.isabs(named["transcript"]) or not os.path.isabs(named["cwd"]):
                continue
            conversation = await self._find(loaded, named, record.at)
            self._hear(conversation, (record,))

    async def _find(self, loaded: LoadedAdapter, named: Mapping[str, str], at: datetime) -> _Conversation:
        """Return the conversation that a report names; read and follow it if it is new."""
        agent = loaded.adapter.name
        key = (agent, named["native_id"])
        known = self._conversations.get(key)
        if known is not None and known.transcript == named["transcript"]:
            known.cwd = named["cwd"]
            return known
        if known is not None:
            await self._leave(key)
        fitted = await asyncio.to_thread(self._services.fit_installed, agent, os.environ)
        rules = await asyncio.to_thread(load_rules, fitted)
        began = at - _EARLIER
        detector = Detector(
            rules,
            agent=AgentName(agent),
            started_at=began,
            zone=self._services.zone,
            patience_s=self._services.config.patience_s,
        )
        new = _Conversation(agent, named["native_id"], named["cwd"], named["transcript"], rules, detector)
        while len(self._conversations) >= _MOST:
            await self._leave(next(iter(self._conversations)))
        self._conversations[key] = new
        framing: Framing = next(
            (one.framing for one in loaded.adapter.sources if one.role == "transcript"), "jsonl"
        )
        # The path is a value of the pattern: whatever it holds, nothing in it is wild.
        place = LegPlace(new.followed_as, began, {"home": new.transcript})
        spec = SourceSpec(role="transcript", framing=framing, path="{home}")
        hear = partial(self._hear_rows, new)
        self._services.evidence.follow(place, (spec,), hear, is_new=True)
        self._hear(new, await asyncio.to_thread(_read_tail, new.transcript))
        return new

    async def _leave(self, key: tuple[str, str]) -> None:
        await self._services.evidence.leave(self._conversations.pop(key).followed_as)

    async def _hear_rows(self, conversation: _Conversation, records: Sequence[Record]) -> None:
        self._hear(conversation, records)

    def _hear(self, conversation: _Conversation, records: Sequence[Record]) -> None:
        """Note a limit that the records show, or its end once the agent has answered again."""
        now = self._services.clock.now()
        for record in records:
            signals = conversation.detector.hear(record, now=now)
            at = min(record.at or now, now)  # one from the future would silence all until then
            for signal in signals:
                if signal.decides and signal.kind in _KINDS and signal.scope in _ACTS:
                    conversation.limit, conversation.limit_at = signal, at
            if conversation.limit is not None and _is_answer(conversation.rules, record):
                limit, since = conversation.limit, conversation.limit_at
                if since is None or at > since:
                    conversation.limit = None
                    self._tasks.begin(self._end_rest(limit, at), name="unmanaged agent")
        if conversation.limit is not None and not conversation.is_due:
            conversation.is_due = True
            self._tasks.begin(self._announce_soon(conversation), name="unmanaged agent")

    async def _end_rest(self, limit: Signal, at: datetime) -> None:
        with contextlib.suppress(RelayError):
            await asyncio.to_thread(self._services.end_rests, limit.agent, limit.model, at)

    async def _announce_soon(self, conversation: _Conversation) -> None:
        """Record the limit and notify the user, once the agent has had time to write what it does next."""
        try:
            await asyncio.sleep(_SETTLES_S)
            limit, at = conversation.limit, conversation.limit_at
            if limit is None or at is None or at <= self._announced[conversation.agent]:
                return
            if any(
                leg.native_id == conversation.native_id for one in self._list_sessions() for leg in one.legs
            ):
                return
            self._announced[conversation.agent] = at
            await asyncio.to_thread(self._write_down, limit, at)
            _log.info("unmanaged-limit agent=%s scope=%s", limit.agent, limit.scope)
            if self._services.clock.now() - at < _STALE:
                await self._notify(conversation, limit, at)
        finally:
            conversation.is_due = False

    def _write_down(self, limit: Signal, at: datetime) -> None:
        text = redact_text(limit.evidence.text).text
        path = os.path.join(self._services.folders.hooks, limit.agent, _ANNOUNCED)
        with contextlib.suppress(RelayError):
            write_atomic(path, at.isoformat().encode(), durable=False)
        if limit.resets_at is None or limit.resets_at > self._services.clock.now():
            with contextlib.suppress(RelayError, OSError):
                self._services.note_rest(
                    NoteRest(limit.agent, limit.scope, limit.resets_at, text, model=limit.model)
                )

    async def _notify(self, conversation: _Conversation, limit: Signal, at: datetime) -> None:
        services = self._services
        settings = services.config.notify
        if settings == (NOTIFY_OFF,):
            return
        pids = await asyncio.to_thread(self._list_programs, conversation)
        # Which agents are signed in, and where the desktop is, stands in its environment, not in ours.
        environ = next(filter(None, map(read_environ, pids)), dict(os.environ))
        title, text = await asyncio.to_thread(self._build_text, conversation, limit, environ)
        view = {
            "schema": "agent-relay/notification",
            "version": 1,
            "id": f"{limit.agent}:{conversation.native_id}:{at.isoformat()}",
            "session": "",
            "kind": "limit",
            "at": at.isoformat(),
            "title": title,
            "text": text,
        }
        for address in find_webhook_addresses(settings):
            services.messengers.post(address, view)
        bell = NOTIFY_AUTO in settings or "bell" in settings
        osc = NOTIFY_AUTO in settings or "osc" in settings
        count = 0
        if bell or osc:
            count = await asyncio.to_thread(notify_terminals, pids, title, text, bell=bell, osc=osc)
        if "desktop" in settings or (NOTIFY_AUTO in settings and not count):
            await services.messengers.show(environ, title, text)

    def _build_text(
        self, conversation: _Conversation, limit: Signal, environ: Mapping[str, str]
    ) -> tuple[str, str]:
        """Return what happened and what the user may do, a line each. Reads disk."""
        services = self._services
        now, root = services.clock.now(), find_near_root(conversation.cwd)
        until = limit.resets_at.isoformat() if limit.resets_at else ""
        said = Limit(
            limit.agent, limit.scope, until, limit.evidence.text, limit.evidence.source, now, limit.model
        )
        place = os.path.basename(conversation.cwd.rstrip("/"))
        title = f"{place}: {render_limit(said, now, services.zone)}"
        roster: Sequence[str] = ()
        with contextlib.suppress(RelayError):
            roster = services.build_roster(limit.agent, root)
        choice = choose_successor(
            roster, services.read_availability(environ), current=limit.agent, now=now, zone=services.zone
        )
        offer = (
            f"To continue in another agent, run there: {agent_command(choice.successor)}."
            if choice.successor
            else ""
        )
        waits = conversation.detector.continues_at
        by_itself = ""
        if waits is not None:
            by_itself = f"{limit.agent} goes on by itself at {render_moment(waits, now, services.zone)}."
        return _render(title), _render(
            " ".join(filter(None, (offer, by_itself))) or "No other agent is available."
        )

    def _list_programs(self, conversation: _Conversation) -> list[int]:
        """Return the processes of the agent's program in the conversation's folder. Reads /proc."""
        loaded = self._services.adapters[AgentName(conversation.agent)]
        program = find_program(loaded, os.environ)
        now = self._services.clock.now()
        name = program or loaded.adapter.launch.program
        return [pid for pid, _ in find_running(name, conversation.cwd, by=now, now=now)]


def build_hook_handlers(unmanaged: UnmanagedAgents) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""

    async def follow(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        return {"agents": await unmanaged.follow()}

    return dict((HOOKS_FOLLOW.performed_by(follow),))


def notify_terminals(pids: Iterable[int], title: str, text: str, *, bell: bool, osc: bool) -> int:
    """Notify the terminals of these processes, each once; return how many there were.

    It is written at once or not at all: a terminal that is stopped is left alone.
    """
    seen: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/{pid}/fd/1")
            number = os.stat(f"/proc/{pid}/fd/1").st_rdev
            if number in seen or not path.startswith("/dev/"):
                continue
            form = find_form(read_environ(pid)) if osc else ""
            written = render_notification(form, title, text, bell=bell) if form or bell else b""
            handle = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                # The name may be another terminal's by now, or one of another mount namespace.
                if os.isatty(handle) and os.fstat(handle).st_rdev == number:
                    seen.add(number)
                    os.write(handle, written)
            finally:
                os.close(handle)
    return len(seen)


def _is_usable(text: str) -> bool:
    """Check whether a name or path of a report can be one: none holds a NUL, which patterns use."""
    return len(text) < _LONGEST_PATH and "\0" not in text


def _is_answer(rules: Rules, record: Record) -> bool:
    return record.source is Source.TRANSCRIPT and any(
        one.means == "answer" and one.source is Source.TRANSCRIPT and is_meant(one.where, record.data)
        for one in rules.progress
    )


def _render(text: str) -> str:
    return clean(redact_text(text).text)


def _read_tail(path: str) -> list[Record]:
    """Return the newest rows of the transcript that have a time; a first one that is torn is left out."""
    try:
        rows = build_framer("jsonl").feed(read_end(path, limit_bytes=_TAIL_BYTES))
    except (OSError, ValueError, RelayError):
        return []
    dated = ((find_record_time(data), data) for data in rows)
    return [Record(Source.TRANSCRIPT, data, at, path) for at, data in dated if at is not None]


def _read_moment(path: str) -> datetime:
    """Return the moment saved in the file; one long ago if there is none."""
    try:
        return datetime.fromisoformat(read_bounded(path, limit_bytes=100).decode())
    except (OSError, ValueError, RelayError):
        return datetime.fromisoformat("1970-01-01T00:00:00+00:00")
