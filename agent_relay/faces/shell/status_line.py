"""The line above the prompt: who works, on which model, how full, at what price, and who rests."""

from collections.abc import Mapping, Sequence

from agent_relay.faces.cli.printing import plain, render_moment
from agent_relay.faces.shell.conversation import Conversation

_GAP = " · "
_LONGEST = 40


def render_status(
    conversation: Conversation, resting: Sequence[Mapping[str, object]], *, state: str, width: int
) -> str:
    """One line of at most `width` columns; what is not known is left out. `state` is what happens now."""
    used, room = conversation.context
    parts = [
        conversation.at_work or conversation.agent or "no agent",
        conversation.model,
        f"context {round(100 * used / room)} %" if room > 0 else "",
        f"${conversation.cost:.2f}" if conversation.cost is not None else "",
        _shorten(conversation.near),
        *(_describe_rest(rest) for rest in resting),
        state,
    ]
    return plain(_GAP.join(part for part in parts if part))[: max(0, width - 1)]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _describe_rest(rest: Mapping[str, object]) -> str:
    until = render_moment(rest.get("until"))
    return f"{rest.get('agent')} rests{f' until {until}' if until else ''}"
