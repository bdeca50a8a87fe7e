"""People at work with two scripted agents under a real daemon."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import get_session_folder
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import State
from tests.support import preloaded
from tests.support.handoffs import Scene, write_screenplays
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, is_stopped, relay_world, wait_until

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
WARNING = {"warn": "You've used 92% of your session limit"}
SCENES = [
    {"when": "near", "do": [WARNING, {"say": "warned"}]},
    {"when": "count", "do": [{"used": 42}, {"say": "counted"}]},
    {"when": "out", "do": [LIMIT]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


class WorkingWorld(RelayWorld):
    """A machine on which people work; what they do is a method each, by the session they do it in."""

    def open(self, agent: str, **fields: object) -> dict[str, object]:
        """The answer to who wants an agent; the first who asks for anything starts the daemon."""
        self._start_first()
        return super().open(agent, **fields)

    def open_both(self, agent: str, *wishes: dict[str, object]) -> list[str]:
        """The sessions that terminals which ask at once are led to, or the sentence one is refused with."""

        def open_one(wish: dict[str, object]) -> str:
            try:
                return str(self.open(agent, **wish)["session"])
            except RelayError as error:
                return error.sentence

        self._start_first()
        with ThreadPoolExecutor(len(wishes)) as terminals:
            return list(terminals.map(open_one, wishes))

    def ask(self, op: str, **fields: object) -> dict[str, object]:
        """The daemon's answer."""
        self._start_first()
        return super().ask(op, **fields)

    def _start_first(self) -> None:
        if not self.daemons and not self.answers():
            self.start_daemon()

    def play(self, **scenes: Sequence[Scene]) -> None:
        """Each agent named plays these scenes; one whose daemon runs plays them from its next leg on."""
        self.environ |= write_screenplays(f"{self.folder}/plays", **scenes)

    def configure(self, text: str) -> None:
        """The user's configuration says `text` as well; a daemon that runs goes by it, too."""
        with open(f"{self.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write(text)

    def restart(self) -> None:
        """The daemon is killed and another one takes over."""
        self.kill_daemons()
        self.start_daemon()

    def begin(self, agent: str = "demo", **wish: object) -> str:
        """A session whose first agent is ready."""
        session = str(self.open(agent, **wish)["session"])
        self.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
        return session

    def begin_worked(self, prompt: str = "paint the shed", agent: str = "demo", **wish: object) -> str:
        """A session whose first agent took a prompt and is ready again."""
        session = self.begin(agent, **wish)
        self.say(session, prompt)
        self.finish_turn(session)
        return session

    def leg_folder(self, session: str) -> str:
        """The folder of its living leg."""
        return folder_of(self, session)

    def say(self, session: str, text: str) -> None:
        """A person types `text` and the return into its agent."""
        say(self, session, text)

    def type(self, session: str, data: bytes) -> None:
        """A person types into its agent."""
        type_into(self.leg_folder(session), data)

    def finish_turn(self, session: str) -> Session:
        """It once its first agent took a prompt and is ready again."""
        return finish_turn(self, session)

    def run_out(self, session: str) -> Session:
        """It once its first agent met its limit and the understudy took over."""
        self.say(session, "out")
        return self.wait_handed_over(session)

    def wait_handed_over(self, session: str) -> Session:
        """It once the understudy took over."""
        return self.wait_for(session, has_taken_over, "the understudy took over")

    def wait_state(self, session: str, state: State) -> Session:
        """It once that is its state."""
        return self.wait_for(session, lambda found: found.state is state, f"the session is {state.value}")

    def stop(self, session: str) -> Session:
        """It once somebody ended it."""
        self.ask("session.stop", session=session)
        return self.wait_state(session, State.ENDED)

    def freeze_at(self, point: str) -> preloaded.Process:
        """Another daemon, which will freeze itself at `point`."""
        self.kill_daemons()
        return self.start_daemon(pause_at=point)

    def wait_frozen(self, daemon: preloaded.Process) -> None:
        """Returns once the daemon froze."""
        wait_until(lambda: is_stopped(daemon.pid), "the daemon froze")

    def where(self, session: str, name: str) -> object:
        """What the daemon tells a terminal of it by that name."""
        return self.ask("where", session=session)[name]

    def names(self, session: str) -> list[str]:
        """The names of the lines of its journal."""
        return [event.body.name for event in self.events(session)]

    def path(self, session: str, *names: str) -> Path:
        """A place below its folder."""
        return Path(get_session_folder(self.project, session), *names)

    def read_packet(self, session: str, handoff: int = 0) -> dict[str, object]:
        """The document that was given in one of its handoffs."""
        return _load(self.path(session, self.session(session).done[handoff].json_path))

    def read_saved(self, session: str, name: str = "0001-understudy") -> tuple[str, dict[str, object]]:
        """One of its packets by the name of its files: text and document."""
        return (
            self.path(session, "resume", f"{name}.md").read_text("utf-8"),
            _load(self.path(session, "resume", f"{name}.json")),
        )

    def find_record(self, session: str, leg: int = -1) -> Path:
        """What the agent of one of its legs keeps itself of its work."""
        found = self.session(session).legs[leg]
        return Path(self.home, ".demo-agent", found.agent, f"{found.native_id}.jsonl")

    def read_record(self, session: str) -> str:
        """What its newest agent keeps itself of its work."""
        return self.find_record(session).read_text("utf-8")


def _load(path: Path) -> dict[str, object]:
    found = json.loads(path.read_bytes())
    assert isinstance(found, dict)
    return found


@contextlib.contextmanager
def working_world(
    *, order: tuple[str, ...] = ("demo", "understudy"), starts: bool = True, **scenes: Sequence[Scene]
) -> Iterator[WorkingWorld]:
    """A machine whose agents play these scenes, the demo agent `SCENES` by default, and a daemon."""
    with relay_world(order=order, kind=WorkingWorld) as made:
        assert isinstance(made, WorkingWorld)
        played: dict[str, Sequence[Scene]] = {"demo": SCENES, **scenes}
        made.play(**played)
        if starts:
            made.start_daemon()
        yield made


def begin(world: RelayWorld, **wish: object) -> str:
    """A session whose first agent is ready."""
    session = str(world.open("demo", **wish)["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    return session


def folder_of(world: RelayWorld, session: str) -> str:
    leg = world.session(session).living_leg
    assert leg is not None
    return f"{world.folders.legs}/{leg.id}"


def restart(world: RelayWorld) -> None:
    """The daemon is killed and another one takes over; where none was started yet, who asks first does."""
    if world.daemons or not isinstance(world, WorkingWorld):
        world.kill_daemons()
        world.start_daemon()


def say(world: RelayWorld, session: str, text: str) -> None:
    """A person types `text` into the session's agent."""
    type_into(folder_of(world, session), text.encode() + b"\r")


def has_taken_over(session: Session) -> bool:
    return session.agent == "understudy" and session.handoff is None and len(session.done) == 1


def finish_turn(world: RelayWorld, session: str) -> Session:
    """The session once its agent answered every prompt it took, one at least, and is ready again."""
    world.wait_for(session, lambda found: _has_answered(world, found.leg), "a turn is over")
    return world.wait_for(session, lambda found: found.state is State.READY, "the agent is ready again")


def _has_answered(world: RelayWorld, leg: Leg | None) -> bool:
    """Whether it took a prompt, and its record says of none that it is still worked on.

    The record, as a state may be that of before the turn, and the screen of a short one never seen busy.
    """
    if leg is None or not leg.was_busy or not leg.native_id:
        return False
    folder = Path(world.environ.get("DEMO_AGENT_HOME", f"{world.home}/.demo-agent"))
    text = "".join(path.read_text("utf-8") for path in folder.glob(f"*/{leg.native_id}.jsonl"))
    return text.count('"type": "done"') >= text.count('"type": "prompt"') > 0
