"""What a headless leg is started with and how its end is judged: files in place of a screen."""

import os
from collections.abc import Mapping
from dataclasses import replace

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.launch import STREAM_FILE, build_headless, get_program
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import UntrustedDataError, WrongUseError
from agent_relay.domain.inputs import LegGone
from agent_relay.domain.session import Leg
from agent_relay.domain.text.plain import find_reason
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import Services
from agent_relay.system.disk.files import read_bounded, read_end, write_atomic
from agent_relay.terminal.holder.child import UNASKED_FILE

_PROMPT_FILE, _ERRORS_FILE = "prompt", "errors.log"
_PACKET_BYTES = 4 << 20
_ERROR_BYTES = 1 << 14


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
    paths = [os.path.join(folder, name) for name in (_PROMPT_FILE, STREAM_FILE, _ERRORS_FILE)]
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


def judge(monitor: LegMonitor, ending: LegGone, folder: str, *, is_overdue: bool = False) -> LegGone:
    """Return the leg's end with what its stream said of its turn, or else why it ended.

    A leg that was `is_overdue` had reported that it was done before it was ended, whatever its end looks
    like.
    """
    if not monitor.leg.headless:
        return ending
    verdict = monitor.verdict
    ending = replace(ending, refused=verdict.refused)
    if is_overdue or (verdict.is_done and ending.status <= 0):
        return replace(ending, is_done=True)
    agent, reason = monitor.leg.agent, verdict.why or _read_why(folder)
    if verdict.is_idle:
        idle = f"{agent} ended its turn without doing anything"
        return replace(ending, why=f"{idle}: {reason}" if reason else idle)
    how = ending.why or f"{agent} ended with status {ending.status} before its turn was over"
    return replace(ending, why=reason or how)


def _read_why(folder: str) -> str:
    """Return the last thing a failed program wrote to its standard error; empty for nothing."""
    try:
        said = read_end(os.path.join(folder, _ERRORS_FILE), limit_bytes=_ERROR_BYTES)
    except (OSError, UntrustedDataError):
        return ""
    return find_reason(said.decode("utf-8", "replace"))
