"""`agent-relay chat`: several agents in turns about one task, without a screen, until all agree."""

import json
import os
import sys
from functools import partial

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.turn_follower import TurnFollower
from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.cli.start.agent import check_agent
from agent_relay.faces.cli.start.run import check_task, parse_turns, print_event, read_task
from agent_relay.faces.render.turn_printer import choose_chat_printer
from agent_relay.system.disk.folders import get_cwd, get_folders

HELP = """usage: agent-relay chat AGENT AGENT… TASK [-n TURNS] [--json]
       agent-relay chat --continue ID [[AGENT AGENT…] TASK] [-n TURNS] [--json]
       agent-relay chat --schema

The agents work on TASK in turns, in one session and in this folder, without a screen. Each goes on in its own
conversation and is told what the others said since its last turn. The chat is over when every agent in a row
has ended with a line that says only AGREED, or after TURNS. Their words are the output, as Markdown, laid out
on a terminal; everything of relay's is on standard error. The next agent of the order takes the place of one
at its limit; where there is none, the chat goes on without it.

  TASK           what to do; - reads it from standard input
  -n TURNS       at most that many turns in all (default 12)
  --continue ID  go on with that chat, with more to say to its agents, or other agents
  --json         an event a line instead
  --schema       print the JSON Schema of such a line

Exit status: 0 everybody agreed, or the turns are used up; 1 an agent failed; 3 fewer than two agents are
left (the earliest reset is printed); 130 after SIGINT, 143 after SIGTERM: both end the agent politely.
A chat that is killed leaves its turn to the daemon; --continue goes on with the next one.
"""
_MOST = 12
_OUTCOMES = {
    "agreed": ExitCode.DONE,
    "turns": ExitCode.DONE,
    "resting": ExitCode.NOBODY_AVAILABLE,
}
_SEE = "See: agent-relay chat --help"
_FEWEST = 2


def run(words: list[str]) -> int:
    """Run `agent-relay chat`; return its exit status."""
    if {"--help", "-h"} & set(words):
        sys.stdout.write(HELP)
        return ExitCode.DONE
    if words == ["--schema"]:
        from agent_relay.domain.protocol.run_output import build_chat_schema

        sys.stdout.write(json.dumps(build_chat_schema(), indent=2) + "\n")
        return ExitCode.DONE
    agents, wish, is_json = parse_words(words)
    folders = get_folders()
    cwd = get_cwd()
    for name in agents:
        check_agent(name, folders, cwd)
    if wish["task"] == "-":
        wish["task"] = read_task()
    if wish["task"] or "session" not in wish:
        check_task(str(wish["task"]), "chat")
    if "session" in wish:
        wish["session"] = find_session(folders, str(wish["session"]))["session"]
    loop = TurnFollower(
        partial(connect_or_start, folders), print_event if is_json else choose_chat_printer().show
    )
    last = loop.run_chat({**wish, "agents": agents, "cwd": cwd, "env": dict(os.environ)})
    return 128 + loop.ended_by if loop.ended_by else _OUTCOMES.get(str(last.get("outcome")), ExitCode.FAILED)


def parse_words(words: list[str]) -> tuple[list[str], dict[str, object], bool]:
    """Return the agents, the fields of the daemon's request, and whether events are printed.

    Raises WrongUseError.
    """
    wish: dict[str, object] = {"most": _MOST}
    named: list[str] = []
    is_json = False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--json":
            is_json = True
        elif name in {"--continue", "-n"}:
            if not equals and not rest:
                raise WrongUseError(f"{name} needs a value", hint=_SEE)
            given = value if equals else rest.pop(0)
            wish |= {"most": parse_turns(given)} if name == "-n" else {"session": given}
        elif word.startswith("-") and word != "-":
            # A task that begins so comes by standard input.
            raise WrongUseError(f"chat: unknown option {word[:40]!r}", hint=_SEE)
        else:
            named.append(word)
    agents, task = named[:-1], named[-1] if named else ""
    is_again = "session" in wish and not agents
    if not is_again and len(agents) < _FEWEST:
        raise WrongUseError("chat needs two agents or more, and a task", hint=_SEE)
    if len(set(agents)) < len(agents):
        raise WrongUseError("chat needs each agent once", hint=_SEE)
    return agents, {**wish, "task": task}, is_json
