"""Daemon, client, command line and shell have one table of operations."""

import ast
from collections.abc import Iterator

import msgspec

from agent_relay.daemon._tool_server import build_mcp_handlers
from agent_relay.daemon._watch_operations import build_watch_handlers
from agent_relay.daemon.run import Daemon, build_handlers
from agent_relay.domain.protocol.operations import OPERATIONS
from agent_relay.engine.agent_operations import build_agent_handlers
from agent_relay.engine.session_operations import build_handlers as build_session_handlers
from agent_relay.engine.turn_operations import build_handlers as build_turn_handlers
from agent_relay.engine.unmanaged_agents import build_hook_handlers
from agent_relay.race.registry import build_race_handlers
from tests.house import tree

_ASKS = {
    "ask_daemon",
    "request",
    "request_while",
    "ask",
    "_request",
    "_ask",
    "_ask_again",
    "_begin",
    "_act",
    "partial",
}
_OWN_WORDS = {"limit_s", "as_json"}
"""What the functions that send a request take themselves."""


def _list_requests() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the place of every call that names an operation, the name, and the fields it names."""
    for path in tree.python_files("agent_relay/client", "agent_relay/faces"):
        for call in tree.walk(tree.parse(path)):
            if not isinstance(call, ast.Call):
                continue
            asks = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            names = [one.value for one in call.args if isinstance(one, ast.Constant)]
            if asks in _ASKS and names and ("." in names[0] or names[0] in OPERATIONS or asks == "request"):
                yield f"{path}:{call.lineno}", names[0], {one.arg for one in call.keywords if one.arg}


def test_clients_send_what_the_table_has() -> None:
    """A misspelt name or field is found here, not by a user."""
    found = list(_list_requests())
    assert len(found) > 40
    for place, name, fields in found:
        assert name in OPERATIONS, place
        known = {one.encode_name for one in msgspec.structs.fields(OPERATIONS[name].fields)}
        assert fields - _OWN_WORDS - known == set(), place


def test_every_operation_of_the_table_is_performed_once() -> None:
    """What is only in the table would be an error at its first request."""
    performed = [
        *build_handlers(Daemon(None, None, None, None, None), {}),
        *build_session_handlers(None, None, None),
        *build_turn_handlers(None, None),
        *build_watch_handlers(None),
        *build_race_handlers(None),
        *build_agent_handlers(None, None),
        *build_mcp_handlers(None),
        *build_hook_handlers(None),
        "subscribe",
    ]
    assert sorted(performed) == sorted(OPERATIONS)
