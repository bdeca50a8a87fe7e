"""`agent-relay status`: show sessions and resting agents, from files, at the cost of a bare Python."""

import sys

from agent_relay.domain.errors import ExitCode
from agent_relay.domain.text.names import agent_command, continue_command, name_rest
from agent_relay.faces.cli.options import OptionParser
from agent_relay.faces.cli.session.lookup import list_strangers
from agent_relay.faces.render.output import (
    HintStyle,
    get_rows,
    print_json,
    print_lines,
    render_day,
    render_rest_end,
    render_table,
)
from agent_relay.session.views.summary import NO_TITLE, list_budgets
from agent_relay.store.session_index import (
    check_ledger,
    find_near_root,
    find_root,
    is_unstarted,
    list_named,
    list_own_at,
    list_unended,
    read_resting,
    read_sessions_at,
    read_shown_at,
    read_summary,
)
from agent_relay.system.disk.folders import get_cwd, get_folders

HELP = """usage: agent-relay status [--all] [--json]

Show this repository's sessions that have not ended, the agents that are resting, and
the usage of their limits that agents last reported.

  --all    ended sessions too
  --json   the same as JSON: {"root", "sessions": [...], "resting": [...], "windows": [...],
           "strangers": [...]}

Strangers are sessions that came with this folder, as with a clone, and are none of yours.
"""


