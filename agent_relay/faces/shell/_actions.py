"""Arguments of the shell's commands: the conversation, its turns, and the terminal."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.text.names import name_rest
from agent_relay.faces.cli.agents import build_view
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.options import OPEN_LIMIT_S, suggest
from agent_relay.faces.cli.session.agent import is_agent, list_names
from agent_relay.faces.cli.session.attach import follow, measure
from agent_relay.faces.cli.session.handoff import find_predecessor
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.cli.session.relay_prompt import describe
from agent_relay.faces.cli.session.slash_commands import add_session, check_words, split_words, take_text
from agent_relay.faces.render.output import render_moment
from agent_relay.faces.shell._agent_switch import Ask, DocumentJob, find_next
from agent_relay.faces.shell._conversation import Conversation, find_place, find_resting, is_shared
from agent_relay.faces.shell._terminal import call_in_loop
from agent_relay.faces.shell._turns import Turns
from agent_relay.session.views.messages import render_sign_in
from agent_relay.store.session_index import find_last_rest, read_resting, read_sessions_at
from agent_relay.system.disk.folders import get_cwd, get_folders


class ShellFace(Protocol):
    """The shell as its commands see it."""

    @property
    def conversation(self) -> Conversation:
        """The session and its agent."""
        ...

    @property
    def turns(self) -> Turns:
        """The turns: what is being sent, and what waits."""
        ...

    def say(self, *lines: str) -> None:
        """Print the lines on the terminal, control characters visible and commands as they are typed here."""
        ...

    def show(self, *lines: str) -> None:
        """Print the lines on the terminal, the commands in them unchanged."""
        ...

    def run_plain(self, words: Sequence[str]) -> int:
        """Run `agent-relay` with `words` on this terminal; return the exit status."""
        ...

    def lend_terminal(self) -> AbstractContextManager[None]:
        """Give the terminal to another program within the returned context."""
        ...

    def do_soon(self, act: "Act") -> None:
        """Run `act` in place of the prompt, which comes back with what is half typed."""
        ...

    def leave(self) -> None:
        """End the shell after this command."""
        ...


_NOTHING = "there is nothing to hand over yet"

Act = Callable[[ShellFace, str], Awaitable[None]]


async def use(shell: ShellFace, rest: str) -> None:
    """Give the running turn, or else the next one, to AGENT (`AGENT [MESSAGE]`)."""
    agent, _, message = rest.partition(" ")
    if not agent or agent.startswith("-"):
        raise WrongUseError("/use needs an agent", hint="/use AGENT [MESSAGE]")
    folders, cwd = get_folders(), get_cwd()
    message = take_text("use", message.strip())
    if not is_agent(agent, folders, cwd):
        meant = suggest(agent, list_names(folders, cwd))
        raise WrongUseError(f"there is no agent {agent[:40]!r}", hint=f"{meant}See: /agents")
    _check_installed(shell, agent)
    await _switch(shell, agent, message)


def _check_installed(shell: ShellFace, agent: str) -> None:
    """Raise WrongUseError if `agent` is not installed; tell the person if it looks signed out."""
    (row,) = [row for row in build_view(get_cwd(), os.environ) if row["name"] == agent] or ({},)
    if row and not row["program"]:
        raise WrongUseError(
            f"{row['title']} is not installed", hint="See what is missing: agent-relay doctor"
        )
    if row and not row["signed_in"]:
        shell.say(f"→ {row['title']} does not look signed in. {render_sign_in(agent, str(row['sign_in']))}")


async def relay(shell: ShellFace, rest: str) -> None:
    """Give the running turn, or else the next one, to the next agent of the order (`[MESSAGE]`)."""
    message = take_text("relay", rest)
    session = _need_session(shell, _NOTHING)
    if shell.turns.is_working and await _pass_on(shell, "", message):
        return
    await _switch(shell, await asyncio.to_thread(find_next, shell.turns.ask, session), message)


async def undo(shell: ShellFace, rest: str) -> None:
    """Give the session back to the agent that had it before the last handoff."""
    check_words("undo-handoff", rest)
    conversation = shell.conversation
    view = conversation.refresh()
    if view and view["agent"] and view["agent"] != conversation.agent and not shell.turns.is_working:
        # The switch has led to no handoff yet.
        await _switch(shell, str(view["agent"]), "")
        return
    await _switch(
        shell,
        find_predecessor(conversation.root, _need_session(shell, "there is no handoff to undo yet")),
        "",
    )


async def hand_off(shell: ShellFace, rest: str) -> None:
    """Have the agent write a document and hand over (`[FOCUS]`), or run a command on handoff records."""
    known = COMMANDS["handoff"].words
    words = split_words(rest) if rest.partition(" ")[0] in known else []
    if words:
        session = shell.conversation.session
        shell.run_plain(["handoff", *(add_session("handoff", words, session) if session else words)])
        shell.conversation.refresh()
        return
    focus = take_text("handoff", rest, words=known)
    _need_session(shell, _NOTHING)
    shell.turns.do(DocumentJob(shell.conversation, focus, shell.turns.send_first))


async def choose_model(shell: ShellFace, rest: str) -> None:
    """Set the model of the agent's next turns here (`[MODEL]`); `-` is its own again."""
    check_words("model", rest, most=1)
    conversation = shell.conversation
    if not conversation.agent:
        raise WrongUseError("there is no agent to choose a model for", hint="/use AGENT")
    if rest == "-":
        conversation.models.pop(conversation.agent, None)
    elif rest:
        conversation.models[conversation.agent] = rest
    chosen = conversation.models.get(conversation.agent)
    shell.say(f"{conversation.agent}: {chosen or 'its own model, or the one of your config.toml'}")


