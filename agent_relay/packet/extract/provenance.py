"""Say where a fact was found."""

from agent_relay.domain.documents.packet import Provenance
from agent_relay.domain.facts import CommandRun, FileChange, Message, ToolError


def tell_source(agent: str, fact: Message | CommandRun | FileChange | ToolError) -> Provenance:
    """Build the provenance of a fact: its agent, and its place in the transcript."""
    return Provenance(agent=agent, transcript=fact.place, turn=fact.turn, at=fact.at)
