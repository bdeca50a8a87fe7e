"""List the sessions agents keep themselves in a folder, and offer to continue one of them.

Sessions that are a leg of one of ours are left out. `--from` chooses from the rest, as does the question
that is asked without it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent_relay.agents.catalog import load_adapters
from agent_relay.agents.user_arguments import chooses_session
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.moments import render_age
from agent_relay.domain.names import get_journal_path
from agent_relay.domain.values import AgentName
from agent_relay.faces.render.output import ask, plain, warn
from agent_relay.redact.text import redact_text
from agent_relay.sources.native_sessions import find_native_sessions
from agent_relay.store.session_index import find_near_root, list_own_at
from agent_relay.system.disk.files import open_stream
from agent_relay.system.disk.folders import get_folders

MOST = 20
"""Most sessions of one agent that are listed."""
_TITLE_LENGTH = 60
_LINE_BYTES = 64 << 10
"""Most bytes of a journal line that are looked at: one that names a native session is far shorter."""


@dataclass(frozen=True, slots=True)
class NativeChoice:
    """One agent's own session. `title` is on one line, without secrets and safe to print."""

    agent: str
    native_id: str
    title: str
    changed_at: datetime
    path: str

    @property
    def word(self) -> str:
        """The value of `--from` that chooses this session."""
        return f"{self.agent}:{self.native_id}"


def list_natives(cwd: str, environ: Mapping[str, str]) -> tuple[list[NativeChoice], list[tuple[str, str]]]:
    """Return every agent's native sessions in `cwd` that are no leg of ours, newest first.

    The second list has the agents of those that cannot be read, and why not, in one sentence.
    """
    root = find_near_root(cwd)
    folders = get_folders(environ)
    known = _read_own_ids(root, folders.sessions)
    found: list[NativeChoice] = []
    unread: list[tuple[str, str]] = []
    for name, loaded in load_adapters(folders, root=root).items():
        spec = loaded.adapter.transcript
        if spec is None:
            continue
        try:
            own = find_native_sessions(
                spec, cwd=cwd, home=environ.get("HOME", ""), environ=environ, limit=MOST
            )
        except RelayError as error:
            unread.append((name, error.sentence))
            continue
        found += [_build(name, native) for native in own.sessions if native.native_id not in known]
        unread += [(name, error.sentence) for error in own.unread]
    return sorted(found, key=lambda native: native.changed_at, reverse=True), unread


def build_row(native: NativeChoice, now: datetime) -> dict[str, object]:
    """Return one session: agent, native_id, title, changed_at (ISO 8601), age_s, path, from."""
    return {
        "agent": native.agent,
        "native_id": native.native_id,
        "title": native.title,
        "changed_at": native.changed_at.isoformat(),
        "age_s": max(0, int((now - native.changed_at).total_seconds())),
        "path": plain(native.path),
        "from": native.word,
    }


def _build(agent: str, native: NativeSession) -> NativeChoice:
    title = plain(" ".join(redact_text(native.title).text.split()))
    short = title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
    return NativeChoice(agent, plain(native.native_id), short, native.changed_at, native.path)


def _read_own_ids(root: str, index: str) -> set[str]:
    """Return the native ids that our own legs here have had, from the journals."""
    found: set[str] = set()
    for session in list_own_at(root, index):
        try:
            path = get_journal_path(root, session)
            with open_stream(path) as stream:
                while line := stream.readline(_LINE_BYTES):
                    found |= _find_own_id(line)
        except (OSError, UntrustedDataError):
            continue
    return found


def _find_own_id(line: bytes) -> set[str]:
    if b'"native_id"' not in line:
        return set()
    try:
        data = json.loads(line).get("data")
    except (ValueError, RecursionError, AttributeError):
        return set()
    named = data.get("native_id") if isinstance(data, dict) else None
    return {named} if isinstance(named, str) and named else set()


RECENT = timedelta(hours=12)
"""Age up to which sessions are offered: people come back to the same day's work; others need --from."""
_OFFERED = 9


def offer_native_session(agent: str, words: Sequence[str], cwd: str, environ: Mapping[str, str]) -> str:
    """Ask the user which native session to continue; return its value of `--from`, empty for none.

    Nothing is asked if `words`, arguments of `agent` itself, name a native session already.
    """
    asked = load_adapters(get_folders(environ), root=find_near_root(cwd)).get(AgentName(agent))
    if asked is not None and chooses_session(asked.adapter.launch, words):
        return ""
    now = datetime.now(UTC)
    found, unread = list_natives(cwd, environ)
    recent = [native for native in found if now - native.changed_at < RECENT]
    if not recent:
        return ""
    for unreadable, why in unread:
        warn(f"a session of {unreadable}'s is left out: {why}")
    offered = recent[:_OFFERED]
    told = [
        f"{render_age(one.changed_at, now)} old{f': {one.title}' if one.title else ''}" for one in offered
    ]
    if len(told) == 1:
        answer = ask(f"{recent[0].agent} has a session of its own here, {told[0]}\nGo on with it? [y/N] ")
        return recent[0].word if answer in {"y", "yes"} else ""
    lines = ["Agents have sessions of their own here:"]
    lines += [
        f"  {at}  {one.agent}, {age}" for at, (one, age) in enumerate(zip(offered, told, strict=True), 1)
    ]
    answer = ask("\n".join([*lines, f"Go on with one of them? [1-{len(told)}, Enter for none] "]))
    chosen = int(answer) if answer.isdecimal() and len(answer) == 1 else 0
    return recent[chosen - 1].word if 1 <= chosen <= len(told) else ""