async def _switch(shell: ShellFace, agent: str, message: str) -> None:
    """Give `agent` the running turn, or the next one, with `message` if there is one."""
    if shell.turns.is_working and await _pass_on(shell, agent, message):
        return
    shell.turns.pending_switch.forget()
    shell.turns.preferred.forget()
    is_same = agent == shell.conversation.agent
    shell.conversation.agent = agent
    if message:
        shell.turns.send_first(message)
    else:
        shell.say(
            f"Your next message goes to {agent} already."
            if is_same
            else f"→ Your next message goes to {agent}."
        )
    _tell_rest(shell, agent)


def _tell_rest(shell: ShellFace, agent: str) -> None:
    """Tell the user if `agent` rests, as another agent then takes its turns."""
    rest = find_last_rest(read_resting(get_folders().ledger), agent)
    if rest is not None:
        until = render_moment(rest["until"]) or "you clear its limit"
        limit = name_rest(str(rest["scope"]), str(rest["model"]))
        shell.say(
            f"  {agent} rests until {until} ({limit}); until then your messages go to another agent. "
            f"To use {agent} anyway: agent-relay limits clear {agent}"
        )


async def _pass_on(shell: ShellFace, agent: str, focus: str) -> bool:
    """Pass the running turn on; return false if it has just ended."""
    session = shell.conversation.session
    if not session:
        return False
    ask = partial(shell.turns.ask, "use", session=session, agent=agent, focus=focus, turn=True)
    try:
        return (await asyncio.to_thread(ask)).get("passed") is True
    except WrongUseError:
        place = await asyncio.to_thread(partial(shell.turns.ask, "where", session=session))
        if not place.get("handoff") or not agent:
            raise
        if place.get("successor") == agent:
            shell.say(f"→ {agent} is already taking over.")
            return True
        shell.turns.pending_switch.keep(agent, focus)
        shell.say(
            f"→ {place.get('successor')} is taking over; {agent} takes over after that. Ctrl-C stops both."
        )
        return True


def _need_session(shell: ShellFace, sentence: str) -> str:
    """Return the session's id; raise WrongUseError with `sentence` before the first message."""
    if not shell.conversation.session:
        raise WrongUseError(sentence, hint="Type a message, or /resume a session")
    return shell.conversation.session


LABEL = "its own screen opens"


class ScreenJob:
    """Gives the terminal to `act` between two turns; what waits is not sent before it is over."""

    label = LABEL

    def __init__(self, shell: ShellFace, act: Act) -> None:
        self._shell = shell
        self._act = act
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()

    def run(self, ask: Ask) -> str:
        """Wait until the screen was opened and left; return an empty line."""
        del ask
        call_in_loop(self._loop, partial(self._shell.do_soon, self._open))
        self._over.wait()
        return ""

    async def _open(self, shell: ShellFace, rest: str) -> None:
        try:
            if not self._over.is_set():
                await self._act(shell, rest)
        finally:
            self._over.set()

    def cancel(self, ask: Ask) -> None:
        """Keep the screen from opening."""
        del ask
        self._over.set()


