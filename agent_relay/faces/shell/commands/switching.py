"""Another agent for the session: now, in the middle of a turn, or with the next message."""

import asyncio
import os

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.agent import check_agent
from agent_relay.faces.shell.commands.face import ShellFace
from agent_relay.system.folders import get_folders


async def use(shell: ShellFace, rest: str) -> None:
    """`AGENT [MESSAGE]`: the running turn is AGENT's, or the next one will be."""
    agent, _, message = rest.partition(" ")
    if not agent or agent.startswith("-"):
        raise WrongUseError("/use needs an agent", hint="/use AGENT [MESSAGE]")
    check_agent(agent, get_folders(), os.getcwd())
    message = message.strip()
    conversation, turns = shell.conversation, shell.turns
    if turns.is_working and conversation.session:
        await asyncio.to_thread(turns.ask, "use", session=conversation.session, agent=agent, focus=message)
        return
    if agent == conversation.agent and not message:
        shell.say(f"{agent} has the next message already.")
        return
    conversation.agent = agent
    if message:
        turns.send(message)
    else:
        shell.say(f"→ {agent} has the next message.")
