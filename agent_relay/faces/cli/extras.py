"""What is said where a command needs libraries that are installed only with an extra."""

from agent_relay.domain.errors import ConfigurationError


def missing_extra(error: ModuleNotFoundError, extra: str) -> ConfigurationError:
    """That the module is missing, and which extra brings it. Raises `error` where it is one of ours."""
    if error.name is None or error.name.startswith("agent_relay"):
        raise error
    return ConfigurationError(
        f"{error.name} is not installed", hint=f"It comes with: pip install 'agent-relay[{extra}]'"
    )