def run_status(words: list[str]) -> int:
    """Print the view; return 0, also if nothing runs."""
    found = OptionParser("status", flags=("--all", "--json"), most=0).parse(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    view = build_view(get_cwd(), ended="--all" in found.flags)
    if "--json" in found.flags:
        print_json(view)
    else:
        _print(view)
    # What is told above is true; that nobody rests beside those, nobody knows.
    check_ledger(get_folders().ledger)
    return ExitCode.DONE


def build_view(cwd: str, *, ended: bool) -> dict[str, object]:
    """Return `root`, its `sessions`, the `resting` agents with scope and until, and the `windows` of use.

    `sessions` are as `store.session_index` has them. `strangers` are the ids of sessions that came with
    the folder, which relay neither reads nor touches.
    """
    folders = get_folders()
    root = find_near_root(cwd)
    strangers = list_strangers(folders, root)
    read = read_sessions_at if ended else read_shown_at
    sessions = read(root, folders.sessions) or _read_gone(root, folders.sessions, ended=ended)
    return {
        "root": root,
        "sessions": sessions,
        "resting": read_resting(folders.ledger),
        "windows": _read_windows(folders.usage_windows),
        "strangers": strangers,
    }


def _read_windows(path: str) -> list[dict[str, object]]:
    """Return what agents last said of their usage windows."""
    from datetime import UTC, datetime

    from agent_relay.store.usage_windows import read_windows

    return read_windows(path, datetime.now(UTC))


def _read_gone(root: str, index: str, *, ended: bool) -> list[dict[str, object]]:
    """Return the sessions the index names here, if no folder of any of them exists any more."""
    if list_own_at(root, index):
        return []
    names = list_named(index) if ended else list_unended(index)
    return [read_summary(root, name) for name in names if find_root(index, name) == root]


HEADERS = ("state", "agent", "since", "session", "title", "about")
"""Headers of the cells of `list_columns`."""


def list_columns(view: dict[str, object]) -> list[str]:
    """Return one session as the cells of a row, under `HEADERS`."""
    return [
        "waiting" if is_unstarted(view) else str(view["state"]),
        str(view["agent"] or "-"),
        render_day(view["since"]),
        str(view["session"]),
        str(view["title"] or ("-" if view["state"] in {"gone", "unreadable"} else NO_TITLE)),
        HintStyle.render(_render_about(view)),
    ]


def _render_about(view: dict[str, object]) -> str:
    refused, near = view["refused"], view["near"]
    full = "; ".join(part for part in (_render_fill(view["context"]), _render_budgets(view)) if part)
    if isinstance(refused, dict):
        return f"signed out, or its key refused: {_quote(refused)}"
    if view["state"] in {"ready", "busy", "asking"}:
        if isinstance(near, dict):
            ahead = view.get("standby")
            is_ready = isinstance(ahead, dict) and ahead["state"] == "ready"
            follows = f"; then {view['next_agent']}" if view.get("next_agent") else ""
            follows += ", which is started and ready" if follows and is_ready else ""
            return f"near limit: {_quote(near)}{follows}{f'; {full}' if full else ''}"
        if full:
            return full
        if told := _render_return(view):
            return told
    return _render_why(view)


def _render_return(view: dict[str, object]) -> str:
    """Return which preferred agent can be had back, or takes over by itself, or why it does not."""
    offered, known = view["offered"], view.get("return")
    back = known if isinstance(known, dict) else {}
    if offered and back.get("by_itself"):
        what = "can have its own model" if offered == view["agent"] else "is available"
        return f"{offered} {what} again and takes over at the end of this turn"
    if offered and offered == view["agent"]:
        return f"{offered} can have its own model again: press the relay key and type /use {offered}"
    if offered:
        return f"{offered} is available again: {agent_command(str(offered))}"
    is_put_off = back.get("why") and back["agent"] != view["agent"]
    return f"{back['agent']} does not take over again: {back['why']}" if is_put_off else ""


def _render_why(view: dict[str, object]) -> str:
    """Return why nobody works, and how the packet that waits is given to its agent; or what that lacks."""
    why = str(view["why"])
    if view["state"] == "ended" and view["owed"]:
        waits = f"its packet waits: {continue_command(str(view['owed']), str(view['session']))}"
        return f"{why}; {waits}" if why else waits
    return why or (f"its packet is incomplete: {view['lacks']}" if view["lacks"] else "")


def _quote(limit: dict[str, object]) -> str:
    """Return what the agent said about the limit, as people read it."""
    from agent_relay.domain.text.plain import quote_reason

    return quote_reason(str(limit["text"]))


def _render_fill(context: object) -> str:
    """Return how full the context is, from the level the user is advised at; empty for damaged data, too."""
    if not isinstance(context, dict) or context["level"] not in {"advise", "draft", "act"}:
        return ""
    used, room = context["used"], context["room"]
    if not isinstance(used, int) or not isinstance(room, int):
        return ""
    return f"context {100 * used // room} % full" if room > 0 else f"context {used} tokens long"


def _render_budgets(view: dict[str, object]) -> str:
    """Return the budgets that the agent at work uses of and that passed a mark; empty for none."""
    if not view.get("budgets"):
        return ""
    from datetime import UTC, datetime

    found = list_budgets(view, str(view["agent"]), datetime.now(UTC))
    return "; ".join(str(known["text"]) for known in found)


def render_strangers(strangers: list[str], index: str) -> list[str]:
    """Return lines about sessions that came with the folder, those in the user's `index` last.

    The latter are the user's in another place: copies of them cannot be claimed.
    """
    roots = [root for session in strangers if (root := find_root(index, session))]
    others = [session for session in strangers if not find_root(index, session)]
    lines = []
    if others:
        newest = others[-1]
        what = "A session" if len(others) == 1 else f"{len(others)} sessions"
        claim = f"agent-relay sessions --claim {newest}"
        them = "it" if len(others) == 1 else "them"
        lines.append(
            f"{what} came with this folder and relay leaves {them} alone. If {newest} is yours: {claim}"
        )
    if roots:
        what = "1 session here is a copy" if len(roots) == 1 else f"{len(roots)} sessions here are copies"
        lines.append(f"{what} of yours in {roots[-1]} and {'is' if len(roots) == 1 else 'are'} left alone.")
    return lines


def _print(view: dict[str, object]) -> None:
    rows = [list_columns(session) for session in get_rows(view, "sessions")]
    if rows:
        sys.stdout.write(render_table(HEADERS, rows))
    else:
        print_lines("No session is running in this repository. Start one: agent-relay <agent>")
    strangers = [str(session) for session in get_rows(view, "strangers")]
    print_lines(*render_strangers(strangers, get_folders().sessions))
    for rest in get_rows(view, "resting"):
        limit = name_rest(str(rest["scope"]), str(rest["model"]))
        clear = f". It may work again: agent-relay limits clear {rest['agent']}"
        line = f"{rest['agent']} rests until {render_rest_end(rest)} ({limit})"
        print_lines(line if rest["until"] else line + clear)
    _print_windows(view)


def _print_windows(view: dict[str, object]) -> None:
    """Print what agents last said is used; an agent at work that says nothing is named, too."""
    windows = get_rows(view, "windows")
    at_work = [
        str(row["agent"]) for row in get_rows(view, "sessions") if row["state"] in {"ready", "busy", "asking"}
    ]
    names = dict.fromkeys([*(str(row["agent"]) for row in windows), *at_work])
    if not names:
        return
    from datetime import UTC, datetime

    from agent_relay.store.usage_windows import render_known

    now = datetime.now(UTC)
    for name in names:
        known = [row for row in windows if row["agent"] == name]
        print_lines(f"{name}: used of its limits: {render_known(known, now)}")
