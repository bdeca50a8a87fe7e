"""`agent-relay sessions`: every session of this user, in every repository."""

from typing import Annotated

import typer

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.printing import print_json, print_table
from agent_relay.faces.cli.status import list_columns
from agent_relay.faces.cli.typed import Function, run_one
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import read_all_sessions


def run(words: list[str]) -> int:
    """The exit status of `agent-relay sessions`."""
    return run_one(sessions, words, name="sessions")


def sessions(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {sessions: [...]}.")] = False,
) -> None:
    """Every session, in every repository, newest change first."""
    found = read_all_sessions(get_folders().sessions)
    if as_json:
        print_json({"sessions": found})
        return
    rows = [[*list_columns(view), str(view["root"])] for view in found]
    print_table(
        ("state", "agent", "since", "session", "about", "where"), rows, empty="There are no sessions."
    )


def find_session(text: str, views: list[dict[str, object]]) -> dict[str, object]:
    """The one session whose id begins or ends with `text`. Raises WrongUseError for none or several."""
    wanted = text.upper()
    found = [view for view in views if wanted and _matches(str(view["session"]), wanted)]
    if len(found) == 1:
        return found[0]
    what = "no session is" if not found else f"{len(found)} sessions are"
    raise WrongUseError(f"{what} named {text[:40]!r}", hint="See: agent-relay sessions")


def _matches(session: str, wanted: str) -> bool:
    return session.startswith(wanted) or session.endswith(wanted)


FUNCTIONS: dict[str, Function] = {"": sessions}
"""For the generated page of commands."""
