from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from agent_relay.client.attach.session_loop import SessionLoop, SessionPlace
from agent_relay.domain.errors import DaemonUnreachableError, RelayError, WrongUseError

Answer = dict[str, object] | Exception
GO_ON = "agent-relay bob --session S"
LINE = "→ ada hit its session limit (resets 21:00). Continuing with bob. Packet: /r/p.md"


@dataclass
class _End:
    why: str
    status: int = -1


@dataclass
class _Daemon:
    """A daemon that gives one prepared answer after another to `where`, the last one for ever."""

    answers: list[Answer]
    opened: int = 0
    dying: int = 0
    """The number of daemons that die right after they were connected to."""
    asked: list[str] = field(default_factory=list)

    def connect(self) -> "_Connection":
        self.opened += 1
        return _Connection(self)


class _Connection:
    def __init__(self, daemon: _Daemon) -> None:
        self._daemon = daemon
        self._dies = daemon.dying > 0
        daemon.dying -= 1

    def request(self, op: str, /, **fields: object) -> dict[str, object]:
        self._daemon.asked.append(f"{op} {fields['session']}")
        answers = self._daemon.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def subscribe(self) -> None:
        """Nothing to do: `notices` always has one."""
        if self._dies:
            raise DaemonUnreachableError("the daemon went away")

    def notices(self, *, limit_s: float | None = None) -> Iterator[dict[str, object]]:
        assert limit_s is not None
        yield {"notice": "session", "session": "*"}

    def fileno(self) -> int:
        """Nothing is looked at: what waits on it is the test's own."""
        return -1

    def close(self) -> None:
        """Nothing is open."""


class _Held:
    """A terminal that shows the bar between two agents; `done` is what it was used for, and what was said."""

    def __init__(self, done: list[str], undelivered: str = "") -> None:
        self.done = done
        self.undelivered = undelivered
        self.is_held = False

    def show(self, texts: list[str]) -> None:
        self.is_held = bool(texts)
        self.done.append(f"bar {texts[0] if texts else 'gone'}")

    def wait(self, fd: int, limit_s: float) -> None:
        assert (fd, limit_s > 0) == (-1, True)

    def settle(self) -> str:
        self.is_held = False
        self.done.append("given back")
        return self.undelivered


def _run_held(answers: list[Answer], ends: list[_End], undelivered: str = "") -> tuple[int, list[str]]:
    """The exit status, and what was shown and said in which order."""
    daemon, done = _Daemon(answers), []
    held = _Held(done, undelivered)

    def attach(place: SessionPlace) -> _End:
        done.append(f"on {place.leg}")
        return ends.pop(0)

    loop = SessionLoop(daemon.connect(), reconnect=daemon.connect, attach=attach, say=done.append, held=held)
    return loop.run(_where("busy", "L1")), done


def _where(
    state: str, leg: str = "", *, agent: str = "ada", message: str = "", status: int = -1
) -> dict[str, object]:
    return {
        "session": "S",
        "state": state,
        "agent": agent,
        "leg": leg,
        "socket": f"/legs/{leg}/sock" if leg else "",
        "message": message,
        "folder": "/nonexistent/.agent-relay/sessions/S",
        "status": status,
    }


def _run(
    first: dict[str, object], answers: list[Answer], ends: list[_End]
) -> tuple[int, list[str], list[str], _Daemon]:
    """The exit status, the legs attached, what was said, and the daemon afterwards."""
    daemon, legs, said = _Daemon(answers), [], []

    def attach(place: SessionPlace) -> _End:
        legs.append(place.leg)
        return ends.pop(0)

    say: Callable[[str], None] = said.append
    loop = SessionLoop(daemon.connect(), reconnect=daemon.connect, attach=attach, say=say)
    return loop.run(first), legs, said, daemon


