"""The environment a leg is launched with: the user's variables, their terminal's size, what they gave."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.launch import STREAM_FILE, build_headless, get_program
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.session import Leg
from agent_relay.engine.services import Services
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.terminal.holder.child import UNASKED_FILE
from agent_relay.terminal.holder_client import HolderConnection


@dataclass(frozen=True, slots=True)
class LaunchEnvironment:
    """What a terminal sent for its legs, kept by the holder in memory so that it never touches the disk.

    `environ` is the user's whole environment; `args` and `model` were given for `agent` alone; `values` are
    what filled the leg's placeholders. `task` is what it is to work on, in the user's own words: the journal
    has them without secrets. `more` is what another version added: it is given to later legs.
    """

    environ: Mapping[str, str] = field(repr=False)
    agent: str = ""
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    model: str = ""
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    task: str = field(default="", repr=False)
    more: Mapping[str, object] = field(default_factory=dict, repr=False)


_FIELDS = {each.name for each in fields(LaunchEnvironment)} - {"more"}


async def read_launch_environment(holder: HolderConnection) -> LaunchEnvironment:
    """Return the launch environment of the holder's leg.

    Raises RelayError if the holder kept something else or is gone.
    """
    return parse_launch_environment(await holder.luggage())


def render_launch_environment(launch_environment: LaunchEnvironment, values: Mapping[str, str]) -> str:
    """Return the text a holder keeps of `launch_environment`, with `values` for its leg's placeholders."""
    known = {**asdict(launch_environment), "values": dict(values)}
    del known["more"]
    return json.dumps({**launch_environment.more, **known})


def parse_launch_environment(text: str) -> LaunchEnvironment:
    """Parse the text a holder kept, of this version or another one, which may know more or less.

    Raises RelayError if it is something else: without the user's environment nothing can be started.
    """
    try:
        found = json.loads(text)
        known = {name: found.pop(name) for name in _FIELDS & found.keys()}
        launch_environment = LaunchEnvironment(
            **{**known, "args": tuple(known.get("args", ())), "more": found}
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        launch_environment = None
    environ = launch_environment.environ if launch_environment is not None else None
    if (
        launch_environment is None
        or not isinstance(environ, dict)
        or not all(isinstance(one, str) for one in environ.values())
    ):
        raise RelayError("the holder's copy of the user's environment cannot be read")
    return launch_environment


_PROMPT_FILE = "prompt"
ERRORS_FILE = "errors.log"
_PACKET_BYTES = 4 << 20


def load_for(services: Services, leg: Leg, environ: Mapping[str, str] | None = None) -> LoadedAdapter:
    """Return the adapter of the leg's agent for this kind of leg. Raise WrongUseError if it has none.

    It is fitted to the version installed in `environ`, which reads disk; without `environ` the version is
    unknown.
    """
    loaded = (
        services.get_adapter(leg.agent) if environ is None else services.fit_installed(leg.agent, environ)
    )
    if not leg.headless:
        return loaded
    adapter = build_headless(loaded.adapter)
    if adapter is None:
        raise WrongUseError(f"{loaded.adapter.title} cannot work without a screen, as its adapter says")
    return replace(loaded, adapter=adapter)


def check_headless(services: Services, agent: str, environ: Mapping[str, str]) -> None:
    """Raise RelayError if the agent is not installed or cannot work headless. Reads disk."""
    leg = Leg("", agent, 0, services.clock.now(), headless=True)
    get_program(load_for(services, leg), environ)


def prepare_streams(adapter: Adapter, folder: str, *, packet: str, prompt: str) -> list[str]:
    """Write the leg's input file; return the paths of its standard input, output and error.

    The input holds all the leg is to do. `packet` is the path of the packet's text, empty for none; then the
    prompt alone is given. The user's prompt is added in their words unless the packet has them already.
    Raises RelayError if a file cannot be read or written.
    """
    paths = [os.path.join(folder, name) for name in (_PROMPT_FILE, STREAM_FILE, ERRORS_FILE)]
    text = prompt
    if packet:
        said = read_bounded(packet, limit_bytes=_PACKET_BYTES).decode("utf-8", "replace")
        is_known = prompt.strip() in said
        if adapter.deliver.packet_by == "paste":
            for mark, escaped in adapter.deliver.packet_escapes.items():
                said = said.replace(mark, escaped)
        else:
            said = ""
        text = "\n\n".join(
            part for part in (said, adapter.deliver.opening, "" if is_known else prompt) if part
        )
    write_atomic(paths[0], text.encode("utf-8", "surrogateescape"), durable=False)
    return paths


def was_begun(services: Services, leg: Leg) -> bool:
    """Tell whether the leg's program may have got its prompt: then its output has a file.

    A program that a holder ended before it had read or said anything does not count.
    """
    if leg.child_pid > 0:
        return True
    folder = f"{services.folders.legs}/{leg.id}"
    return os.path.exists(f"{folder}/{STREAM_FILE}") and not os.path.exists(f"{folder}/{UNASKED_FILE}")
