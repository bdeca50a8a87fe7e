"""How a user who looks elsewhere wants to be told of what happens: `notify` in their `config.toml`."""

from agent_relay.domain.export_config import check_address

AUTO, OFF = "auto", "off"
_PLAIN = (AUTO, OFF, "bell", "osc", "desktop")
_WEBHOOK = "webhook:"


def list_wishes(value: object) -> object:
    """Return one wish as a list of one, as the file may have it; anything else as it is."""
    return (value,) if isinstance(value, str) else value


def check_wishes(wishes: tuple[str, ...]) -> tuple[str, ...]:
    """Return `wishes` where they can be meant. Raises ValueError with a sentence for the user."""
    for wish in wishes:
        if wish.startswith(_WEBHOOK):
            check_address(wish.removeprefix(_WEBHOOK))
        elif wish not in _PLAIN:
            known = ", ".join(f'"{one}"' for one in _PLAIN)
            raise ValueError(f'unknown value {wish[:40]!r}; use {known} or "{_WEBHOOK}https://…"')
    if len(set(wishes)) < len(wishes):
        raise ValueError("a value is listed twice")
    if not wishes or (OFF in wishes and len(wishes) > 1):
        raise ValueError('use "off" alone, or list at least one method')
    return wishes


def find_addresses(wishes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of the webhooks among them."""
    return tuple(wish.removeprefix(_WEBHOOK) for wish in wishes if wish.startswith(_WEBHOOK))
