"""Write the pages made from code: `states.md` from the table of states, two from the tables of commands.

    python docs/generate.py

A test compares what stands there with what this would write.
"""

import inspect
import os
import re
import typing

from typer.models import OptionInfo

from agent_relay.domain.state import State
from agent_relay.faces.cli import metrics
from agent_relay.faces.cli.commands import AGENT_USAGE, COMMANDS, SHELL_COMMANDS
from agent_relay.faces.cli.session import agent, attach, run, status
from agent_relay.faces.cli.session.handoff import HANDOFF
from agent_relay.faces.cli.typer_runner import load_functions
from agent_relay.faces.shell import entry
from agent_relay.faces.shell._commands import KEYS, render_usage
from agent_relay.session.transitions import TRANSITIONS

HERE = os.path.dirname(os.path.abspath(__file__))
NOTE = "<!-- Written by docs/generate.py; change the code instead, then run: make docs -->\n"
LIVE = (State.STARTING, State.READY, State.BUSY, State.ASKING)
STATES = """\
# The states of a session

{note}
A session is in one state; a line of its journal leads from one to the next. What is not in the table
cannot happen: an event in a state it does not know is a bug, and loud. Of an agent that is ready and still
waits for its packet, `status` and all else that shows the state say `starting`.

```mermaid
stateDiagram-v2
    [*] --> starting: session.created
{diagram}
    ended --> [*]
```

| event | leads | stays in |
|---|---|---|
{rows}

Events that may come in any state and change none are left out. `signal.seen` with a deciding limit
leads from `starting`, `ready`, `busy` and `asking` to `limited`.
"""
CLI = """\
# Commands

{note}
Every command takes `--json` and prints the same contents as JSON. The relay shell has
none, as it is a screen, nor has `mcp`, as it speaks a protocol.
Colour only on a terminal, never with `NO_COLOR`.

| exit status | means |
|---|---|
| 0 | done |
| 1 | the command, an agent's turn or a check failed; an agent's own exit status is not passed on |
| 2 | wrong use |
| 3 | no agent is available; the earliest reset is printed |
| 65 | a packet or journal cannot be trusted |
| 69 | the daemon cannot be reached |
| 70 | our bug; a report without contents was written |
| 78 | the configuration is invalid |
| 129 | ended by SIGHUP: its terminal is gone |
| 130 | interrupted: Ctrl-C, or SIGINT from elsewhere |
| 141 | the reader of its output has gone |
| 143 | ended by SIGTERM |

If a signal ended the attached agent, the status is 128 + the signal's number, as in a shell.

## `agent-relay {usage}`

```
{help}
```

An agent that is called like a command is started by `agent-relay agent NAME …`.
"""
SHELL = """\
# The relay shell

{note}
`agent-relay` alone, on a terminal, opens the relay shell. What you type is the next message to the
agent at work; its turn is one of `agent-relay run`, so everything in [run.md](run.md) holds: it has no
screen, it fails over at a limit, and it goes on without the shell. All turns belong to one session, and
an agent goes on in its own conversation.

* What you type while an agent works waits for its turn, in order, and is kept on disk until the journal
  has it. A limit, a failed turn, a daemon that dies or a shell that is killed loses none of it: after a
  turn that did not end well it stays above the prompt until you send it on, and the next shell in this
  folder finds what a killed one left.
* If the last session here is not at work, Enter on the empty first line goes on with it,
  as `/resume` does; a line says which one that is. Anything else you type begins another.
* A line that begins with `/` is a command, one with `!` is run by your own shell, and `@` completes a
  path.
* What you typed before is kept for later shells, readable only by you and without secrets.
* The line above the prompt says which agent gets your next message, on which model, how full its context is,
  how much of its usage windows is used and when they reset, what the session has cost as far as is known,
  and who rests until when. It is drawn again only when it changes; in a narrow terminal what happens now
  is the last thing that is left out.
* Without a terminal nothing is waited for: the short help is printed, and the exit status is 2.

| keys | do |
|---|---|
{keys}

{commands}
"""


