"""Ask the outgoing agent for a handoff document of its own, and read its answer."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from agent_relay.domain.documents.adapter import Answer
from agent_relay.domain.documents.record_matching import find_dotted
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.text.plain import clean_text, find_reason, quote_reason

if TYPE_CHECKING:
    from agent_relay.domain.facts import Facts

SECTIONS = (
    ("Goal", "what the user wants in the end, in their words where they matter"),
    ("Current state", "what is done, what is half done, what runs"),
    ("Open blockers", "what stands in the way, with where its evidence can be read"),
    ("Recent decisions", "what was settled and why, and what was tried and given up"),
    ("Files of interest", "paths, each with a word on what it has to do with the work"),
    ("Recovery hints", "what to run or read first, and what not to do again"),
)
FEWEST_MESSAGES = 2
LONGEST_TEXT = 64_000
"""Characters of a document that are kept; a longer one would be no summary."""


class NarrativeOutcome(StrEnum):
    """The outcome of asking for a handoff document."""

    WRITTEN = "written"
    EMPTY = "empty"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NOTHING = "nothing"
    UNABLE = "unable"


_MESSAGES = {
    NarrativeOutcome.WRITTEN: "The handoff document is written",
    NarrativeOutcome.EMPTY: "The handoff document is empty: the agent's answer had no text",
    NarrativeOutcome.CANCELLED: "Handoff cancelled",
    NarrativeOutcome.NOTHING: "Nothing to hand off (no messages yet)",
    NarrativeOutcome.UNABLE: "This agent cannot write handoff documents",
}


@dataclass(frozen=True, slots=True)
class NarrativeResult:
    """The outcome: `text` if the document was written, `why` in one line if it failed."""

    kind: NarrativeOutcome
    text: str = ""
    why: str = ""

    @property
    def message(self) -> str:
        """The message for the user."""
        return f"Handoff failed: {self.why}" if self.kind is NarrativeOutcome.FAILED else _MESSAGES[self.kind]


def fail(why: str) -> NarrativeResult:
    """Build the result of a failure; `why` becomes one short line."""
    return NarrativeResult(NarrativeOutcome.FAILED, why=quote_reason(why))


def build_request(focus: str = "") -> str:
    """Build the prompt for the agent, in plain words it cannot take for a command of its own."""
    headings = "\n".join(f"## {name}\n({about})" for name, about in SECTIONS)
    wanted = focus.strip()
    look = f"\nThe reader will look at this first, so say most about it: {wanted}\n" if wanted else ""
    return (
        "Write a handoff document for another coding agent that takes over this task now and has seen"
        " nothing of our conversation. Answer with the document alone, from what you know already: use no"
        " tools, read and change nothing, ask nothing. State only what happened here; leave a section's text"
        " at 'none' where there is nothing to say, and never write secrets. Use exactly these headings, in"
        f" this order:\n\n{headings}\n{look}"
    )


def has_messages(facts: "Facts") -> bool:
    """Check whether there is anything to hand off: a prompt and an answer at least."""
    return len(facts.conversation) >= FEWEST_MESSAGES


def render_narrative(
    text: str, written: str, moment: str, *, facts: "Facts", now: datetime, fresh_prompts: int
) -> str:
    """Render a stored document for a packet, with its age.

    The result is empty if more than `fresh_prompts` prompts came after it. `written` is its time as people
    read it; `moment` the same in ISO 8601, empty in documents of an older version.
    """
    at = parse_moment(moment)
    if at is None:
        return f"(written {written})\n\n{text}"
    since = [
        said for said in facts.conversation if said.role == "user" and said.at is not None and said.at > at
    ]
    if len(since) > fresh_prompts:
        return ""
    minutes = max(0, int((now - at).total_seconds() // 60))
    age = [f"{minutes} min before this packet"] if minutes else []
    if since:
        prompts = "1 prompt since is" if len(since) == 1 else f"{len(since)} prompts since are"
        age.append(f"{prompts} not in it")
    return f"(written {'; '.join([written, *age])})\n\n{text}"


def read_answer(answer: Answer, output: str, *, status: int, errors: str = "") -> NarrativeResult:
    """Read the document from a run's standard output, or the reason why there is none.

    `status` is the exit status as a shell reports it, `errors` the end of standard error.
    """
    if answer.format == "plain":
        return (
            _judge(output) if status == 0 else fail(find_reason(errors) or f"it ended with status {status}")
        )
    text, is_done = "", False
    was_text = False
    for record in _read_records(output):
        for failure in answer.failures:
            if _matches(record, failure.when):
                if failure.is_empty:
                    return NarrativeResult(NarrativeOutcome.EMPTY)
                return fail(_find_text(record, failure.text) or "the agent gave no reason")
        is_done = is_done or _matches(record, answer.done)
        if is_text := _matches(record, answer.when):
            part = _find_text(record, answer.text)
            text = text + part if was_text and answer.join == "run" else part
        was_text = is_text
    if not is_done:
        return fail(find_reason(errors) or f"its answer was cut off (status {status})")
    return _judge(text)


def _judge(text: str) -> NarrativeResult:
    kept = clean_text(text).strip()[:LONGEST_TEXT].strip()
    return (
        NarrativeResult(NarrativeOutcome.WRITTEN, kept) if kept else NarrativeResult(NarrativeOutcome.EMPTY)
    )


def _read_records(output: str) -> Iterator[Mapping[str, object]]:
    """Yield the JSON objects among the lines; other lines are the program's messages."""
    for line in output.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _matches(record: Mapping[str, object], when: Mapping[str, bool | str]) -> bool:
    return all(find_dotted(record, name) == value for name, value in when.items())


def _find_text(record: Mapping[str, object], name: str) -> str:
    found = find_dotted(record, name)
    return found if isinstance(found, str) else ""
