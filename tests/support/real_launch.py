"""Starts a real agent exactly as its adapter says, without the product around it."""

import contextlib
import os
import secrets
import signal
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import LoadedAdapter, load_adapter
from agent_relay.agents.launch import LegStart, build_values, prepare_launch
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.session import Leg as SessionLeg
from tests.support.real import World
from tests.support.real_terminal import Terminal, WaitedError
from tests.support.relay_world import wait_until

WHOLE_S = 1.0
PATIENCE = 10
AGENTS = ("claude", "codex", "gemini", "opencode")


@dataclass(frozen=True)
class Leg:
    """One started agent: its adapter, what filled the placeholders, and the user's terminal."""

    adapter: Adapter
    values: dict[str, str]
    terminal: Terminal

    @property
    def folder(self) -> str:
        """The leg's folder."""
        return self.values["leg_folder"]


def get_adapter(agent: str) -> LoadedAdapter:
    """The adapter that ships with the checkout."""
    return load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in")


def start(
    world: World, agent: str, *, packet: str = "", native_id: str = "", extra: tuple[str, ...] = ()
) -> Leg:
    """A leg of `agent`: fresh, or resuming `native_id`; `packet` is the path of a packet."""
    loaded = get_adapter(agent)
    folder = os.path.join(world.root, "leg-" + secrets.token_hex(4))
    os.makedirs(folder, mode=0o700)
    fresh = str(uuid.uuid4()) if loaded.adapter.launch.native_id == "uuid4" else ""
    leg = SessionLeg(
        "leg",
        agent,
        1,
        starting_at=datetime.now(UTC),
        native_id=native_id or fresh,
        resumes=bool(native_id),
    )
    begin = LegStart(folder, world.project, world.env(), packet=packet, args=extra)
    values = build_values(loaded, leg, begin)
    withheld = {key for other in AGENTS for key in get_adapter(other).adapter.keys}
    plan = prepare_launch(loaded, leg, begin, values=values, withheld=withheld)
    return Leg(loaded.adapter, values, world.open(list(plan.argv), plan.env))


PROMPTS = {
    "claude": r"shortcuts|\u276f",
    "codex": r"Ask Codex|\u203a",
    "gemini": "Type your message",
    "opencode": "Ask anything|commands",
}


def wait_ready(leg: Leg) -> None:
    """The agent shows its prompt and has finished painting it."""
    leg.terminal.wait_for(PROMPTS[leg.adapter.name])
    leg.terminal.wait_quiet(0.5)


def deliver(leg: Leg, text: str) -> None:
    """Paste `text` and submit it, as the adapter says."""
    leg.terminal.paste(text)
    leg.terminal.wait_typed(text)
    leg.terminal.wait_quiet(leg.adapter.deliver.submit_delay_ms / 1000)
    leg.terminal.send(leg.adapter.deliver.submit)


def quit_politely(leg: Leg, state: str) -> int:
    """End the agent by its adapter's steps for `state` ("ready", "busy", "asking"); its exit status.

    A step that is given a whole second is meant to end it, and gets more on a busy machine.
    """
    for step in leg.adapter.quit:
        if step.only_when not in ("", state):
            continue
        if step.signal:
            os.killpg(os.getpgid(leg.terminal.pid), getattr(signal, step.signal))
        else:
            leg.terminal.send(step.keys)
        with contextlib.suppress(WaitedError):
            return leg.terminal.wait_exit(step.wait_s * (PATIENCE if step.wait_s >= WHOLE_S else 1))
    raise WaitedError(f"no quit step ended {leg.adapter.name}; the screen:\n{leg.terminal.screen}")


def check_gone(world: World, leg: Leg, state: str) -> None:
    """The agent ends without being killed, nothing of it lives on, and its terminal is as it was.

    A shell it was running may end a moment after it, when its own terminal is gone.
    """
    assert quit_politely(leg, state) != 128 + signal.SIGKILL
    wait_until(lambda: not world.find_processes(), f"{world.find_processes()} to end", limit_s=120)
    assert leg.terminal.modes_left_on() == []
