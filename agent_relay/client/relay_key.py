"""Read the relay key the user configured, without loading the whole configuration."""

from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.names import DEFAULT_RELAY_KEY, parse_relay_key
from agent_relay.system.disk.files import read_bounded

_LIMIT_BYTES = 1 << 20


def read_relay_key(config_folder: str) -> int:
    """Return the control byte of `relay_key` in the user's `config.toml`, or of the default.

    Raises ConfigurationError if it is set to something that cannot be a relay key.
    """
    path = f"{config_folder}/config.toml"
    try:
        data = read_bounded(path, limit_bytes=_LIMIT_BYTES)
    except FileNotFoundError:
        return parse_relay_key(DEFAULT_RELAY_KEY)
    if b"relay_key" not in data:
        return parse_relay_key(DEFAULT_RELAY_KEY)
    import tomllib

    try:
        found = tomllib.loads(data.decode()).get("relay_key", DEFAULT_RELAY_KEY)
        return parse_relay_key(str(found))
    except ValueError as error:
        # A TOML error and bytes that are no UTF-8 are ValueErrors as well.
        raise ConfigurationError(f"{path}: relay_key: {error}") from None
    except RecursionError:
        raise ConfigurationError(
            f"{path} cannot be read: its lists or tables are nested too deeply"
        ) from None
