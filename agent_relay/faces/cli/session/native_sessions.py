"""Show the sessions agents keep themselves in a folder, and offer to continue one of them.

`--from` chooses one, as does the question that is asked without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_relay.domain.moments import parse_moment, render_age
from agent_relay.faces.render.output import ask, plain, warn

_TITLE_LENGTH = 60
_OFFERED = 9


@dataclass(frozen=True, slots=True)
class NativeChoice:
    """One agent's own session. `title` is on one line, without secrets; all is safe to print."""

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
    from agent_relay.agents.catalog import load_adapters
    from agent_relay.engine.sessions.native_choices import list_natives as list_rows
    from agent_relay.store.session_index import find_near_root
    from agent_relay.system.disk.folders import get_folders

    folders = get_folders(environ)
    adapters = load_adapters(folders, root=find_near_root(cwd))
    rows, unread = list_rows(adapters, cwd, environ, index=folders.sessions)
    return [_read_row(row) for row in rows], unread


def build_row(native: NativeChoice, now: datetime) -> dict[str, object]:
    """Return one session: agent, native_id, title, changed_at (ISO 8601), age_s, path, from."""
    return {
        "agent": native.agent,
        "native_id": native.native_id,
        "title": native.title,
        "changed_at": native.changed_at.isoformat(),
        "age_s": max(0, int((now - native.changed_at).total_seconds())),
        "path": native.path,
        "from": native.word,
    }


def _read_row(row: Mapping[str, object]) -> NativeChoice:
    """Return a row, as the daemon lists it, as it can be printed."""
    title = plain(" ".join(str(row.get("title", "")).split()))
    return NativeChoice(
        str(row.get("agent", "")),
        plain(str(row.get("native_id", ""))),
        title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…",
        parse_moment(row.get("changed_at")) or datetime.now(UTC),
        plain(str(row.get("path", ""))),
    )


def offer_native_session(rows: Sequence[Mapping[str, object]], unread: Sequence[Mapping[str, object]]) -> str:
    """Ask the user which of `rows` to continue; return its value of `--from`, empty for none.

    `rows` are the daemon's, newest first, and `unread` the agents of those that cannot be read, and why.
    """
    now = datetime.now(UTC)
    for one in unread:
        warn(f"a session of {one.get('agent')}'s is left out: {one.get('why')}")
    offered = [_read_row(row) for row in rows[:_OFFERED]]
    told = [
        f"{render_age(one.changed_at, now)} old{f': {one.title}' if one.title else ''}" for one in offered
    ]
    if len(told) == 1:
        answer = ask(f"{offered[0].agent} has a session of its own here, {told[0]}\nGo on with it? [y/N] ")
        return offered[0].word if answer in {"y", "yes"} else ""
    lines = ["Agents have sessions of their own here:"]
    lines += [
        f"  {at}  {one.agent}, {age}" for at, (one, age) in enumerate(zip(offered, told, strict=True), 1)
    ]
    answer = ask("\n".join([*lines, f"Go on with one of them? [1-{len(told)}, Enter for none] "]))
    chosen = int(answer) if answer.isdecimal() and len(answer) == 1 else 0
    return offered[chosen - 1].word if 1 <= chosen <= len(told) else ""
