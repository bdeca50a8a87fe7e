"""`agent-relay chat`: several agents in turns about one task, without a screen, until all agree."""

import json
import os
import sys
from functools import partial

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.turn_follower import TurnFollower
from agent_relay.domain.errors import ExitCode
from agent_relay.faces.cli.options import OptionParser, ParsedOptions, UsageError
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.cli.start.agent import check_agent
from agent_relay.faces.cli.start.run import check_task, parse_turns, print_event, read_task
from agent_relay.faces.render.turn_printer import choose_chat_printer
from agent_relay.system.disk.folders import get_cwd, get_folders

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
_CHAT_OUTCOMES = {
    "agreed": ExitCode.DONE,
    "turns": ExitCode.DONE,
    "resting": ExitCode.NOBODY_AVAILABLE,
}
_FEWEST = 2
_CHAT_PARSER = OptionParser("chat", flags=("--json", "--schema"), values=("--continue", "-n"))


def run_chat(words: list[str]) -> int:
    """Run `agent-relay chat`; return its exit status."""
    found = _CHAT_PARSER.parse(words)
    if found.wants_help:
        sys.stdout.write(CHAT_HELP)
        return ExitCode.DONE
    if "--schema" in found.flags:
        from agent_relay.domain.protocol.run_output import build_chat_schema

        sys.stdout.write(json.dumps(build_chat_schema(), indent=2) + "\n")
        return ExitCode.DONE
    request = build_chat_request(found)
    folders = get_folders()
    cwd = get_cwd()
    for name in found.arguments[:-1]:
        check_agent(name, folders, cwd)
    if request["task"] == "-":
        request["task"] = read_task()
    if request["task"] or "session" not in request:
        check_task(str(request["task"]), "chat")
    if "session" in request:
        request["session"] = find_session(folders, str(request["session"]))["session"]
    show = print_event if "--json" in found.flags else choose_chat_printer().show
    loop = TurnFollower(partial(connect_or_start, folders), show)
    last = loop.run_chat({**request, "cwd": cwd, "env": dict(os.environ)})
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
