"""Removes secrets from texts of any length; long ones are searched outside the daemon's process.

The event loop serves every session, and a thread would block it by the interpreter's lock: a regular
expression does not release that until its search is over.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body
from agent_relay.engine.publishing.limited_work import run_limited
from agent_relay.engine.threads import finish_or_end
from agent_relay.redact.event import count_redacted, redact_body
from agent_relay.system.limited_process import LimitedProcess, TookTooLongError, WorkLimit

MOST_AT_ONCE = 16_000
"""How many characters are searched in this process, in some ten milliseconds: another process costs as
much."""
_LIMIT = WorkLimit(processor_s=20, wall_s=60)
_Made = TypeVar("_Made")


async def redact_event(body: Body, *, known: frozenset[str]) -> Body:
    """Return `body` as it may be journalled; `known` are values that are secret wherever they occur.

    Raises RelayError if it cannot be searched: then nothing of it may be journalled.
    """
    return await _redact(count_redacted(body), partial(redact_body, body, known=known))


async def redact_request(text: str, *, known: frozenset[str] = frozenset()) -> str:
    """Return `text` without secrets. Raise RelayError as `redact_event` does."""
    from agent_relay.redact.text import redact_words

    return await _redact(len(text), partial(redact_words, text, known=known))


def redact_in_thread(text: str, *, known: frozenset[str] = frozenset()) -> str:
    """Return `text` redacted as `redact_event` does it, for work that already runs in a thread."""
    from agent_relay.redact.text import redact_words

    work = partial(redact_words, text, known=known)
    return work() if len(text) <= MOST_AT_ONCE else _search(LimitedProcess(), work)


async def _redact(length: int, work: Callable[[], _Made]) -> _Made:
    if length <= MOST_AT_ONCE:
        return work()
    process = LimitedProcess()
    return await finish_or_end(process.end, _search, process, work)


def _search(process: LimitedProcess, work: Callable[[], _Made]) -> _Made:
    try:
        return run_limited(process, _LIMIT, work)
    except TookTooLongError as error:
        raise RelayError(
            f"a long text could not be searched for secrets: {error.sentence}", hint="Put it into a file"
        ) from error
