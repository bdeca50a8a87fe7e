"""One round of `kill -9` around a limit and its switch: who is killed when, and what became of the prompt."""

import glob
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent_relay.client.connection import find_daemon_pid
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import State
from tests.support.handoffs import write_screenplays
from tests.support.person import Person
from tests.support.relay_world import RelayWorld, kill, relay_world
from tests.support.seats import run, seat

VICTIMS = ("daemon", "holder", "agent", "client")
POINTS = (
    "prompt",
    "signal.seen",
    "handoff.begun",
    "leg.ended",
    "handoff.stopped",
    "packet.published",
    "leg.starting",
    "leg.started",
    "leg.ready",
    "handoff.delivered",
    "handoff.confirmed",
)
"""What the first blow waits for: the prompt in the agent's transcript, or a line of the journal after it."""
STANDBY_VICTIMS = (*VICTIMS, "standby")
STANDBY_POINTS = (*POINTS, "standby.starting", "standby.started", "standby.ready")
"""The same where the next agent is started ahead, in the turn that meets the limit."""
_LONGEST_DELAY_S = 0.15
_SECOND_DELAY_S = 0.8
_SECOND = 0.4
"""How often a round has a second victim."""
_LIMIT_S = 40.0
"""How long anything may take on a busy machine before the round counts as stuck."""
_SETTLES_S = 2.0
_LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
_WARNED_S = 1.2
"""How long before its limit an agent warns of it: about what the next one takes to start."""
_SCENES = {
    "demo": [{"again": True, "do": [{"wait_s": 0.2, **_LIMIT}]}],
    "understudy": [{"again": True, "do": [{"wait_s": 0.1, "say": "understudy goes on"}]}],
}


@dataclass(frozen=True, slots=True)
class Blow:
    """One `kill -9`: of whom, how many seconds after the point (the first) or the blow before it."""

    victim: str
    delay_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a round does; the same seed and number give the same plan."""

    seed: int
    number: int
    point: str
    blows: tuple[Blow, ...]
    standby: bool = False

    @property
    def name(self) -> str:
        """The plan in one cell of a table."""
        blows = " + ".join(f"{blow.victim} {blow.delay_s * 1000:.0f} ms" for blow in self.blows)
        return f"{self.point}{' (standby)' if self.standby else ''}: {blows}"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the prompt: `itself`, `command` (after one ordinary command) or `lost`, and `why`."""

    plan: Plan
    how: str
    seconds: float
    why: str = ""


def build_plan(seed: int, number: int, *, standby: bool = False) -> Plan:
    """The plan of round `number` under `seed`; with `standby` the next agent is started ahead."""
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - to be repeated, not to be secret
    victims = chance.sample(STANDBY_VICTIMS if standby else VICTIMS, 2 if chance.random() < _SECOND else 1)
    point = chance.choice(STANDBY_POINTS if standby else POINTS)
    longest = (_LONGEST_DELAY_S, _SECOND_DELAY_S)
    blows = (Blow(victim, chance.uniform(0, most)) for victim, most in zip(victims, longest, strict=False))
    return Plan(seed, number, point, tuple(blows), standby)


class StuckError(AssertionError):
    """The prompt is with nobody, or something would have to be repaired by hand."""


def play_round(plan: Plan) -> Result:
    """The end of the round; whatever it started is gone."""
    began = time.monotonic()
    with relay_world() as world:
        scenes = _SCENES
        if plan.standby:
            with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
                file.write("[handoff]\nstandby = true\n")
            warning = {"warn": "You've used 92% of your session limit"}
            limit = {"wait_s": _WARNED_S, **_LIMIT}
            scenes = {**_SCENES, "demo": [{"again": True, "do": [warning, limit]}]}
        world.environ |= write_screenplays(f"{world.folder}/plays", **scenes)
        round_ = _Round(world, f"round {plan.number} of {plan.seed}")
        try:
            how, why = round_.play(plan), ""
        except (AssertionError, RelayError, OSError) as error:
            how, why = "lost", f"{error} {round_.describe()}"
        return Result(plan, how, time.monotonic() - began, why)