def test_the_same_terminal_goes_on_with_the_successor_after_one_line() -> None:
    """This is the product: the user does nothing and reads one line."""
    status, legs, said, _ = _run(
        _where("busy", "L1"),
        [
            _where("limited", "L1"),
            _where("handing-off"),
            _where("starting", "L2", agent="bob", message=LINE),
            _where("ended", agent="bob", message=LINE, status=0),
        ],
        [_End("ended", 143), _End("ended", 0)],
    )
    assert (status, legs, said) == (0, ["L1", "L2"], [LINE])


def test_what_the_bar_shows_is_not_printed_as_well() -> None:
    """A line on the terminal would be under the successor's first picture."""
    status, done = _run_held(
        [
            _where("handing-off") | {"bar": ["ada → bob", "bob"]},
            _where("starting") | {"bar": ["bob is starting"]},
            _where("starting", "L2", agent="bob", message=LINE) | {"bar": ["bob is starting"]},
            _where("ended", agent="bob", message=LINE, status=0),
        ],
        [_End("ended", 143), _End("ended", 0)],
    )
    assert (status, done) == (0, ["on L1", "bar ada → bob", "bar bob is starting", "on L2", "given back"])


def test_when_no_agent_comes_the_terminal_is_given_back_before_the_last_line() -> None:
    """What was typed for nobody is told then, and the end in the words of the daemon."""
    line = "→ ada hit its session limit. No agent is available."
    status, done = _run_held(
        [_where("handing-off") | {"bar": ["ada → bob"]}, _where("resting", message=line)],
        [_End("ended", 143)],
        "3 typed characters were not delivered: abc",
    )
    assert status == 3
    assert done == [
        "on L1",
        "bar ada → bob",
        "given back",
        "3 typed characters were not delivered: abc",
        line,
    ]


def test_a_switch_called_off_gives_the_terminal_back_and_is_told() -> None:
    """Without a bar the session is as it was before there was one."""
    status, done = _run_held(
        [
            _where("handing-off") | {"bar": ["ada → bob"]},
            _where("starting", message=LINE),
            _where("starting", "L2", message=LINE),
            _where("ended"),
        ],
        [_End("ended", 143), _End("detached")],
    )
    assert status == 0
    assert done == [
        *("on L1", "bar ada → bob", "bar gone", LINE, "on L2"),
        *("Detached; ada keeps working. To return: agent-relay attach S", "given back"),
    ]


def test_texts_of_a_bar_that_are_none_are_left_out() -> None:
    """A daemon of another version may say anything, or nothing."""
    assert SessionPlace(_where("busy")).bar == []
    assert SessionPlace(_where("busy") | {"bar": "ada"}).bar == []
    assert SessionPlace(_where("busy") | {"bar": ["ada", 1, None, "bob"]}).bar == ["ada", "bob"]


def test_an_earlier_handoffs_line_is_not_said_to_who_comes_later() -> None:
    """Attaching to a running session shows its agent, not its history."""
    status, _, said, _ = _run(
        _where("busy", "L2", message=LINE), [_where("ended", message=LINE, status=7)], [_End("ended", 7)]
    )
    assert (status, said) == (1, [])


def test_detaching_leaves_with_zero_and_says_how_to_come_back() -> None:
    """The agent keeps working; a script must not take this for a failure."""
    status, _, said, daemon = _run(_where("busy", "L1"), [_where("busy", "L1")], [_End("detached")])
    assert (status, daemon.asked) == (0, [])
    assert said == ["Detached; ada keeps working. To return: agent-relay attach S"]


def test_nobody_left_is_status_three_and_says_until_when() -> None:
    """Scripts wait for the earliest reset; people read it."""
    line = "→ ada hit its session limit. No agent is available. The first reset is at 21:00."
    status, _, said, _ = _run(_where("busy", "L1"), [_where("resting", message=line)], [_End("ended", 0)])
    assert (status, said) == (3, [line])


def test_a_daemon_that_dies_in_between_is_started_again() -> None:
    """A killed daemon costs an attached user nothing."""
    status, legs, said, daemon = _run(
        _where("busy", "L1"),
        [
            DaemonUnreachableError("gone"),
            _where("starting", "L2", agent="bob", message=LINE),
            DaemonUnreachableError("gone again"),
            _where("ended", status=0),
        ],
        [_End("lost"), _End("ended", 0)],
    )
    assert (status, legs, said) == (0, ["L1", "L2"], [LINE])
    assert daemon.opened == 5