async def attach(shell: ShellFace, rest: str) -> None:
    """Open this conversation, or `[SESSION]`, in the agent's own screen; /detach comes back here."""
    if rest:
        shell.run_plain(["attach", *split_words(rest)])
        return
    conversation = shell.conversation
    was_waiting = shell.turns.is_waiting
    await shell.turns.give_up_waiting()
    if not shell.turns.is_working:
        await _open_screen(shell, "")
        if was_waiting:
            shell.turns.go_on()
        return
    agent = conversation.at_work or conversation.agent
    if not shell.turns.awaits(LABEL):
        shell.turns.do(ScreenJob(shell, _open_screen))
    shell.say(
        f"→ {agent} is in the middle of a turn without a screen; its screen opens when the turn ends. "
        "Ctrl-C ends the turn."
    )


async def _open_screen(shell: ShellFace, _rest: str) -> None:
    """Show the conversation in the agent's own screen until the person leaves it."""
    conversation = shell.conversation
    folders = get_folders()
    rows, cols = measure()
    wish = conversation.build_request("") | {"rows": rows, "cols": cols}
    if not conversation.session:
        wish["new"] = True
    with shell.lend_terminal():
        connection = connect_or_start(folders)
        answer = connection.request("open", limit_s=OPEN_LIMIT_S, **wish)
        conversation.session, conversation.folder = str(answer["session"]), str(answer["folder"])
        follow(folders, connection, answer)
    view = conversation.refresh()
    conversation.agent = str(view["agent"]) or conversation.agent
    shell.say(f"→ Back in the shell. What you type goes on in the same conversation of {conversation.agent}.")


async def start_new_session(shell: ShellFace, rest: str) -> None:
    """Let the next message begin another session; the present one stays as it is."""
    check_words("new", rest)
    conversation, left = shell.conversation, shell.conversation.session
    if shell.turns.is_working or shell.turns.is_waiting:
        raise WrongUseError("a turn is under way", hint="Wait for its end, or stop it: Ctrl-C")
    conversation.leave()
    shell.say("→ The next message begins a new session." + (f" To return: /resume {left}" if left else ""))


async def resume(shell: ShellFace, rest: str) -> None:
    """Join `[SESSION]`, or else the newest other session here, for the next message."""
    check_words("resume", rest, most=1)
    conversation = shell.conversation
    was_waiting = shell.turns.is_waiting
    await shell.turns.give_up_waiting()
    if shell.turns.is_working:
        raise WrongUseError("a turn is under way", hint="Wait for its end, or stop it: Ctrl-C")
    view = _find_session(conversation, rest, was_waiting=was_waiting)
    conversation.join(view)
    shell.say(f"→ Session {conversation.session}. Your next message goes to {conversation.agent}.")
    if view["task"] or view["title"]:
        shell.say(f"  It began with: {view['task'] or view['title']}")
    others = is_shared(conversation.lock, conversation.session)
    if others:
        shell.say("  Another shell has it too; what is sent here waits for its turns. /resume shows them.")
    position = find_place(conversation.root, conversation.session)
    resting = find_resting(conversation.root, conversation.session)
    if position is not None:
        shell.turns.rejoin(position)
    if resting is not None and not others:
        shell.turns.queue_resting(*resting)
    elif was_waiting:
        shell.turns.go_on()


def _find_session(conversation: Conversation, rest: str, *, was_waiting: bool) -> Mapping[str, object]:
    """Return the session that is meant. Raise WrongUseError if there is none, or it is elsewhere."""
    if rest:
        view: Mapping[str, object] = find_session(get_folders(), rest)
    else:
        # Who waits for a turn of this very session wants to see that.
        own = "" if was_waiting else conversation.session
        here = [
            one
            for one in read_sessions_at(conversation.root, get_folders().sessions)
            if one["session"] != own
        ]
        if not here:
            raise WrongUseError("there is no other session here", hint="See: /sessions")
        view = here[0]
    if not conversation.is_at_home(str(view["root"])):
        raise WrongUseError(
            f"session {view['session']} belongs to {view['root']}", hint="Open a shell in that folder"
        )
    return view


async def show_status(shell: ShellFace, rest: str) -> None:
    """Show this session in short; with arguments or before the first message, run the plain command."""
    conversation = shell.conversation
    if rest or not conversation.session:
        shell.run_plain(["status", *split_words(rest)])
        return
    first, *more = describe(conversation.session, conversation.folder)
    if not shell.turns.is_working:
        # Between two turns nothing runs, which is no end.
        first = first.replace(": ended under ", ": between two turns, under ", 1)
    shell.say(first, *more)


async def leave(shell: ShellFace, rest: str) -> None:
    """End the shell and nothing else."""
    check_words("exit", rest)
    shell.leave()
