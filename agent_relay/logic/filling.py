"""How full an agent's context is, as the journal's lines tell it, and in words."""

from dataclasses import replace
from datetime import datetime

from agent_relay.domain.context import Context, Level
from agent_relay.domain.context_event import ContextCompacting, ContextNoted, ContextSpared, DraftBegun
from agent_relay.domain.event import Event
from agent_relay.logic.moments import parse_moment

_LEVELS = frozenset(level.value for level in Level)


def note_context(context: Context, noted: ContextNoted, read_at: datetime) -> Context:
    """The context after its agent told of it: one that is low again may be acted on anew."""
    level = Level(noted.level)
    is_low = level is Level.LOW
    peak = level if is_low or level.is_above(context.peak) else context.peak
    known = replace(context, used=noted.used, room=noted.room, level=level, peak=peak, read_at=read_at)
    return replace(known, is_spent=False, is_drafted=False) if is_low else known


def fold_context(
    context: Context, body: ContextNoted | ContextCompacting | ContextSpared | DraftBegun, event: Event
) -> Context:
    """The context after one more line of the journal; a line that cannot be meant changes nothing."""
    match body:
        case ContextNoted():
            read_at = parse_moment(body.read_at)
            if read_at is None or body.level not in _LEVELS:
                return context
            return note_context(context, body, read_at)
        case ContextCompacting():
            return replace(context, is_spent=True, relieved_at=event.at)
        case ContextSpared():
            # The cooldown of the relief before this one was over, or this would not have been tried.
            return replace(context, is_spent=False, relieved_at=None)
        case _:
            return replace(context, is_drafted=True, has_drafted=True, drafted_at=event.at)


def begin_context(context: Context, *, is_relief: bool) -> Context:
    """The context of a leg that begins, `is_relief` where the one before it was full.

    Such a leg has to be seen low first: where a fresh start is full at once, another one would be, too.
    """
    kept = Context(relieved_at=context.relieved_at, drafted_at=context.drafted_at)
    return replace(kept, is_spent=is_relief)


def render_fill(context: Context) -> str:
    """How full it is, in words: `91 % full (152,000 of 167,000 tokens)`."""
    if not context.room:
        return f"{context.used:,} tokens long"
    percent = int(100 * context.used / context.room)
    return f"{percent} % full ({context.used:,} of {context.room:,} tokens)"
