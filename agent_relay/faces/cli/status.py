"""`agent-relay status`: what runs here and who rests, from files, at the cost of a bare Python."""

import os
import sys

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.printing import print_json, print_lines, render_moment, render_table
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import (
    check_ledger,
    find_near_root,
    read_all_sessions,
    read_resting,
    read_sessions_at,
)

HELP = """usage: agent-relay status [--all] [--json]

The sessions of this repository that have not ended, and the agents that rest.

  --all    ended sessions too
  --json   the same as JSON: {"root", "sessions": [...], "resting": [...]}
"""


def run(words: list[str]) -> int:
    """Prints the view; 0 also where nothing runs."""
    if "--help" in words or "-h" in words:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    unknown = [word for word in words if word not in {"--all", "--json"}]
    if unknown:
        raise WrongUseError(f"status does not know {unknown[0]!r}", hint="See: agent-relay status --help")
    view = build_view(os.getcwd(), ended="--all" in words)
    if "--json" in words:
        print_json(view)
    else:
        _print(view)
    # What is told above is true; that nobody rests beside those, nobody knows.
    check_ledger(get_folders().ledger)
    return ExitCode.DONE


def build_view(cwd: str, *, ended: bool) -> dict[str, object]:
    """`root`, its `sessions` (as `system.glances` has them), and `resting` agents with scope and until."""
    folders = get_folders()
    root = find_near_root(cwd)
    sessions = read_sessions_at(root)
    if not sessions:
        sessions = [view for view in read_all_sessions(folders.sessions) if view["root"] == root]
    chosen = [view for view in sessions if ended or view["state"] != "ended"]
    return {"root": root, "sessions": chosen, "resting": read_resting(folders.ledger)}


def list_columns(view: dict[str, object]) -> list[str]:
    """One session as the cells of a row: state, agent, since, session, task."""
    return [
        str(view["state"]),
        str(view["agent"] or "-"),
        render_moment(view["since"]),
        str(view["session"]),
        _tell_about(view),
    ]


def _tell_about(view: dict[str, object]) -> str:
    refused, near, offered = view["refused"], view["near"], view["offered"]
    full = "; ".join(told for told in (_tell_fill(view["context"]), _tell_budgets(view)) if told)
    if isinstance(refused, dict):
        return f"signed out, or its key refused: {refused['text']}"
    if view["state"] in {"ready", "busy", "asking"}:
        if isinstance(near, dict):
            return f"near limit: {near['text']}{f'; {full}' if full else ''}"
        if full:
            return full
        if offered and offered == view["agent"]:
            return f"{offered} can have its own model again: /use {offered} behind the relay key"
        if offered:
            return f"{offered} can be had again: agent-relay {offered}"
    return str(view["why"] or view["task"] or "")


def _tell_fill(context: object) -> str:
    """How full the context is, where its user wants to know; empty for a damaged line of the journal, too."""
    if not isinstance(context, dict) or context["level"] not in {"advise", "draft", "act"}:
        return ""
    used, room = context["used"], context["room"]
    if not isinstance(used, int) or not isinstance(room, int):
        return ""
    return f"context {100 * used // room} % full" if room > 0 else f"context {used} tokens long"


def _tell_budgets(view: dict[str, object]) -> str:
    """The budgets the agent at work uses of, as far as they passed a mark; empty for none."""
    from datetime import UTC, datetime

    budgets, told = view.get("budgets"), list[str]()
    for known in budgets.values() if isinstance(budgets, dict) else ():
        try:
            is_over = bool(known["until"]) and datetime.fromisoformat(known["until"]) <= datetime.now(UTC)
        except (ValueError, TypeError):
            continue
        if not is_over and known["mark"] != "open" and known["agent"] in ("", view["agent"]):
            told.append(str(known["text"]))
    return "; ".join(told)


def _print(view: dict[str, object]) -> None:
    sessions, resting = view["sessions"], view["resting"]
    assert isinstance(sessions, list)  # noqa: S101 - built above
    assert isinstance(resting, list)  # noqa: S101 - built above
    if sessions:
        rows = [list_columns(session) for session in sessions]
        sys.stdout.write(render_table(("state", "agent", "since", "session", "about"), rows))
    else:
        print_lines("Nothing runs here. Start: agent-relay <agent>")
    for rest in resting:
        until = render_moment(rest["until"]) or "you say otherwise (agent-relay limits clear)"
        print_lines(f"{rest['agent']} rests ({rest['scope']}) until {until}")
