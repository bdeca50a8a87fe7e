"""What comes with us of an agent: its rules, and how it is shown a packet."""

import functools
from collections.abc import Callable

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import LoadedAdapter, build_renderer, load_adapter, load_rules
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.rules import Rules


@functools.cache
def load_built_in(agent: str) -> LoadedAdapter:
    """Its adapter."""
    return load_adapter(f"{find_builtin_folder()}/{agent}", origin="built-in")


@functools.cache
def load_agent_rules(agent: str) -> Rules:
    """Its rules."""
    return load_rules(load_built_in(agent))


def build_agent_renderer(agent: str) -> Callable[[ResumePacket], str]:
    """A packet of the session in `/s` as the agent reads it."""
    return build_renderer(load_built_in(agent), folder="/s")
