"""`agent-relay run` and `chat`: run turns without a screen, of one agent or of several in turns."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.turn_follower import TurnFollower, WaitingTurn
from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.options import OptionParser, ParsedOptions, UsageError
from agent_relay.faces.cli.session.agent import check_agent
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.render.output import print_json, warn
from agent_relay.faces.render.turn_printer import choose_chat_printer, choose_turn_printer
from agent_relay.system.disk.folders import get_cwd, get_folders

if TYPE_CHECKING:
    from agent_relay.system.disk.folders import Folders


HELP = """usage: agent-relay run AGENT TASK [--continue ID] [-n TURNS] [--model M] [--wait] [--json]
                              [-- ARGS…]
       agent-relay run --schema

One turn of AGENT without a screen: its words on standard output as they come, everything else on standard
error. A limit hands the turn to the next agent of the order, which goes on without a screen too. What the
agents may do without being asked is up to their own configuration, or to ARGS.

  TASK           what to do; - reads it from standard input
  --continue ID  the next turn of that session, in the agent's own conversation; another AGENT gets a packet
  -n TURNS       at most that many turns in all, every agent's attempt counted; without it, all may try
  --model M      the model to use
  --wait         if every agent rests, wait for the first reset, then try again
  --json         an event a line instead
  --schema       print the JSON Schema of such a line
  -- ARGS…       arguments for AGENT itself

Exit status: 0 done, 1 the agent failed, 3 no agent is available (the earliest reset is printed), 130 after
SIGINT, 143 after SIGTERM: both end the agent politely. A run that is killed leaves its turn to the daemon,
which goes on with it to the end; agent-relay stop ends it.
"""
_TEXTS = {"--continue": "session", "-n": "most", "--model": "model"}
_PARSER = OptionParser(
    # A task may begin with a dash.
    "run",
    flags=("--json", "--wait", "--schema"),
    values=(*_TEXTS,),
    takes_rest=True,
    most=2,
    free=1,
)
_LONGEST_TASK = 500_000
_OUTCOMES = {"done": ExitCode.DONE, "resting": ExitCode.NOBODY_AVAILABLE}


def run_turn(words: list[str]) -> int:
    """Run `agent-relay run`; return its exit status."""
    found = _PARSER.parse(words)
    if found.wants_help or "--schema" in found.flags:
        return _print_help(found, HELP, command="run")
    request = build_request(found)
    folders = get_folders()
    complete_request(request, [str(request["agent"])], folders, command="run")
    form = choose_turn_printer()
    show = print_event if "--json" in found.flags else form.show
    connect = partial(connect_or_start, folders)
    waits = "--wait" in found.flags
    loop = build_waiting(folders, show) if waits else TurnFollower(connect, show, warn=warn)
    try:
        last = loop.run(request)
    finally:
        form.close()
    return 128 + loop.ended_by if loop.ended_by else _OUTCOMES.get(str(last.get("outcome")), ExitCode.FAILED)


def _print_help(found: ParsedOptions, text: str, *, command: str) -> int:
    """Print the help `text`, or the JSON Schema of a line; raise UsageError for words beside `--schema`."""
    if found.wants_help:
        sys.stdout.write(text)
        return ExitCode.DONE
    for word in (*found.arguments, *found.values, *sorted(found.flags - {"--schema", "--json"})):
        raise UsageError(f"{word[:40]!r} and --schema cannot be used together", command=command)
    from agent_relay.domain.protocol.run_output import build_chat_schema, build_run_schema

    print_json(build_run_schema() if command == "run" else build_chat_schema())
    return ExitCode.DONE


def complete_request(
    request: dict[str, object], agents: Sequence[str], folders: "Folders", *, command: str
) -> None:
    """Check the agents and the task, which may be on standard input, and add where the command runs.

    Raises RelayError for an unknown agent or session, and for a task that cannot be sent.
    """
    cwd = get_cwd()
    for name in agents:
        check_agent(name, folders, cwd)
    if request["task"] == "-":
        request["task"] = read_task()
    if request["task"] or command == "run" or "session" not in request:
        check_task(str(request["task"]), command)
    if "session" in request:
        request["session"] = find_session(folders, str(request["session"]))["session"]
    request |= {"cwd": cwd, "env": dict(os.environ)}


def build_waiting(folders: "Folders", show: Callable[[Mapping[str, object]], None]) -> WaitingTurn:
    """Return a turn that goes on at the reset; raise WrongUseError if quiet hours never let it go on."""
    # Who does not wait is not to pay for what reads a configuration.
    from agent_relay.system.clock import LocalZone, SystemClock
    from agent_relay.system.config_file import read_user_config

    quiet = read_user_config(folders.config).build_quiet_hours()
    if quiet.always:
        raise WrongUseError(
            'quiet_hours = "always" allows no automatic work, so --wait would never end',
            hint='Drop --wait, or set quiet_hours to a range such as "22:00-07:00" in config.toml',
        )
    zone = LocalZone()
    return WaitingTurn(
        partial(connect_or_start, folders),
        show,
        clock=SystemClock(),
        zone=zone,
        find_open=partial(quiet.find_next_allowed, zone=zone),
        warn=warn,
    )


def build_request(found: ParsedOptions) -> dict[str, object]:
    """Return the fields of the daemon's request; raise UsageError for missing or impossible words."""
    if len(found.arguments) < 2:  # noqa: PLR2004 - AGENT and TASK
        raise UsageError("an agent and a task are required", command="run")
    agent, task = found.arguments
    request: dict[str, object] = {"args": found.rest or [], "agent": agent, "task": task}
    request |= {_TEXTS[name]: value for name, value in found.values.items()}
    if "most" in request:
        request["most"] = parse_turns(str(request["most"]), "run")
    return request


