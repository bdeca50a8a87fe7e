"""A monitor of one leg, what it goes by and what it reports: where tests take these from."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC

from agent_relay.agents.adapters import load_rules
from agent_relay.domain.documents.adapter import Adapter, SourceSpec
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.events.session import PromptSeen
from agent_relay.domain.inputs import Input
from agent_relay.domain.session import Leg
from agent_relay.engine.legs._trackers import MonitorConfig, NewestPrompt, RelayPrompt
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import LaunchEnvironment
from agent_relay.session.decision import Outcome
from agent_relay.system.clock import Clock, SystemClock
from tests.support.real_launch import get_adapter

__all__ = ["PATIENCE_S", "NewestPrompt", "RelayPrompt", "Reports", "build_config", "build_monitor"]
PATIENCE_S = 300


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


def build_config(
    agent: str = "demo",
    *,
    rules: Rules | None = None,
    sources: tuple[SourceSpec, ...] | None = None,
    known: frozenset[tuple[str, str, str, bool]] = frozenset(),
) -> MonitorConfig:
    """What a monitor of that agent goes by."""
    loaded = get_adapter(agent)
    read = loaded.adapter.sources if sources is None else sources
    return MonitorConfig(rules or load_rules(loaded), read, UTC, PATIENCE_S, known)


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
