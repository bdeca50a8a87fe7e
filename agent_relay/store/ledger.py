"""Keep the ledger on disk: which agent rests until when, shared by every session and several writers."""

import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.limits import Rest
from agent_relay.domain.moments import parse_moment
from agent_relay.system.disk.files import cannot_write, read_bounded, write_atomic
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.disk.locks import lock_beside

SCHEMA = "agent-relay/ledger"
VERSION = 1
_LIMIT_BYTES = 1 << 20
_LOCK_LIMIT_S = 10.0


def read_ledger(path: str) -> tuple[Rest, ...]:
    """Return every rest in the ledger, over or not; empty if there is no ledger. Takes no lock.

    A ledger that cannot be trusted is moved aside, with one warning in the log, and counts as empty: the
    worst that follows is that an agent is asked once too often. Raises RelayError if it cannot be read.
    """
    try:
        return _read(path)
    except UntrustedDataError:
        return update_ledger(path, lambda rests: rests)


def update_ledger(path: str, change: Callable[[tuple[Rest, ...]], Sequence[Rest]]) -> tuple[Rest, ...]:
    """Apply `change` while no other process can change the ledger; return the result, which is durable.

    Nothing is written if nothing changed. Raises RelayError if the disk refuses or another process keeps the
    lock for 10 s.
    """
    ensure_private(os.path.dirname(path))
    with lock_beside(path, limit_s=_LOCK_LIMIT_S):
        try:
            before = _read(path)
        except UntrustedDataError as error:
            _move_aside(path, error)
            before = ()
        after = tuple(change(before))
        if after != before:
            write_atomic(path, _render(after))
        return after


def _read(path: str) -> tuple[Rest, ...]:
    try:
        data = read_bounded(path, limit_bytes=_LIMIT_BYTES)
    except FileNotFoundError:
        return ()
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise UntrustedDataError("it is not JSON") from None
    rests = document.get("rests") if isinstance(document, dict) else None
    if not isinstance(rests, list):
        raise UntrustedDataError("it holds no rests")
    return tuple(_parse_rest(rest) for rest in rests)


def _parse_rest(found: object) -> Rest:
    if not isinstance(found, dict):
        raise UntrustedDataError("a rest is not an object")
    texts = {name: found.get(name) for name in ("agent", "model", "scope", "evidence")}
    known = {name: text for name, text in texts.items() if isinstance(text, str)}
    if known != texts:
        raise UntrustedDataError("a rest lacks a field")
    until = found.get("until")
    return Rest(
        agent=known["agent"],
        model=known["model"],
        scope=known["scope"],
        evidence=known["evidence"],
        until=None if until is None else _get_moment(until),
        seen_at=_get_moment(found.get("seen_at")),
    )


def _get_moment(found: object) -> datetime:
    moment = parse_moment(found)
    if moment is None:
        raise UntrustedDataError("a rest has no valid time")
    return moment


def _render(rests: Sequence[Rest]) -> bytes:
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "rests": [
            {
                "agent": rest.agent,
                "model": rest.model,
                "scope": rest.scope,
                "until": None if rest.until is None else rest.until.isoformat(),
                "evidence": rest.evidence,
                "seen_at": rest.seen_at.isoformat(),
            }
            for rest in rests
        ],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _move_aside(path: str, why: UntrustedDataError) -> None:
    """Move a damaged ledger aside, under one name: the last one is enough to look at."""
    import logging

    kept = f"{path}.damaged"
    try:
        os.replace(path, kept)
    except OSError as error:
        raise cannot_write(kept, error) from error
    logging.getLogger(__name__).warning("ledger-damaged why=%r kept=%s", why.sentence, kept)
