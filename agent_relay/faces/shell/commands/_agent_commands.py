"""Commands that change the agent: /use, /relay, /undo-handoff, /handoff and /model."""

import asyncio
import os
from functools import partial

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.handoff.undo import find_predecessor
from agent_relay.faces.cli.roster.agents import build_view
from agent_relay.faces.cli.start.agent import is_agent, list_names, suggest
from agent_relay.faces.cli.start.relay_prompt import split_words
from agent_relay.faces.shell.commands.interface import ShellFace
from agent_relay.faces.shell.turns.agent_switch import DocumentJob, find_next
from agent_relay.session.views.messages import render_sign_in
from agent_relay.system.disk.folders import get_cwd, get_folders


async def use(shell: ShellFace, rest: str) -> None:
    """Give the running turn, or else the next one, to AGENT (`AGENT [MESSAGE]`)."""
    agent, _, message = rest.partition(" ")
    if not agent or agent.startswith("-"):
        raise WrongUseError("/use needs an agent", hint="/use AGENT [MESSAGE]")
    folders, cwd = get_folders(), get_cwd()
    if not is_agent(agent, folders, cwd):
        meant = suggest(agent, list_names(folders, cwd))
        raise WrongUseError(f"there is no agent {agent[:40]!r}", hint=f"{meant}See: /agents")
    _check_installed(shell, agent)
    await _switch(shell, agent, message.strip())


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
    session = _need_session(shell)
    if shell.turns.is_working and await _pass_on(shell, "", rest):
        return
    await _switch(shell, await asyncio.to_thread(find_next, shell.turns.ask, session), rest)


async def undo(shell: ShellFace, rest: str) -> None:
    """Give the session back to the agent that had it before the last handoff."""
    if rest:
        raise WrongUseError("/undo-handoff takes no arguments", hint="See: /undo-handoff --help")
    conversation = shell.conversation
    view = conversation.refresh()
    if view and view["agent"] and view["agent"] != conversation.agent and not shell.turns.is_working:
        # The switch has led to no handoff yet.
        await _switch(shell, str(view["agent"]), "")
        return
    await _switch(shell, find_predecessor(conversation.root, _need_session(shell)), "")


async def hand_off(shell: ShellFace, rest: str) -> None:
    """Have the agent write a document and hand over (`[FOCUS]`), or run a command on handoff records."""
    words = split_words(rest) if rest.partition(" ")[0] in COMMANDS["handoff"].words else []
    if words:
        session = shell.conversation.session
        if words[0] == "history" and len(words) == 1 and session:
            words.append(session)
        if words[0] == "plan" and "--session" not in words and session:
            words += ["--session", session]
        shell.run_plain(["handoff", *words])
        shell.conversation.refresh()
        return
    _need_session(shell)
    shell.turns.do(DocumentJob(shell.conversation, rest, shell.turns.send_first))


async def choose_model(shell: ShellFace, rest: str) -> None:
    """Set the model of the agent's next turns here (`[MODEL]`); `-` is its own again."""
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
    if shell.turns.preferred is not None:
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


def _need_session(shell: ShellFace) -> str:
    if not shell.conversation.session:
        raise WrongUseError("there is nothing to hand over yet", hint="Type a message, or /resume a session")
    return shell.conversation.session
