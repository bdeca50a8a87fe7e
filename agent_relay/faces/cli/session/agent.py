"""`agent-relay <agent>`: a session here under that agent, on this terminal, until it is over or detached."""

import os
import sys

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.commands import AGENT_USAGE, COMMANDS
from agent_relay.faces.cli.options import OPEN_LIMIT_S, parse_open_words, suggest
from agent_relay.system.disk.folders import get_cwd, get_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.client.connection import Connection
    from agent_relay.system.disk.folders import Folders


HELP = f"""usage: agent-relay {AGENT_USAGE}

A session in this repository under AGENT: attach to it, hand it over from another agent, or start it.

  TASK            what to do, in quotes: the first prompt, or what a successor should look at first
  --task TEXT     the same as TASK
  --session ID    that session instead of the newest one here
  --new           a new session, whatever runs here
  --from AGENT    continue that agent's newest native session here that relay did not start
                  (see: agent-relay sessions --native); AGENT:ID: any session of that agent
  --focus TEXT    what the successor should look at first
  --model M       the model to use
  --expect TEXT   a deliverable; repeatable, as are --accept, --check, --constraint and --needs
  --accept TEXT   a condition for the handoff to count as done
  --check CMD     a command that must succeed; relay runs it before completing the handoff
  --constraint T  a constraint on the work
  --needs WORD    something the next agent must support: edit, shell, document …
  --priority P    low, normal, high or urgent
  --rollback A    the agent that takes over if the handoff fails
  --question T    a question the rollback agent answers first; repeatable
  --digest        a successor sums up the record first, without tools (see handoff.digest)
  --no-launch     build the packet, start no agent
  --yes           do not ask; also use a resting agent, and end the --from agent's program if it
                  is still running
  --json          print where the session is instead of attaching
  -- ARGS…        arguments for the agent itself

It needs a terminal, except with --json or --no-launch; in a script or a pipe, use: agent-relay run AGENT TASK
"""

RECENT_S = 12 * 3600
"""Age, in seconds, up to which agents' own sessions are offered: people come back to the same day's work.

Older ones need --from.
"""
_PLACEHOLDER = "AGENT"
"""Word for any agent's name in hints and the help."""


def run_agent(name: str, words: list[str]) -> int:
    """Run `agent-relay <agent>`; return 0 after a detach, 1 if it failed, 3 if no agent can go on."""
    try:
        request = parse_open_words(words, command=name if name not in COMMANDS else f"agent {name}")
    except WrongUseError:
        # Of two mistakes the name is the first one: no words are an unknown agent's.
        check_agent(name, get_folders(), get_cwd())
        raise
    if request.pop("help", False):
        if name != _PLACEHOLDER:
            check_agent(name, get_folders(), get_cwd())
        sys.stdout.write(HELP)
        return ExitCode.DONE
    folders = get_folders()
    check_agent(name, folders, get_cwd())
    from agent_relay.client.autostart import connect_or_start
    from agent_relay.faces.cli.session.attach import follow, load_screen, measure, require_terminal

    as_json = bool(request.pop("json", False))
    is_shown = not (as_json or request.get("no_launch"))
    if is_shown:
        require_terminal(f"show {name}", name)
    may_ask = not as_json and _may_ask(request, folders)
    # The daemon works on another core.
    meanwhile = load_screen if is_shown else _load_nothing
    connection = connect_or_start(folders, meanwhile=meanwhile)
    if may_ask:
        chosen = _offer_native_session(connection, name, request)
        if chosen is not None:
            # The user may take an hour to answer.
            connection.close()
            connection = connect_or_start(folders)
            request["from"] = chosen
    rows, cols = measure()
    fields = {"agent": name, "cwd": get_cwd(), "env": dict(os.environ), "rows": rows, "cols": cols, **request}
    answer = connection.request_while(meanwhile, "open", limit_s=OPEN_LIMIT_S, **fields)
    if is_shown:
        return follow(folders, connection, answer)
    from agent_relay.faces.render.output import get_contents, print_either

    print_either(
        get_contents(answer), str(answer.get("message") or answer.get("folder") or ""), as_json=as_json
    )
    return ExitCode.DONE


def _offer_native_session(connection: "Connection", name: str, request: dict[str, object]) -> str | None:
    """Offer the sessions agents keep themselves here; return the value of `--from` that was chosen.

    It is empty if the user wants none of them, `None` if there are none and nothing was asked.
    """
    answer = connection.request(
        "session.natives",
        limit_s=OPEN_LIMIT_S,
        agent=name,
        cwd=get_cwd(),
        env=dict(os.environ),
        args=request.get("args", []),
        within_s=RECENT_S,
    )
    found, unread = answer.get("sessions"), answer.get("unread")
    if not found or not isinstance(found, list) or not isinstance(unread, list):
        return None
    from agent_relay.faces.cli.session.native_sessions import offer_native_session

    return offer_native_session(found, unread)


def run_named(words: list[str]) -> int:
    """Run `agent-relay agent NAME …`; return the exit status. Raise WrongUseError if it names no agent."""
    if words and words[0] in {"-h", "--help"}:
        return run_agent(_PLACEHOLDER, ["--help"])
    if not words or words[0].startswith("-"):
        raise WrongUseError("`agent` needs the name of an agent", hint="See: agent-relay agents")
    return run_agent(words[0], words[1:])


def _load_nothing() -> None:
    """Load nothing, as no screen is shown."""


def _may_ask(request: dict[str, object], folders: "Folders") -> bool:
    """Check that no option chooses a session, none runs here, and there is a person to ask."""
    if request.keys() & {"new", "from", "session", "yes", "no_launch", "task", "expect", "check", "rollback"}:
        return False
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    from agent_relay.faces.cli.session.lookup import UNREADABLE, list_live_here

    return all(view["state"] == UNREADABLE for view in list_live_here(folders))


def check_agent(name: str, folders: "Folders", cwd: str) -> None:
    """Raise WrongUseError, with the name that may be meant, unless some adapter folder has this name.

    Looks at names only; the daemon reads and checks the adapter.
    """
    if not is_agent(name, folders, cwd):
        meant = suggest(name, [*list_names(folders, cwd), *COMMANDS])
        raise WrongUseError(
            f"there is no agent and no command {name[:40]!r}", hint=f"{meant}See: agent-relay --help"
        )


def is_agent(name: str, folders: "Folders", cwd: str) -> bool:
    """Check whether some adapter folder has this name."""
    is_name = name.isprintable() and "/" not in name and not name.startswith((".", "-"))
    return is_name and any(
        os.path.isfile(os.path.join(place, name, "adapter.toml")) for place in _list_places(folders, cwd)
    )


def list_names(folders: "Folders", cwd: str) -> list[str]:
    """Return the names in the adapter folders that look like agents'."""
    places = [place for place in _list_places(folders, cwd) if os.path.isdir(place)]
    return sorted({entry for place in places for entry in os.listdir(place) if "." not in entry})


def _list_places(folders: "Folders", cwd: str) -> list[str]:
    from agent_relay.agents.adapter_folders import find_builtin_folder, project_adapters
    from agent_relay.store.session_index import find_near_root

    project = project_adapters(find_near_root(cwd))
    return [find_builtin_folder(), os.path.join(folders.config, "adapters"), project]