def read_task() -> str:
    """Return what standard input holds, which need not be text: a diff quotes files as they are."""
    return sys.stdin.buffer.read(_LONGEST_TASK + 1).decode("utf-8", "surrogateescape")


def check_task(task: str, command: str) -> None:
    """Raise UsageError if the task is empty, WrongUseError if it is longer than a message may be."""
    if not task.strip():
        raise UsageError("the task is empty", command=command)
    if len(json.dumps(task)) > _LONGEST_TASK + 2:
        raise WrongUseError(
            f"the task is longer than {_LONGEST_TASK:,} characters of JSON",
            hint="Put it into a file of the project and name that",
        )


def parse_turns(text: str, command: str) -> int:
    """Return the number given to `-n` of `command`; raise UsageError unless it is 1 to 1000."""
    if not text.isdecimal() or len(text) > 4 or not 0 < int(text) <= 1000:  # noqa: PLR2004 - more agents than anybody has
        raise UsageError(f"-n needs a number from 1 to 1000, not {text[:20]!r}", command=command)
    return int(text)


def print_event(event: Mapping[str, object]) -> None:
    """Print the event as one line of `--json`."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


CHAT_HELP = """usage: agent-relay chat AGENT AGENT… TASK [-n TURNS] [--json]
       agent-relay chat --continue ID [[AGENT AGENT…] TASK] [-n TURNS] [--json]
       agent-relay chat --schema

The agents work on TASK in turns, in one session and in this folder, without a screen. Each goes on in its own
conversation and gets what the others wrote since its last turn. The chat is over when every agent in a row
has ended with a line that says only AGREED, or after TURNS. Their words are the output, as Markdown, laid out
on a terminal; everything of relay's is on standard error. The next agent of the order takes the place of one
at its limit; where there is none, the chat goes on without it.

  TASK           what to do; - reads it from standard input
  -n TURNS       at most that many turns in all (default 12)
  --continue ID  go on with that chat, with more to say to its agents, or other agents
  --json         an event a line instead
  --schema       print the JSON Schema of such a line

Exit status: 0 all agreed, or the turns are used up; 1 an agent failed; 3 fewer than two agents are
left (the earliest reset is printed); 130 after SIGINT, 143 after SIGTERM: both end the agent politely.
A chat that is killed leaves its turn to the daemon; --continue goes on with the next one.
"""
_MOST = 12
_CHAT_OUTCOMES = {"agreed": ExitCode.DONE, "turns": ExitCode.DONE, "resting": ExitCode.NOBODY_AVAILABLE}
_FEWEST = 2
_CHAT_PARSER = OptionParser("chat", flags=("--json", "--schema"), values=("--continue", "-n"))


def run_chat(words: list[str]) -> int:
    """Run `agent-relay chat`; return its exit status."""
    found = _CHAT_PARSER.parse(words)
    if found.wants_help or "--schema" in found.flags:
        return _print_help(found, CHAT_HELP, command="chat")
    request = build_chat_request(found)
    folders = get_folders()
    complete_request(request, found.arguments[:-1], folders, command="chat")
    show = print_event if "--json" in found.flags else choose_chat_printer().show
    loop = TurnFollower(partial(connect_or_start, folders), show, warn=warn)
    last = loop.run_chat(request)
    if loop.ended_by:
        return 128 + loop.ended_by
    return _CHAT_OUTCOMES.get(str(last.get("outcome")), ExitCode.FAILED)


def build_chat_request(found: ParsedOptions) -> dict[str, object]:
    """Return the fields of the daemon's request; raise UsageError for missing or impossible words."""
    request: dict[str, object] = {"most": parse_turns(found.values.get("-n", f"{_MOST}"), "chat")}
    if "--continue" in found.values:
        request["session"] = found.values["--continue"]
    agents, task = found.arguments[:-1], found.arguments[-1] if found.arguments else ""
    is_again = "session" in request and not agents
    if not is_again and len(agents) < _FEWEST:
        raise UsageError("two agents or more and a task are required", command="chat")
    if len(set(agents)) < len(agents):
        raise UsageError("an agent is named twice", hint="Name each agent once", command="chat")
    return {**request, "agents": agents, "task": task}
