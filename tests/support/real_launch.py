"""Starts a real agent exactly as its adapter says, without the product around it."""

import contextlib
import json
import os
import secrets
import shlex
import signal
import socket
import sys
import uuid
from dataclasses import dataclass

from jinja2.sandbox import SandboxedEnvironment

from agent_relay.domain.adapter import Adapter
from agent_relay.logic.launch import build_launch
from agent_relay.system.adapters import LoadedAdapter, find_builtin_folder, find_program, load_adapter
from tests.support.real import CHECKOUT, World
from tests.support.real_terminal import Terminal, WaitedError

AGENTS = ("claude", "codex", "gemini", "opencode")
HOOK_COMMAND = shlex.join([sys.executable, "-I", "-S", os.path.join(CHECKOUT, "agent_relay", "hook.py")])


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


def find_free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_object(path: str) -> dict[str, object]:
    """The JSON object in `path`, `{}` where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_files(loaded: LoadedAdapter, values: dict[str, str]) -> None:
    """The adapter's files stand in the leg's folder."""
    for file in loaded.adapter.launch.files:
        environment = SandboxedEnvironment(autoescape=False)
        environment.filters["shell"] = shlex.quote
        with open(os.path.join(loaded.folder, file.template), encoding="utf-8") as source:
            template = environment.from_string(source.read())
        read = {
            name: read_object(
                path.replace("{CLAUDE_CONFIG_DIR:-{home}/.claude}", values["home"] + "/.claude").replace(
                    "{cwd}", values["cwd"]
                )
            )
            for name, path in file.reads.items()
        }
        with open(os.path.join(values["leg_folder"], file.name), "w", encoding="utf-8") as target:
            target.write(template.render(**values, **read, hook_command=HOOK_COMMAND))


def start(
    world: World, agent: str, *, packet: str = "", native_id: str = "", extra: tuple[str, ...] = ()
) -> Leg:
    """A leg of `agent`: fresh, or resuming `native_id`; `packet` is the path of a packet."""
    loaded = get_adapter(agent)
    folder = os.path.join(world.root, "leg-" + secrets.token_hex(4))
    os.makedirs(folder, mode=0o700)
    fresh = str(uuid.uuid4()) if loaded.adapter.launch.native_id == "uuid4" else ""
    values = {
        "native_id": native_id or fresh,
        "leg_folder": folder,
        "packet": packet,
        "packet_folder": os.path.dirname(packet),
        "port": str(find_free_port()) if loaded.adapter.launch.needs_port else "",
        "password": secrets.token_urlsafe(16),
        "cwd": world.project,
        "home": world.home,
    }
    environ = world.env()
    program = find_program(loaded, environ)
    assert program is not None
    write_files(loaded, values)
    withheld = {key for other in AGENTS for key in get_adapter(other).adapter.keys}
    plan = build_launch(
        loaded.adapter,
        program,
        values=values,
        environ=environ,
        withheld=withheld,
        resumes=bool(native_id),
        extra=extra,
    )
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
    leg.terminal.pump(0)
    leg.terminal.wait_quiet(leg.adapter.deliver.submit_delay_ms / 1000)
    leg.terminal.send(leg.adapter.deliver.submit)


def quit_politely(leg: Leg, state: str) -> int:
    """End the agent by its adapter's steps for `state` ("ready", "busy", "asking"); its exit status."""
    for step in leg.adapter.quit:
        if step.only_when not in ("", state):
            continue
        if step.signal:
            os.killpg(os.getpgid(leg.terminal.pid), getattr(signal, step.signal))
        else:
            leg.terminal.send(step.keys)
        with contextlib.suppress(WaitedError):
            return leg.terminal.wait_exit(step.wait_s)
    raise WaitedError(f"no quit step ended {leg.adapter.name}; the screen:\n{leg.terminal.screen}")
