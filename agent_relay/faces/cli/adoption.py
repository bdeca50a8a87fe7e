"""Asks whether one of the native sessions relay did not start is meant."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from agent_relay.domain.ids import AgentName
from agent_relay.faces.cli.printing import warn
from agent_relay.faces.cli.sessions_native import Native, list_natives, render_age
from agent_relay.logic.launch import chooses_session
from agent_relay.system.adapter_catalog import load_adapters
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import find_near_root

RECENT = timedelta(hours=12)
"""Work of the same day is what people come back to; older sessions are named with --from."""
_OFFERED = 9


def offer(agent: str, words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> str:
    """What `--from` would say of the native session the person wants to go on with; empty for none.

    Whoever named a native session by `words`, arguments of `agent` itself, is not asked for another.
    """
    asked = load_adapters(get_folders(environ), root=find_near_root(cwd)).get(AgentName(agent))
    if asked is not None and chooses_session(asked.adapter.launch, words):
        return ""
    now = datetime.now(UTC)
    found, unread = list_natives(cwd, environ)
    recent = [native for native in found if now - native.changed_at < RECENT]
    if not recent:
        return ""
    for one in unread:
        warn(f"a session of {one.agent}'s is left out: {one.why}")
    chosen = _ask_for_one(recent[0], now) if len(recent) == 1 else _ask_for_any(recent[:_OFFERED], now)
    return chosen.word if chosen is not None else ""


def _ask_for_one(native: Native, now: datetime) -> Native | None:
    age, title = render_age(native.changed_at, now), f": {native.title}" if native.title else ""
    answer = _ask(f"{native.agent} has a session of its own here, {age} old{title}\nGo on with it? [y/N] ")
    return native if answer in {"y", "yes"} else None


def _ask_for_any(natives: Sequence[Native], now: datetime) -> Native | None:
    lines = ["Agents have sessions of their own here:"]
    for number, native in enumerate(natives, start=1):
        age, title = render_age(native.changed_at, now), f": {native.title}" if native.title else ""
        lines.append(f"  {number}  {native.agent}, {age} old{title}")
    answer = _ask("\n".join([*lines, f"Go on with one of them? [1-{len(natives)}, Enter for none] "]))
    chosen = int(answer) if answer.isdecimal() and len(answer) == 1 else 0
    return natives[chosen - 1] if 1 <= chosen <= len(natives) else None


def _ask(question: str) -> str:
    sys.stdout.write(question)
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower()