class _Round:
    def __init__(self, world: RelayWorld, mark: str) -> None:
        self.world = world
        self.mark = mark
        self.session = ""
        self.person: Person | None = None

    def play(self, plan: Plan) -> str:
        with seat(self.world, "agent", "demo") as person:
            self.person = person
            person.wait_for("ready | demo")
            (self.session,) = os.listdir(f"{self.world.project}/.agent-relay/sessions")
            lines = len(self._names())
            person.type(f"please answer {self.mark}\r".encode())
            self._wait(lambda: self._is_at(plan.point, lines), f"the point {plan.point}")
            was_killed = False
            for blow in plan.blows:
                self._pass_by(blow.delay_s)
                self._strike(blow.victim, person)
                was_killed = was_killed or blow.victim == "client"
            how = self._see_through(person, was_killed=was_killed)
        self._end()
        return how

    def describe(self) -> str:
        """What a person would look at to find out why."""
        screen = self.person.text() if self.person is not None else ""
        return f"| session {self.session}: {' '.join(self._names()[-14:])} | screen: {screen[-400:]!r}"

    def _see_through(self, person: Person, *, was_killed: bool) -> str:
        """`itself` or `command`, which may be one key. Raises StuckError."""
        left: list[int] = []

        def is_free() -> bool:
            """Whether nobody would do anything more, or the person's terminal is theirs again."""
            if was_killed:
                return self._is_over() or find_daemon_pid(self.world.folders) is None
            if not left and (status := person.poll()) is not None:
                left.append(status)
            return bool(left)

        def is_asked() -> bool:
            """Whether nobody is left to go on, and the terminal says by which key one may try again."""
            return self._is_over() and "Press Enter to try" in person.text()

        self._wait(
            lambda: self.has_reached() or is_free() or is_asked(),
            "the prompt is with a successor, or the terminal free",
        )
        if not (self.has_reached() or is_free()):
            # A key that comes with the question may be meant for the agent, and answers nothing.
            self._pass_by(2.0)
            person.type(b"\r")
            self._wait(self.has_reached, "Enter brought the prompt to a successor")
            self._settle()
            return "command"
        if not self.has_reached():
            # Whoever sits there reads what the terminal said, and goes on as it says.
            said = person.text().strip()
            if left and (left[0] <= 0 or "agent-relay" not in said):
                raise StuckError(f"the client left with {left[0]} and said {said[-300:]!r}")
            return self._go_on()
        self._settle()
        if not was_killed:
            self._wait(lambda: "understudy" in person.text() or is_free(), "the terminal shows the successor")
        return "itself"

    def _go_on(self) -> str:
        """One ordinary command later the prompt is with a successor. Raises StuckError."""
        by_name = ["agent", "understudy", "--session", self.session, "--yes"]
        argv = by_name if self._is_over() else ["attach", self.session]
        with seat(self.world, *argv) as person:
            self.person = person
            self._wait(self.has_reached, f"`{' '.join(argv)}` brought the prompt to a successor")
            self._settle()
        return "command"

    def _is_over(self) -> bool:
        found = self._read()
        return found is not None and found.living_leg is None and found.state in (State.ENDED, State.RESTING)

    def _settle(self) -> None:
        """One agent at most, and nothing half done."""
        self._wait(self._is_settled, "the handoff is over")
        self._wait(lambda: len(self.world.find_agents()) <= 1, "one agent is left")

    def _is_settled(self) -> bool:
        found = self._read()
        return found is not None and found.handoff is None and found.state is not State.HANDING_OFF

    def _end(self) -> None:
        """`stop` ends whatever lives, and leaves nothing."""
        found = self._read()
        if found is not None and found.state is not State.ENDED:
            done = run(self.world, "stop", self.session)
            found = self._read()
            is_over = found is not None and found.state is State.ENDED
            if done.status and not is_over:
                raise StuckError(f"stop left with {done.status}: {done.out}{done.err}")
        self._wait(lambda: self.world.find_agents() == [], "no agent is left")

    def has_reached(self) -> bool:
        """Whether a successor was given the user's words and took a prompt with them."""
        for path in glob.glob(f"{self.world.home}/.demo-agent/understudy/*.jsonl"):
            rows = _read_rows(path)
            if any(row.get("type") == "prompt" and self.mark in str(row.get("text")) for row in rows):
                return True
        return False

    def _is_at(self, point: str, lines: int) -> bool:
        if point != "prompt":
            return point in self._names()[lines:]
        paths = glob.glob(f"{self.world.home}/.demo-agent/demo/*.jsonl")
        return any(row.get("type") == "prompt" for path in paths for row in _read_rows(path))

    def _strike(self, victim: str, person: Person) -> None:
        match victim:
            case "client":
                kill(person.pid)
            case "daemon":
                pid = find_daemon_pid(self.world.folders)
                if pid:
                    kill(pid)
            case _:
                leg = self._find_standby() if victim == "standby" else self._find_leg()
                pid = 0 if leg is None else leg.holder_pid if victim == "holder" else leg.child_pid
                if pid:
                    kill(pid)

    def _find_leg(self) -> Leg | None:
        """The newest leg the journal knows a process of: the one before it, while the newest is starting."""
        found = self._read()
        living = [leg for leg in found.legs if leg.child_pid and not leg.is_over] if found is not None else []
        return living[-1] if living else None

    def _find_standby(self) -> Leg | None:
        found = self._read()
        return found.standby.leg if found is not None and found.standby is not None else None

    def _read(self) -> Session | None:
        try:
            return self.world.session(self.session)
        except (RelayError, AssertionError, OSError):
            return None

    def _names(self) -> list[str]:
        if not self.session:
            return []
        path = f"{self.world.project}/.agent-relay/sessions/{self.session}/journal.jsonl"
        return [str(row.get("event")) for row in _read_rows(path)]

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _LIMIT_S
        while not is_so():
            if time.monotonic() > deadline:
                raise StuckError(f"waited {_LIMIT_S:g} s until {what}")
            self._look()

    def _pass_by(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            self._look(min(left_s, 0.01))

    def _look(self, wait_s: float = 0.01) -> None:
        """A terminal nobody reads would hold up whoever writes to it; one without a program is at its end."""
        before = time.monotonic()
        if self.person is not None:
            self.person.look(wait_s)
        time.sleep(max(0.0, wait_s - (time.monotonic() - before)))


def _read_rows(path: str) -> list[dict[str, object]]:
    """The whole lines of a file that may be written at this moment."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line]
