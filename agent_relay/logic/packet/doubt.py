"""What a transcript that is not understood leaves out, in a sentence."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_relay.domain.facts import Facts, Said
from agent_relay.domain.session import Leg

# Agents' clocks are coarser than ours, and a prompt may be typed while the leg is still said to start.
_SLACK = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Doubt:
    """`sentence` says what of the predecessor's record is missing, empty for nothing.

    It `is_wordless` where the leg was asked something and its record has no word of that.
    """

    sentence: str = ""
    is_wordless: bool = False


def find_doubt(facts: Facts, *, agent: str, version: str, leg: Leg) -> Doubt:
    """Return what is missing of the leg's transcript; `version` is the newest of `agent` known here."""
    is_wordless = leg.was_busy and not any(_is_asked(said, leg.starting_at) for said in facts.conversation)
    newer = f"; {agent} may be newer than {version}, the newest version known here" if version else ""
    if facts.unread:
        return Doubt(is_wordless=is_wordless)
    if facts.strange_lines:
        how_many = f"{facts.strange_lines} of {facts.lines} lines"
        return Doubt(f"{how_many} of {agent}'s own record could not be understood{newer}", is_wordless)
    if not is_wordless:
        return Doubt()
    if not facts.transcript:
        return Doubt(f"no record of {agent}'s own of this work was found{newer}", is_wordless)
    return Doubt(f"{agent}'s own record has no word of what it was last asked{newer}", is_wordless)


def _is_asked(said: Said, since: datetime) -> bool:
    return said.role == "user" and (said.at is None or said.at >= since - _SLACK)
