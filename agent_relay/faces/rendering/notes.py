"""What relay itself has to say of a turn's events, a line each."""

from collections.abc import Mapping

from agent_relay.domain.session import BY_HAND
from agent_relay.faces.rendering.ink import join_line
from agent_relay.logic.reasons import quote_reason


def find_note(event: Mapping[str, object]) -> str:
    """The sentence; empty for an event that is none of relay's, and for a turn that is done."""
    match event.get("type"):
        case "handoff" | "budget" | "waiting":
            return join_line(str(event.get("message", "")))
        case "handoff-failed":
            return join_line(f"→ {event.get('why', '')}")
        case "signal" if event.get("scope") == "warning":
            return join_line(f"→ {event.get('agent', '')}: {quote_reason(str(event.get('text', '')))}")
        case "left-out":
            said = (
                f"a line of {event.get('agent', '')}'s output is longer than {_show_size(event)} and left out"
            )
            return join_line(f"→ {said}")
        case "end":
            return join_line(_describe_end(event))
        case _:
            return ""


def _show_size(event: Mapping[str, object]) -> str:
    longest = event.get("longest")
    return f"{longest >> 20} MiB" if isinstance(longest, int) else "we read"


def _describe_end(event: Mapping[str, object]) -> str:
    outcome, agent = event.get("outcome"), event.get("agent")
    why = event.get("why") or "it gave no reason"
    if outcome == "done":
        return _describe_refused(event)
    if outcome == "resting":
        return str(event.get("message") or f"→ {why}")
    said = f"→ {agent} {'failed' if outcome == 'failed' else 'was stopped'}: {why}"
    if why == BY_HAND:
        said = f"→ {agent} was {why}"
    return f"{said.rstrip('.')}. {event['hint']}" if event.get("hint") else said


def _describe_refused(event: Mapping[str, object]) -> str:
    """Say which tools the agent asked for in vain: its answer may rest on work it could not do."""
    refused = event.get("refused")
    if not isinstance(refused, list | tuple) or not refused:
        return ""
    names = ", ".join(str(name) for name in refused)
    agent = event.get("agent")
    return f"→ {agent} was not allowed to use: {names}. To allow more, pass {agent}'s own options after --"
