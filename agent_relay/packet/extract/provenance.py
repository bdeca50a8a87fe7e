"""Record where a fact was found, and in which file."""

from typing import TYPE_CHECKING

from agent_relay.domain.facts import CommandRun, FileChange, Message, ToolError
from agent_relay.domain.text.plain import compile_late

if TYPE_CHECKING:
    from agent_relay.domain.documents.packet import Provenance

_PLACE = compile_late(r"(?::\d+|#[^/]*)$")


def tell_source(agent: str, fact: Message | CommandRun | FileChange | ToolError) -> "Provenance":
    """Build the provenance of a fact: its agent, and its place in the transcript."""
    # What only finds records is loaded by a daemon before it needs the models of packets.
    from agent_relay.domain.documents.packet import Provenance

    return Provenance(agent=agent, transcript=fact.place, turn=fact.turn, at=fact.at)


def get_turn(source: "Provenance | None") -> tuple[str, str, int] | None:
    """Return the identity of a turn: its agent, its record and its number; `None` if unknown.

    The number alone is not enough: every conversation counts from 1.
    """
    if source is None or not source.turn:
        return None
    return (source.agent, find_record(source.transcript), source.turn)


def find_record(place: str) -> str:
    """Return the file of a place in a transcript, without its line or the message's id."""
    return _PLACE.sub("", place)
