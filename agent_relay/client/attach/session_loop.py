"""Keep a person's terminal on a session while its agents come and go."""

import time

from agent_relay.domain.errors import DaemonUnreachableError, RelayError, WrongUseError
from agent_relay.domain.names import find_root_above
from agent_relay.domain.text.names import continue_command
from agent_relay.store.session_index import read_summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from agent_relay.client.attach.held_terminal import HeldTerminal
    from agent_relay.client.attach.loop import AttachOutcome
    from agent_relay.client.connection import Connection

    Attach = Callable[["SessionPlace"], AttachOutcome]
    _Found = TypeVar("_Found")
    ShowRest = Callable[["SessionPlace"], tuple[str, str]]

NEXT_LIMIT_S = 900.0
"""Longest wait for the next agent, in seconds; a trust question of its own may have to be answered first."""
PATIENCE_S = 3.0
"""Seconds without an agent after which a line says what is being waited for."""
STUCK_S = 15.0
"""Longest time, in seconds, for a limited session without an agent to find one."""
FAILURES = 3
"""Most failures allowed in attaching to a leg that the daemon names."""
NO_AGENT_STATUS = 3
LEFT, SHOW_SCREEN, CONTINUE = "left", "show-screen", "continue"
"""Ends of the resting screen: the person left, wants the agent's screen, or the rest is over."""
_BY_SIGNAL = range(129, 193)
"""The exit statuses with which shells report an end by a Unix signal."""
_BY_A_PERSON = frozenset({130, 143})
"""The exit statuses of an agent that its person, or the end of its terminal, ended."""


class SessionPlace:
    """Place and state of a session now, as the daemon answers `open` and `where`."""

    def __init__(self, answer: "dict[str, object]") -> None:
        self.session, self.folder = _text(answer, "session"), _text(answer, "folder")
        self.state, self.message = _text(answer, "state"), _text(answer, "message")
        self.agent, self.owed = _text(answer, "agent"), _text(answer, "owed")
        self.leg, self.socket = _text(answer, "leg"), _text(answer, "socket")
        self.trouble = _text(answer, "trouble")
        rest = answer.get("rest")
        self.rests = self.state == "resting" and isinstance(rest, dict)
        self.plan = _text(rest, "plan") if isinstance(rest, dict) else ""
        bar = answer.get("bar")
        self.bar = [text for text in bar if isinstance(text, str)] if isinstance(bar, list) else []
        self.is_refused = bool(answer.get("refused"))
        status = answer.get("status")
        self.status = status if isinstance(status, int) else -1

    @property
    def is_over(self) -> bool:
        """True if no agent will come by itself."""
        return self.state in {"ended", "gone"} or (not self.leg and self.state == "resting")

    @property
    def is_stuck(self) -> bool:
        """True if the session is limited and has no leg: the end, unless a next try is about to begin."""
        return not self.leg and self.state == "limited"


