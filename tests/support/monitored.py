"""A monitor of one leg, and what it reports."""

from collections.abc import Awaitable, Callable, Mapping

from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.events.session import PromptSeen
from agent_relay.domain.inputs import Input
from agent_relay.domain.session import Leg
from agent_relay.engine.legs._trackers import MonitorConfig
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import LaunchEnvironment
from agent_relay.session.decision import Outcome
from agent_relay.system.clock import Clock, SystemClock
from tests.support.real_launch import get_adapter


class Reports:
    """Keeps what a monitor reports: inputs, and what the user was seen to ask."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.prompts: list[PromptSeen] = []
        self.renamed: Callable[[str, Mapping[str, str]], None] = lambda _leg, _names: None

    def report(self, _leg: Leg, happened: Input | Outcome) -> None:
        if isinstance(happened, Outcome):
            self.prompts += [body for body in happened.bodies if isinstance(body, PromptSeen)]
        else:
            self.inputs.append(happened)

    def note_change(self, leg_id: str) -> None:
        """Nobody waits for it."""

    def note_names(self, leg_id: str, names: Mapping[str, str]) -> None:
        self.renamed(leg_id, names)


async def find_nothing() -> None:
    """No record was written yet."""


def build_monitor(
    leg: Leg,
    config: MonitorConfig,
    reports: Reports | None = None,
    *,
    clock: Clock | None = None,
    poke: Callable[[], Awaitable[None]] = find_nothing,
    adapter: Adapter | None = None,
    environ: Mapping[str, str] | None = None,
) -> LegMonitor:
    """The monitor of a leg whose agent is `adapter`'s, by default the demo's."""
    return LegMonitor(
        leg,
        config,
        clock=clock or SystemClock(),
        adapter=adapter or get_adapter("demo").adapter,
        launch_environment=LaunchEnvironment(environ or {}),
        poke=poke,
        listener=reports or Reports(),
    )
