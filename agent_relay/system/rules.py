"""An adapter's rules from disk."""

from agent_relay.domain.rules import Rules
from agent_relay.system.adapters import LoadedAdapter
from agent_relay.system.documents import parse_document, read_toml


def load_rules(loaded: LoadedAdapter) -> Rules:
    """The rules beside an adapter; none where it has no such file. Raises ConfigurationError."""
    try:
        tables = read_toml(loaded.rules_path)
    except FileNotFoundError:
        return Rules()
    return parse_document(tables, Rules, loaded.rules_path)