class SessionLoop:
    """One terminal on one session.

    `attach` shows a leg until it ends, `say` prints a line to the person, `reconnect` finds or starts a
    daemon if the one behind `connection` went away. If the terminal is `held` between two agents, it shows
    the bar, and what that says is not printed. `rest` shows a person that every agent rests and returns how
    that ended, with a line to print; without it such a session is over for this terminal.
    """

    def __init__(
        self,
        connection: "Connection",
        *,
        reconnect: "Callable[[], Connection]",
        attach: "Attach",
        say: "Callable[[str], None]",
        held: "HeldTerminal | None" = None,
        rest: "ShowRest | None" = None,
    ) -> None:
        self._connection = connection
        self._reconnect = reconnect
        self._attach = attach
        self._say = say
        self._held = held
        self._rest = rest
        self._said = ""
        self._folder = ""

    def run(self, answer: "dict[str, object]") -> int:
        """Keep the terminal on the session until the person detaches or no agent comes; return a status.

        The exit status is 0 after a detach or a good end, 3 if no agent can go on, 128 + number if a Unix
        signal ended the last agent; else 1: an agent's own numbers mean something else. `answer` is what the
        daemon answered to `open` or `where`. Raises RelayError if the next agent does not come in time or the
        daemon cannot be started again, KeyboardInterrupt if the person does not want to wait.
        """
        try:
            return self._run(answer)
        except (RelayError, KeyboardInterrupt):
            self._give_back()
            raise

    def _give_back(self) -> None:
        """Give the terminal back to the person, and print what was typed and not delivered."""
        if self._held is not None and (line := self._held.settle()):
            self._say(line)

    def _run(self, answer: "dict[str, object]") -> int:
        place = SessionPlace(answer)
        self._folder = place.folder
        # What happened before this terminal came is told by `status`; here only what it lives through.
        self._said = place.message if place.leg else ""
        seen, status, failures, lost = "", -1, 0, False
        looked: str | None = None
        while True:
            if not place.leg or place.leg == seen:
                place = self._wait(place, seen, again=lost)
            self._tell(place)
            if self._rest is not None and place.rests and place.leg != looked:
                how, line = self._rest(place)
                if how == LEFT:
                    self._say(line)
                    self._give_back()
                    return NO_AGENT_STATUS
                looked = place.leg if how == SHOW_SCREEN else None
                seen, place = "", self._ask_again(place.session)
                continue
            if place.is_over or place.is_stuck:
                return self._settle(place, status)
            # A daemon should not have to keep what nobody reads while an agent is on the screen.
            self._connection.close()
            try:
                end = self._attach(place)
            except RelayError:
                failures += 1
                if failures > FAILURES:
                    raise
                seen, lost = place.leg, True
                continue
            if end.why == "detached":
                self._say(describe_parting(self._see_rest(place)))
                self._give_back()
                return 0
            seen, status, lost = place.leg, end.status, end.why == "lost"
            if end.why == "resting":
                seen, looked, place = "", None, self._ask_again(place.session)

    def _wait(self, place: SessionPlace, seen: str, *, again: bool) -> SessionPlace:
        """Return the session once another leg than `seen` can be attached, or none will come.

        With `again`, the leg `seen` counts, too, once the daemon had time to notice that it is gone.
        """
        began = time.monotonic()
        session, waited_s, spoken = place.session, 0.0, False
        self._follow()
        while waited_s < NEXT_LIMIT_S:
            try:
                place = self._ask(session)
                if place.is_over or (place.leg and place.leg != seen):
                    return place
                if self._held is not None:
                    self._held.show(place.bar)
                self._wait_for_notice()
            except DaemonUnreachableError:
                self._follow()
            waited_s = time.monotonic() - began
            if (place.is_stuck and waited_s > STUCK_S) or (again and place.leg and waited_s > PATIENCE_S):
                return place
            if not spoken and waited_s > PATIENCE_S and not self._is_held():
                if self._held is not None:
                    self._held.end_pause()
                self._say(f"Waiting: the session is {place.state} ({place.trouble or place.agent}) …")
                spoken = True
        raise RelayError(
            f"session {session} has had no agent for {NEXT_LIMIT_S:.0f} s", hint="See: agent-relay status"
        )

    def _ask_again(self, session: str) -> SessionPlace:
        """Reconnect to whichever daemon runs by now, and return where the session is."""

        def ask() -> SessionPlace:
            self._reach()
            return self._ask(session)

        return _try_again(ask)

    def _wait_for_notice(self) -> None:
        """Wait until something has changed, at most `PATIENCE_S`."""
        if not self._is_held() or self._held is None:
            for _ in self._connection.notices(limit_s=PATIENCE_S):
                return
            return
        for _ in self._connection.notices(limit_s=0.0):
            return
        self._held.wait(self._connection.fileno(), PATIENCE_S)

    def _is_held(self) -> bool:
        return self._held is not None and self._held.is_held

    def _ask(self, session: str) -> SessionPlace:
        """Return where the session is; from its journal if a new daemon no longer has it at work."""
        try:
            return SessionPlace(self._connection.request("where", session=session))
        except WrongUseError:
            return SessionPlace(read_summary(find_root_above(self._folder), session))

    def _see_rest(self, place: SessionPlace) -> SessionPlace:
        """Return the place as it is now, if it rested when its agent was attached and the daemon answers."""
        try:
            return self._ask_again(place.session) if place.rests else place
        except DaemonUnreachableError:
            return place

    def _follow(self) -> None:
        """Open a new connection that gets notices. Raise DaemonUnreachableError if that fails."""
        _try_again(self._reach)

    def _reach(self) -> None:
        self._connection.close()
        self._connection = self._reconnect()
        self._connection.subscribe()

    def _tell(self, place: SessionPlace) -> None:
        if self._rest is not None and place.rests:
            # What was typed is for whoever goes on after the rest.
            if self._held is not None:
                self._held.show([])
        elif place.is_over or place.is_stuck:
            self._give_back()
        elif self._is_held():
            # The bar said it.
            self._said = place.message
        if place.message and place.message != self._said:
            self._said = place.message
            self._say(place.message)

    def _settle(self, place: SessionPlace, status: int) -> int:
        if place.state in {"resting", "limited"}:
            return NO_AGENT_STATUS
        known = status if status >= 0 else place.status
        if not place.message:
            self._say_end(place, known)
        # Who could not be signed in to, or did not get its packet, has not done its task, however it left.
        is_done = not place.is_refused and not place.owed
        return known if known in _BY_SIGNAL or (known == 0 and is_done) else 1

    def _say_end(self, place: SessionPlace, status: int) -> None:
        """Report a bad end as its daemon would have, if only the journal knows about the session."""
        if place.owed:
            go_on = continue_command(place.owed, place.session)
            self._say(
                f"→ The session ended before {place.owed} worked on its packet. Give it the packet: {go_on}"
            )
        elif status > 0 and status not in _BY_A_PERSON:
            go_on = continue_command(place.agent, place.session)
            self._say(f"→ {place.agent} ended with status {status}. Go on: {go_on}")


def describe_parting(place: SessionPlace) -> str:
    """Return the line for a person who leaves the session, which goes on without them."""
    how = "the session is resting." if place.rests else f"{place.agent} keeps working."
    plan = f" {place.plan}" if place.rests and place.plan else ""
    return f"Detached; {how}{plan} To return: agent-relay attach {place.session}"


def _text(answer: "dict[str, object]", key: str) -> str:
    found = answer.get(key)
    return found if isinstance(found, str) else ""


def _try_again(ask: "Callable[[], _Found]") -> "_Found":
    """Return the result of `ask`; a daemon that dies in the middle of it has a successor soon.

    Raise DaemonUnreachableError if that fails `FAILURES` times, or after `STUCK_S` seconds.
    """
    deadline = time.monotonic() + STUCK_S
    for _ in range(FAILURES - 1):
        try:
            return ask()
        except DaemonUnreachableError:
            if time.monotonic() > deadline:
                raise
    return ask()
