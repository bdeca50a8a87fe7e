"""Keep the state of a shell's conversation, and the lock by which other shells see that it is in use."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from agent_relay.detect.window_usage import WindowUsage
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import TurnBegun
from agent_relay.domain.names import find_root_above, get_journal_path
from agent_relay.domain.text.plain import quote_reason
from agent_relay.faces.render.output import render_day
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events, read_session
from agent_relay.store.session_index import find_near_root, list_own_at, read_live_at, read_summary
from agent_relay.system.disk.locks import open_lock, try_flock, wait_for_flock

_ENTER_S = 5.0
"""Longest time for another shell to look whether it is alone, in seconds."""


class SessionLock:
    """Locks the session of one shell; `folder`, private to the user, has a file for each locked session."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._session = ""
        self._handle = -1

    def enter(self, session: str) -> bool:
        """Lock `session` for this shell, and unlock any other; return whether another shell has it.

        Raises RelayError if its file cannot be written or locked.
        """
        if session != self._session:
            self.leave()
            self._handle = open_lock(os.path.join(self._folder, f"{session}.here"))
            self._session = session
        try:
            is_alone = try_flock(self._handle)
            wait_for_flock(self._handle, _ENTER_S, is_shared=True)
        except OSError as error:
            raise RelayError(f"cannot lock session {session}: {error.strerror}") from error
        return not is_alone

    def leave(self) -> None:
        """Unlock this shell's session; the last shell of a session removes its file."""
        if self._handle >= 0:
            with suppress(OSError):
                wait_for_flock(self._handle, 0)
                os.unlink(os.path.join(self._folder, f"{self._session}.here"))
            os.close(self._handle)
        self._handle, self._session = -1, ""


def is_shared(lock: SessionLock | None, session: str) -> bool:
    """Lock `session` and return whether another shell has it, too; false if its file cannot be written."""
    try:
        return lock is not None and bool(session) and lock.enter(session)
    except RelayError:
        return False


Event = Mapping[str, object]

_AT_SCREEN = frozenset(("starting", "ready", "busy", "asking"))


@dataclass(slots=True)
class Conversation:
    """One relay session over many turns; `session` is empty before the first.

    `agent` gets the next message, `at_work` has the running turn and is empty between turns; `models` are the
    user's choices for this shell, by agent; `last_agent` had the session when it was last read.
    The journal is the truth; this is how far it was read. `windows` are agents' usage windows as last heard.
    """

    cwd: str
    agent: str = ""
    session: str = ""
    folder: str = ""
    at_work: str = ""
    model: str = ""
    cost: float | None = None
    context: tuple[int, int] = (0, 0)
    near: str = ""
    models: dict[str, str] = field(default_factory=dict)
    lock: SessionLock | None = None
    last_agent: str = ""
    windows: Mapping[str, Sequence[WindowUsage]] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The folder that holds `.agent-relay`."""
        return find_root_above(self.folder) or find_near_root(self.cwd)

    def is_at_home(self, root: str) -> bool:
        """Return whether the working tree `root` is this one."""
        return os.path.realpath(root) == os.path.realpath(self.root)

    def build_request(self, message: str) -> dict[str, object]:
        """Build the daemon's request for the next turn."""
        request: dict[str, object] = {
            "agent": self.agent,
            "task": message,
            "cwd": self.cwd,
            "env": dict(os.environ),
            "args": [],
        }
        if self.session:
            request["session"] = self.session
        if self.models.get(self.agent):
            request["model"] = self.models[self.agent]
        return request

    def apply(self, event: Event) -> None:
        """Update the conversation from an event."""
        match event.get("type"):
            case "turn":
                self.session, self.folder = _text(event, "session"), _text(event, "folder")
                self.at_work = _text(event, "agent")
                is_shared(self.lock, self.session)
            case "leg":
                self.at_work = self.agent = self.last_agent = _text(event, "agent")
                self.model = _text(event, "model") or self.models.get(self.agent, "")
            case "usage":
                cost = event.get("cost")
                if isinstance(cost, int | float):
                    self.cost = (self.cost or 0.0) + cost
            case "end":
                self.at_work = ""
                self.refresh()
            case _:
                return

    def refresh(self) -> dict[str, object]:
        """Read the session's journal; update context and limits here, and return the session in short."""
        if not self.session:
            return {}
        view = read_summary(self.root, self.session)
        known = view["context"]
        if isinstance(known, dict):
            used, room = known.get("used"), known.get("room")
            self.context = (used, room) if isinstance(used, int) and isinstance(room, int) else (0, 0)
        else:
            self.context = (0, 0)
        near = view["near"]
        self.near = quote_reason(str(near.get("text", ""))) if isinstance(near, dict) else ""
        return view

    def find_at_screen(self) -> str:
        """Return the agent that still has the session in its own screen after a detach; empty for none."""
        view = self.refresh()
        is_there = bool(view) and view["state"] in _AT_SCREEN and not view["headless"]
        return str(view["agent"]) if is_there else ""

    def leave(self) -> None:
        """Leave the session: the next message begins a new one."""
        self.session = self.folder = self.at_work = self.near = ""
        self.cost, self.context = None, (0, 0)

    def join(self, view: Mapping[str, object]) -> None:
        """Join the session of `view`, which `read_summary` returned: the next message belongs to it."""
        self.session, self.folder = str(view["session"]), str(view["folder"])
        self.agent = self.last_agent = str(view["agent"]) or self.agent
        self.cost = None
        self.refresh()

    def follow(self, view: Mapping[str, object]) -> str:
        """Return the agent another shell gave the session to; it gets the next message. Empty for none.

        An agent that was chosen here keeps the next message.
        """
        agent, before = str(view.get("agent") or ""), self.last_agent
        self.last_agent = agent or before
        if not agent or agent == before or self.agent != before:
            return ""
        self.agent = agent
        return agent


