"""Where what is printed is read, which decides how it names commands."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def render_plain(text: str) -> str:
    """Return `text` for a plain terminal: commands as they stand, the relay key by its configured name."""
    if "the relay key" not in text:
        return text
    # Few texts name it: nobody else is to pay for what reads a configuration.
    from agent_relay.client.relay_key import read_relay_key
    from agent_relay.domain.errors import RelayError
    from agent_relay.domain.keys import name_relay_key
    from agent_relay.logic.hint_places import name_key
    from agent_relay.system.folders import get_folders

    try:
        key = read_relay_key(get_folders().config)
    except RelayError:
        return text
    return name_key(text, name_relay_key(key))


class HintStyle:
    """The place of this process: `render` has texts name commands as they are typed there.

    A plain terminal, where they are typed as they stand, unless somebody who knows better sets it.
    """

    render: "Callable[[str], str]" = render_plain
