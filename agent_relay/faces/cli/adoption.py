"""Finds native sessions relay did not start, and asks whether one of them is meant."""

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.ids import AgentName
from agent_relay.faces.cli.printing import plain
from agent_relay.logic.launch import chooses_session
from agent_relay.system.adapters import load_adapters
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import find_near_root, read_sessions_at
from agent_relay.system.transcripts import find_native_sessions

RECENT = timedelta(hours=12)
"""Work of the same day is what people come back to; older sessions are named with --from."""
_TITLE_LENGTH = 60


def offer(agent: str, words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> str:
    """The agent whose recent native session the person wants to go on with; empty for none.

    Whoever named a native session by `words`, arguments of `agent` itself, is not asked for another.
    """
    asked = load_adapters(get_folders(environ), root=find_near_root(cwd)).get(AgentName(agent))
    if asked is not None and chooses_session(asked.adapter.launch, words):
        return ""
    found = find_recent(cwd, environ)
    if found is None:
        return ""
    agent, native = found
    minutes = max(0, int((datetime.now(UTC) - native.changed_at).total_seconds() // 60))
    title = plain(native.title)[:_TITLE_LENGTH]
    age = f"{minutes} min" if minutes < 60 else f"{minutes // 60} h"  # noqa: PLR2004 - an hour
    sys.stdout.write(f"{agent} has a session of its own here, {age} old{f': {title}' if title else ''}\n")
    sys.stdout.write("Go on with it? [y/N] ")
    sys.stdout.flush()
    return agent if sys.stdin.readline().strip().lower() in {"y", "yes"} else ""


def find_recent(cwd: str, environ: Mapping[str, str]) -> tuple[str, NativeSession] | None:
    """The newest native session of any agent in `cwd` that is recent and no leg of a session of ours."""
    root = find_near_root(cwd)
    known = _read_journals(root)
    found: list[tuple[str, NativeSession]] = []
    for name, loaded in load_adapters(get_folders(environ), root=root).items():
        spec = loaded.adapter.transcript
        if spec is None:
            continue
        try:
            sessions = find_native_sessions(
                spec, cwd=cwd, home=environ.get("HOME", ""), environ=environ, limit=5
            )
        except RelayError:
            continue
        found += [(name, native) for native in sessions if native.native_id not in known]
    recent = [entry for entry in found if datetime.now(UTC) - entry[1].changed_at < RECENT]
    return max(recent, key=lambda entry: entry[1].changed_at, default=None)


def _read_journals(root: str) -> str:
    """All journals of the repository as one text, in which the ids of our own legs stand."""
    texts = []
    for view in read_sessions_at(root):
        try:
            with open(
                os.path.join(str(view["folder"]), "journal.jsonl"), encoding="utf-8", errors="replace"
            ) as stream:
                texts.append(stream.read())
        except OSError:
            continue
    return "\n".join(texts)
