"""Fit a packet into a number of tokens: its sections are cut in a fixed order, and every cut is noted."""

import math
import re
from collections.abc import Callable, Sequence

from agent_relay.domain.documents.document import Document
from agent_relay.domain.documents.packet import Decision, Exchange, ResumePacket
from agent_relay.packet import _cuts as cuts
from agent_relay.packet.extract.ledger import FEW, LEAST
from agent_relay.packet.extract.requests import weigh_rule
from agent_relay.packet.extract.sentences import FIRM, weigh

_NOT_ASCII = re.compile("[^\x00-\x7f]")
_ASCII_PER_TOKEN = 3.0
_TOKENS_PER_OTHER = 1.5
TARGET_LENGTH = 7_800
"""Characters a packet aims at: beyond them, what the successor can look up or would hardly miss is cut."""
_DOCUMENT_LENGTH = 6000
"""Characters of an agent's own document that are kept as long as any line inferred from its words is."""
CUT_NAMES = {
    "recent_turns": "messages of the latest exchange",
    "recent_turns text": "characters of the latest exchange",
    "touched_files": "files",
    "touched_files read": "files that were only read",
    "attempts": "things that were tried",
    "attempts text": "characters of what was tried",
    "remarks": "remarks",
    "validation_runs": "earlier checks",
    "validation_runs text": "characters of the checks' output",
    "blockers": "blockers",
    "blockers text": "characters of the blockers",
    "decisions": "decisions",
    "decisions text": "characters of decisions",
    "constraints": "rules of the user",
    "constraints text": "characters of the user's rules",
    "plan": "steps of the plan",
    "plan text": "characters of the plan",
    "background": "things still running",
    "exchanges": "exchanges",
    "exchanges text": "characters of exchanges",
    "lineage": "earlier legs",
    "last_lines": "characters of the end of its record",
    "last_screen": "characters of its last screen",
    "narrative": "characters of the predecessor's own words",
    "expectations": "expectations",
    "expectations text": "characters of what is expected",
    "rollback text": "characters of what is to be answered",
    "rollback questions": "questions to answer",
    "rollback": "note on who takes over if it fails",
    "unprocessed_prompt text": "characters of the waiting prompt",
    "task text": "characters of the task",
    "task_pasted": "characters pasted with the task",
    "next_task text": "characters of the next step",
    "focus text": "characters of the focus",
    "limit text": "characters of the limit message",
}
"""Names for people of the things that each section of `cuts` counts, by section."""
# Characters per token no text reaches: what is longer than this times the budget does not fit alone.
_NEVER_FITS = 8


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of `text`, rather too high than too low.

    Public tokenizers take 3.2 to 4.5 ASCII characters of prose and code a token; of other scripts 0.7 to
    2 tokens a character. Rows of random letters may come out up to a third too low.
    """
    others = len(_NOT_ASCII.findall(text))
    return math.ceil((len(text) - others) / _ASCII_PER_TOKEN + others * _TOKENS_PER_OTHER)


def fit_packet(
    packet: ResumePacket, *, tokens: int, render: Callable[[ResumePacket], str], aim: int = TARGET_LENGTH
) -> ResumePacket:
    """Cut the packet until its text by `render` has at most `tokens`, each section no more than necessary.

    Whatever can be spared is cut in the order of `_SPARED` until the text has `aim` characters; everything
    else in the order of `_STEPS`, and only as far as the budget requires. `cuts` names what was cut, how
    much of it, and the transcript to read it in. If all cuts together are not enough, the smallest packet
    that still makes sense is left.
    """
    packet = _bound(packet, tokens * _NEVER_FITS)
    packet = _give_way(packet, _SPARED, lambda one: len(render(one)) <= aim)
    return _give_way(packet, _STEPS, lambda one: estimate_tokens(render(one)) <= tokens)


def _give_way(
    packet: ResumePacket, steps: Sequence[cuts.CutStep], fits: Callable[[ResumePacket], bool]
) -> ResumePacket:
    """Apply the steps in order, the last one only in part, until the packet `fits`."""
    if fits(packet):
        return packet
    for step in steps:
        most = step.most(packet)
        if most <= 0:
            continue
        least = step.cut(packet, most)
        if not fits(least):
            packet = least
            continue
        low, high = 1, most  # the smallest amount that fits
        while low < high:
            middle = (low + high) // 2
            if fits(step.cut(packet, middle)):
                high = middle
            else:
                low = middle + 1
        return step.cut(packet, high)
    return packet


def _bound(packet: ResumePacket, characters: int) -> ResumePacket:
    """Shorten each text that alone exceeds the budget.

    Done first, so that a pasted novel is not rendered fifty times.
    """
    steps = (
        cuts.shorten_field("narrative", to=characters),
        cuts.shorten_field("unprocessed_prompt", "text", to=characters),
        cuts.shorten_field("task", to=characters),
        cuts.shorten_field("task_pasted", to=characters),
        cuts.shorten_field("unprocessed_prompt", "pasted", to=characters),
        cuts.shorten_field("next_task", to=characters),
        cuts.shorten("recent_turns", "text", to=characters),
        cuts.shorten("validation_runs", "output_tail", to=characters),
        cuts.shorten("constraints", "text", to=characters),
    )
    for step in steps:
        most = step.most(packet)
        packet = step.cut(packet, most) if most > 0 else packet
    return packet


def _has_status(*statuses: str) -> Callable[[Document], bool]:
    return lambda entry: getattr(entry, "status", "") in statuses


_is_read = _has_status("read")
_is_done = _has_status("completed", "cancelled")
_is_untracked = _has_status("untracked")


def _weigh(entry: Document) -> int:
    return weigh(str(getattr(entry, "summary", "") or getattr(entry, "text", "")))


def _get_weight(entry: Document) -> int:
    return entry.weight if isinstance(entry, Exchange) else 0


def _is_light(entry: Document) -> bool:
    return _get_weight(entry) < LEAST


def _is_slight(entry: Document) -> bool:
    return _weigh(entry) < FIRM


def _has_own_line(entry: Document) -> bool:
    """Check whether a decision is shown on a line of its own rather than in an exchange."""
    return not (isinstance(entry, Decision) and entry.in_ledger)


def _is_slight_decision(entry: Document) -> bool:
    return _has_own_line(entry) and _is_slight(entry)


def _is_passing(entry: Document) -> bool:
    return weigh_rule(str(getattr(entry, "text", ""))) == 0


# What a text short enough to be read with care does without: what stands in the files, in git or in the
# transcript, and what was said in passing.
_SPARED: tuple[cuts.CutStep, ...] = (
    cuts.shorten_field("task_pasted", to=600),
    # The successor reads on with `recall`; the ledger it would not look for.
    cuts.shorten_field("unprocessed_prompt", "pasted", to=6000),
    cuts.drop("exchanges", where=_is_light, keep=FEW, rank=_get_weight),
    cuts.drop("remarks", keep=4, rank=_weigh),
    cuts.shorten("recent_turns", "text", to=1200),
    cuts.drop("recent_turns", keep=2),
    cuts.drop("touched_files", where=_is_read, label="touched_files read"),
    cuts.shorten("validation_runs", "output_tail", to=400),
    cuts.drop("attempts", where=_is_slight, keep=6),
    cuts.drop("validation_runs", keep=3),
    cuts.drop("decisions", where=_is_slight_decision, keep=6),
    cuts.drop("touched_files", where=_is_untracked, keep=10, newest_first=True),
    cuts.drop("plan", where=_is_done, keep=6),
    cuts.shorten("attempts", "outcome", to=300),
    cuts.drop("constraints", where=_is_passing, keep=8),
    cuts.shorten("recent_turns", "text", to=400),
    cuts.drop("attempts", where=_is_slight, keep=2),
    cuts.drop("decisions", where=_is_slight_decision),
    cuts.drop("lineage", keep=2),
    cuts.shorten_field("narrative", to=_DOCUMENT_LENGTH),
    cuts.shorten_field("last_lines", to=3000),
    cuts.shorten_field("last_screen", to=2000),
    cuts.shorten("validation_runs", "output_tail", to=0),
    cuts.shorten("blockers", "evidence", to=800),
    cuts.drop("touched_files", keep=25, newest_first=True),
    cuts.drop("constraints", where=_is_passing, keep=3),
    cuts.drop("attempts", keep=12, rank=_weigh),
    cuts.drop("decisions", where=_has_own_line, keep=15, rank=_weigh),
    cuts.drop("remarks", rank=_weigh),
    cuts.drop("exchanges", keep=FEW, rank=_get_weight),
)
# The declared order. First what the successor can read again by itself, then the history, then how much
# of each thing is said, and only at the very end the user's own words.
_STEPS: tuple[cuts.CutStep, ...] = (
    cuts.drop("remarks", rank=_weigh),
    cuts.drop("exchanges", keep=FEW, rank=_get_weight),
    cuts.shorten("recent_turns", "text", to=1200),
    cuts.drop("recent_turns", keep=2),
    cuts.drop("touched_files", where=_is_read, label="touched_files read"),
    cuts.shorten("validation_runs", "output_tail", to=600),
    cuts.drop("attempts", keep=6, rank=_weigh),
    cuts.shorten("attempts", "outcome", to=300),
    cuts.drop("validation_runs", keep=3),
    cuts.drop("touched_files", where=_is_untracked, keep=10, newest_first=True),
    cuts.drop("plan", where=_is_done, keep=3),
    cuts.drop("lineage", keep=2),
    cuts.shorten("recent_turns", "text", to=300),
    cuts.shorten_field("narrative", to=_DOCUMENT_LENGTH),
    cuts.shorten_field("last_lines", to=1500),
    cuts.shorten_field("last_screen", to=1500),
    cuts.drop("recent_turns"),
    cuts.shorten("blockers", "evidence", to=600),
    cuts.drop("attempts", keep=2, rank=_weigh),
    cuts.drop("touched_files", keep=40, newest_first=True),
    cuts.shorten_field("last_lines", to=0),
    cuts.shorten_field("last_screen", to=300),
    cuts.shorten("validation_runs", "output_tail", to=0),
    cuts.shorten("attempts", "summary", to=200),
    cuts.shorten("background", "text", to=200),
    cuts.drop("background", keep=3),
    cuts.drop("attempts"),
    cuts.drop("touched_files", keep=10, newest_first=True),
    cuts.shorten("decisions", "summary", to=300),
    cuts.shorten("decisions", "why", to=200),
    cuts.shorten("plan", "text", to=200),
    cuts.shorten("exchanges", "on", to=160),
    cuts.shorten("exchanges", "told", to=160),
    cuts.drop("exchanges", keep=2, rank=_get_weight),
    cuts.drop("plan", keep=8, where=lambda entry: not _is_done(entry), newest_first=True),
    cuts.drop("validation_runs", keep=1),
    cuts.shorten("validation_runs", "command", to=200),
    cuts.shorten("blockers", "summary", to=300),
    cuts.shorten("blockers", "evidence", to=120),
    cuts.drop("decisions", where=_has_own_line, keep=5, rank=_weigh),
    cuts.drop("blockers", keep=3),
    cuts.shorten_terms("expectations", to=300),
    cuts.shorten_terms("rollback", to=300),
    cuts.drop_terms("rollback", "questions", keep=5),
    cuts.drop_field("expectations"),
    cuts.shorten_field("limit", "evidence", to=200),
    cuts.drop("plan", keep=3, newest_first=True),
    cuts.drop("background"),
    cuts.drop("touched_files", newest_first=True),
    cuts.drop("decisions", where=_has_own_line),
    cuts.shorten_field("narrative", to=2000),
    cuts.drop("exchanges"),
    cuts.shorten_field("narrative", to=0),
    cuts.drop("blockers", keep=1),
    cuts.drop("validation_runs"),
    cuts.drop_terms("rollback", "questions", keep=1),
    cuts.shorten_field("focus", to=300),
    cuts.shorten("constraints", "text", to=300),
    cuts.shorten_field("next_task", to=600),
    cuts.shorten_field("task_pasted", to=0),
    cuts.shorten_field("unprocessed_prompt", "pasted", to=600),
    cuts.shorten_field("unprocessed_prompt", "text", to=2000),
    cuts.shorten_field("task", to=1000),
    cuts.drop_field("rollback"),
    cuts.shorten_field("last_screen", to=0),
    cuts.drop("constraints", keep=5),
    cuts.shorten_field("unprocessed_prompt", "text", to=400),
    cuts.shorten_field("task", to=300),
)