def test_a_daemon_that_dies_while_it_is_spoken_to_is_replaced() -> None:
    """Killed between the agent's end and the question who comes next, it ended the terminal with it."""
    daemon = _Daemon([_where("ended", agent="bob", status=0)])
    loop = SessionLoop(
        daemon.connect(), reconnect=daemon.connect, attach=lambda _: _End("ended", 0), say=[].append
    )
    daemon.dying = 2
    assert loop.run(_where("busy", "L1")) == 0
    assert daemon.opened == 4
    daemon.dying = 9
    with pytest.raises(DaemonUnreachableError):
        loop.run(_where("busy", "L1"))


def test_a_handoff_asked_for_from_outside_waits_for_the_successor_first() -> None:
    """`agent-relay bob` on a session of ada's: there is nothing to attach until ada has left."""
    status, legs, said, _ = _run(
        _where("handing-off"),
        [
            _where("handing-off"),
            _where("starting", "L2", agent="bob", message=LINE),
            _where("ended", status=0),
        ],
        [_End("ended", 0)],
    )
    assert (status, legs, said) == (0, ["L2"], [LINE])


def test_a_daemon_that_cannot_be_had_again_is_an_error() -> None:
    """Waiting silently for ever would be worse."""
    daemon = _Daemon([_where("busy", "L1")])

    def fail() -> _Connection:
        raise DaemonUnreachableError("cannot start the daemon")

    loop = SessionLoop(daemon.connect(), reconnect=fail, attach=lambda _: _End("lost"), say=print)
    with pytest.raises(RelayError, match="cannot start the daemon"):
        loop.run(_where("busy", "L1"))


FAILED = "→ The handoff failed: no. Go on: …"
OWED = "→ The session ended before bob worked on its packet. Give it the packet: " + GO_ON
EXITS: list[tuple[Answer, int, int, list[str]]] = [
    # An agent's 3 would tell a script that no agent is available; the journal alone may know of its end.
    *((WrongUseError("no such session is at work"), left, left, []) for left in (0, 130, 137)),
    *((WrongUseError("no such session is at work"), left, 1, []) for left in (3, 78, 255)),
    # An agent that leaves signed out has failed: who goes on as if the task were done builds on nothing.
    *((_where("ended", status=left) | {"refused": "Invalid API key"}, left, 1, []) for left in (0, 3, -1)),
    # An agent that is stopped politely leaves with 0, and its failed handoff is no success for that.
    *(
        (_where("ended", agent="bob", message=FAILED) | {"owed": "bob"}, left, 1, [FAILED])
        for left in (0, -1)
    ),
    (_where("ended", agent="bob", message=FAILED) | {"owed": "bob"}, 137, 137, [FAILED]),
    # A daemon that came later has no words for an end that only the journal tells of.
    (_where("ended") | {"owed": "bob"}, 0, 1, [OWED]),
    (_where("ended"), 137, 137, ["→ ada ended with status 137. Go on: agent-relay ada --session S"]),
]


@pytest.mark.parametrize(("over", "left_with", "status", "said"), EXITS)
def test_a_failure_is_one_and_a_signal_is_what_shells_call_it(
    over: Answer, left_with: int, status: int, said: list[str]
) -> None:
    """A script that reads 0 takes the task for done; a person still has to know the way on."""
    first = _where("ready" if "refused" in str(over) else "busy", "L1")
    found, _, told, _ = _run(first, [over], [_End("ended", left_with)])
    assert (found, [line for line in told if said]) == (status, said)


def test_an_end_nobody_saw_is_a_failure() -> None:
    """Zero would tell a script that the task was done."""
    assert _run(_where("busy", "L1"), [_where("ended")], [_End("lost")])[0] == 1