def main() -> None:
    """Write each page as the code has it."""
    for name, build in PAGES.items():
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as stream:
            stream.write(build())


def build_states() -> str:
    """Return the page of session states: a diagram of every arrow that leads elsewhere, and the table."""
    arrows: dict[tuple[str, str], set[str]] = {}
    rows = []
    for kind, moves in TRANSITIONS.items():
        stays = {source.value for source, target in moves.items() if source is target}
        if len(stays) == len(State):
            continue
        leads = {(source.value, target.value) for source, target in moves.items() if source is not target}
        for arrow in leads:
            arrows.setdefault(arrow, set()).add(kind.name)
        shown = ", ".join(f"{source} → {target}" for source, target in sorted(leads))
        rows.append(f"| `{kind.name}` | {shown} | {', '.join(sorted(stays))} |")
    for state in LIVE:
        arrows.setdefault((state.value, State.LIMITED.value), set()).add("signal.seen (a deciding limit)")
    diagram = [
        f"    {_id(source)} --> {_id(target)}: {', '.join(sorted(names))}"
        for (source, target), names in sorted(arrows.items())
    ]
    return STATES.format(note=NOTE, diagram="\n".join(diagram), rows="\n".join(rows))


def build_cli() -> str:
    """Return the page of commands, in the order of the help."""
    parts = [CLI.format(note=NOTE, usage=AGENT_USAGE, help=agent.HELP.rstrip())]
    for name, command in COMMANDS.items():
        parts += [f"## `{f'agent-relay {name} {command.usage}'.strip()}`", ""]
        if name in HOT:
            parts += ["```", HOT[name].rstrip(), "```", ""]
            continue
        for word, function in FUNCTIONS.get(name, load_functions(command)).items():
            parts += _describe(f"{name} {word}".strip(), function)
    return "\n".join(parts)


def build_shell() -> str:
    """Return the page of the shell: its keys, and its commands in the order of its help."""
    keys = "\n".join(f"| {name} | {about} |" for name, about in KEYS)
    parts = []
    for command in SHELL_COMMANDS.values():
        form = command.shell_form
        about = " ".join((f"{form.about[0].upper()}{form.about[1:]}.", *form.more))
        parts += [
            f"## `{render_usage(command)}`",
            "",
            about,
            "",
            f"On the command line: `{form.outside}`.",
            "",
        ]
    return SHELL.format(note=NOTE, keys=keys, commands="\n".join(parts).rstrip())


def _describe(words: str, function: typing.Callable[..., None]) -> list[str]:
    hints = typing.get_type_hints(function, include_extras=True)
    lines, usage = [], [f"agent-relay {words}"]
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = typing.get_args(hints[name])[:2]
        needed = parameter.default is inspect.Parameter.empty
        if isinstance(info, OptionInfo):
            # In Annotated, typer takes the first spelling as the default's place.
            spellings = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
            shown = ", ".join(spellings) + ("" if kind is bool else f" {name.upper()}")
            usage += [f"{spellings[0]} {name.upper()}"] if needed else []
        else:
            shown = name.upper()
            usage.append(shown if needed else f"[{shown}]")
        lines.append(f"* `{shown}`: {info.help}")
    about = re.sub(r"\s+", " ", inspect.getdoc(function) or "")
    return [f"`{' '.join(usage)}`", "", about, "", *lines, *([""] if lines else [])]


def _id(state: str) -> str:
    return state.replace("-", "_")


HOT = {
    "attach": attach.HELP,
    "chat": run.CHAT_HELP,
    "metrics": metrics.HELP,
    "resume": entry.HELP,
    "run": run.HELP,
    "status": status.HELP,
}
FUNCTIONS = {"handoff": HANDOFF}
"""Of the command that rewrites its words before typer has them."""
PAGES = {"states.md": build_states, "cli.md": build_cli, "shell.md": build_shell}

if __name__ == "__main__":
    main()
