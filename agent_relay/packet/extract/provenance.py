"""Say where a fact was found, and in which file that is."""

from agent_relay.domain.documents.packet import Provenance
from agent_relay.domain.facts import CommandRun, FileChange, Message, ToolError
from agent_relay.domain.text.plain import compile_late

_PLACE = compile_late(r"(?::\d+|#[^/]*)$")


def tell_source(agent: str, fact: Message | CommandRun | FileChange | ToolError) -> Provenance:
    """Build the provenance of a fact: its agent, and its place in the transcript."""
    return Provenance(agent=agent, transcript=fact.place, turn=fact.turn, at=fact.at)


def find_record(place: str) -> str:
    """Return the file of a place in a transcript, without its line or the message's id."""
    return _PLACE.sub("", place)