def _text(event: Event, key: str) -> str:
    found = event.get(key)
    return found if isinstance(found, str) else ""


_AT_WORK = frozenset(("starting", "ready", "busy", "asking", "handing-off", "limited"))


def find_under_way(root: str, index: str) -> str:
    """Return this working tree's session with a turn that perhaps no shell shows; empty for none."""
    for view in read_live_at(root, index):
        if view["state"] in _AT_WORK:
            try:
                is_one = find_place(root, str(view["session"])) is not None
            except (RelayError, OSError):
                continue
            if is_one:
                return str(view["session"])
    return ""


def find_last(root: str, index: str, lock: SessionLock) -> Mapping[str, object] | None:
    """Return this working tree's newest session in short; `None` if it is at work or in another shell.

    A session that rests in its agent's own screen counts as at work: a person may be at that screen.
    """
    found = max(list_own_at(root, index), key=lambda name: _find_age(root, name), default="")
    view = read_summary(root, found) if found else {"state": "gone"}
    is_over = view["state"] == "ended" or (view["state"] == "resting" and view["headless"])
    if not is_over or not view["agent"] or is_shared(lock, found):
        lock.leave()
        return None
    lock.leave()
    return view


def render_offer(view: Mapping[str, object]) -> str:
    """Return `Press Enter to continue 'fix the cents' (claude, yesterday 18:20)`."""
    what = f"'{view['title']}'" if view["title"] else f"session {str(view['session'])[-6:]}"
    return f"Press Enter to continue {what} ({view['agent']}, {render_day(view['updated_at'])})"


def find_resting(root: str, session: str) -> tuple[str, str] | None:
    """Return the newest turn's prompt and when to ask again (ISO 8601); `None` if it does not rest.

    It is `None` for a turn of a chat, too, which the chat asks again. The prompt is as the journal has it,
    without secrets.
    """
    found = read_session(get_journal_path(root, session))
    turn = found.turn if found is not None else None
    if found is None or turn is None or turn.outcome != "resting" or turn.seat:
        return None
    return turn.prompt, found.rested_until


def find_place(root: str, session: str) -> Mapping[str, object] | None:
    """Return the place before the first line of the running turn; `None` if there is none."""
    events = read_events(get_journal_path(root, session))
    found = fold_events(events)
    if found is None or found.open_turn is None:
        return None
    begun = [line.number for line in events if isinstance(line.body, TurnBegun)]
    return {"number": begun[-1] - 1, "leg": "", "offset": 0, "events": 0} if begun else None


def _find_age(root: str, session: str) -> float:
    """Return when the session's journal was last written; 0, the oldest, if that cannot be read."""
    try:
        return os.stat(get_journal_path(root, session)).st_mtime
    except OSError:
        return 0.0
