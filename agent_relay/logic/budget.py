"""The size a packet must fit, and the order in which its sections give way, none of them silently."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from agent_relay.domain.document import Document
from agent_relay.domain.packet import Cut, Provenance, ResumePacket

_NOT_ASCII = re.compile("[^\x00-\x7f]")
_ASCII_PER_TOKEN = 3.0
_TOKENS_PER_OTHER = 1.5
# Characters per token no text reaches: what is longer than this times the budget does not fit alone.
_NEVER_FITS = 8
_LABELS = {field: f"{field} text" for field in ("unprocessed_prompt", "task", "next_task", "focus", "limit")}
_DocumentT = TypeVar("_DocumentT", bound=Document)


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` is, rather too many than too few.

    Public tokenizers take 3.2 to 4.5 ASCII characters of prose and code a token; of other scripts 0.7 to
    2 tokens a character. Rows of random letters may come out up to a third too low.
    """
    others = len(_NOT_ASCII.findall(text))
    return math.ceil((len(text) - others) / _ASCII_PER_TOKEN + others * _TOKENS_PER_OTHER)


@dataclass(frozen=True, slots=True)
class _Step:
    """One way of giving way. `most` is how far it can go; `cut` goes `amount` far and says what was cut."""

    most: Callable[[ResumePacket], int]
    cut: Callable[[ResumePacket, int], ResumePacket]


def fit_packet(packet: ResumePacket, *, tokens: int, render: Callable[[ResumePacket], str]) -> ResumePacket:
    """The packet whose text by `render` is at most `tokens`, each section cut no more than it must.

    Sections give way in the order of `_STEPS`. `cuts` names what went, how much of it, and the transcript
    it can be read in. Where even all of it is not enough, what is left is the least that makes sense.
    """

    def fits(candidate: ResumePacket) -> bool:
        return estimate_tokens(render(candidate)) <= tokens

    packet = _bound(packet, tokens * _NEVER_FITS)
    if fits(packet):
        return packet
    for step in _STEPS:
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
    """What cannot fit by itself alone goes first, so that a pasted novel is not rendered fifty times."""
    for field, part in (("narrative", ""), ("unprocessed_prompt", "text"), ("task", ""), ("next_task", "")):
        step = _shorten_field(field, part, to=characters)
        most = step.most(packet)
        packet = step.cut(packet, most) if most > 0 else packet
    for field, part in (
        ("recent_turns", "text"),
        ("validation_runs", "output_tail"),
        ("constraints", "text"),
    ):
        step = _shorten(field, part, to=characters)
        most = step.most(packet)
        packet = step.cut(packet, most) if most > 0 else packet
    return packet


def _drop(
    field: str,
    *,
    keep: int = 0,
    where: Callable[[Document], bool] = lambda _: True,
    label: str = "",
    newest_first: bool = False,
) -> _Step:
    """Entries of `field` that are `where`, the oldest first, down to `keep` of them."""

    def chosen(packet: ResumePacket) -> list[int]:
        entries = _entries(packet, field)
        places = [place for place, entry in enumerate(entries) if where(entry)]
        return places[::-1] if newest_first else places

    def cut(packet: ResumePacket, amount: int) -> ResumePacket:
        gone = set(chosen(packet)[:amount])
        entries = _entries(packet, field)
        left = tuple(entry for place, entry in enumerate(entries) if place not in gone)
        path = _find_path([entries[place] for place in sorted(gone)], packet)
        smaller = packet.model_copy(update={field: left})
        if not left:  # that its texts were shortened before is of no interest now
            cuts = tuple(one for one in packet.cuts if one.section != f"{field} text")
            smaller = smaller.model_copy(update={"cuts": cuts})
        return _note(smaller, label or field, len(gone), path)

    return _Step(lambda packet: max(0, len(chosen(packet)) - keep), cut)


def _shorten(field: str, part: str, *, to: int) -> _Step:
    """The texts `part` of all entries of `field`: their middles go until `to` characters are left."""

    def most(packet: ResumePacket) -> int:
        return max((len(_text(entry, part)) - to for entry in _entries(packet, field)), default=0)

    def cut(packet: ResumePacket, amount: int) -> ResumePacket:
        entries = _entries(packet, field)
        longest = max(len(_text(entry, part)) for entry in entries)
        limit = max(to, longest - amount)
        left = tuple(_with_text(entry, part, _cut_middle(_text(entry, part), limit)) for entry in entries)
        changed = [entry for entry, new in zip(entries, left, strict=True) if new is not entry]
        omitted = sum(len(_text(entry, part)) - limit for entry in changed)
        path = _find_path(changed, packet)
        return _note(packet.model_copy(update={field: left}), f"{field} text", omitted, path)

    return _Step(most, cut)


def _shorten_field(field: str, part: str = "", *, to: int) -> _Step:
    """One text of the packet itself (or `part` of its document `field`): its middle goes."""

    def read(packet: ResumePacket) -> str:
        value: object = getattr(packet, field)
        return _text(value, part) if isinstance(value, Document) else value if isinstance(value, str) else ""

    def cut(packet: ResumePacket, amount: int) -> ResumePacket:
        text = read(packet)
        limit = len(text) - amount
        short = _cut_middle(text, limit)
        value: object = getattr(packet, field)
        new = _with_text(value, part, short) if isinstance(value, Document) else short or None
        source = [value] if isinstance(value, Document) else []
        path = _find_path(source, packet)
        label = _LABELS.get(field, field)
        return _note(packet.model_copy(update={field: new}), label, len(text) - limit, path)

    return _Step(lambda packet: max(0, len(read(packet)) - to), cut)


def _drop_field(field: str) -> _Step:
    """A whole optional field."""

    def cut(packet: ResumePacket, _: int) -> ResumePacket:
        return _note(packet.model_copy(update={field: None}), field, 1, "")

    return _Step(lambda packet: 1 if getattr(packet, field) else 0, cut)


def _entries(packet: ResumePacket, field: str) -> tuple[Document, ...]:
    entries: tuple[Document, ...] = getattr(packet, field)
    return entries


def _text(entry: Document, part: str) -> str:
    text: object = getattr(entry, part)
    return text if isinstance(text, str) else ""


def _with_text(entry: _DocumentT, part: str, text: str) -> _DocumentT:
    return entry if _text(entry, part) == text else entry.model_copy(update={part: text})


def _cut_middle(text: str, limit: int) -> str:
    """`text` with about `limit` characters of it left, the beginning and the end, and a mark between."""
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    tail = limit // 3
    head = limit - tail
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[len(text) - tail :]}"


def _find_path(entries: list[Document], packet: ResumePacket) -> str:
    """The transcript most of `entries` come from, else the one the task comes from."""
    sources = [getattr(entry, "source", None) for entry in entries]
    paths = [source.transcript for source in sources if isinstance(source, Provenance) and source.transcript]
    if paths:
        return max(sorted(set(paths)), key=paths.count)
    return packet.task_source.transcript if packet.task_source else ""


def _note(packet: ResumePacket, section: str, omitted: int, path: str) -> ResumePacket:
    """The packet that says so; what was noted of the section before is added up."""
    before = sum(cut.omitted for cut in packet.cuts if cut.section == section)
    others = tuple(cut for cut in packet.cuts if cut.section != section)
    entry = Cut(section=section, omitted=before + omitted, path=path)
    return packet.model_copy(update={"cuts": (*others, entry)})


def _is_read(entry: Document) -> bool:
    return getattr(entry, "status", "") == "read"


def _is_done(entry: Document) -> bool:
    return getattr(entry, "status", "") in ("completed", "cancelled")


def _is_untracked(entry: Document) -> bool:
    return getattr(entry, "status", "") == "untracked"


# The declared order. First what the successor can read again by itself, then the history, then how much
# of each thing is said, and only at the very end the user's own words.
_STEPS: tuple[_Step, ...] = (
    _shorten("recent_turns", "text", to=1200),
    _drop("recent_turns", keep=2),
    _drop("touched_files", where=_is_read, label="touched_files read"),
    _shorten("validation_runs", "output_tail", to=600),
    _drop("attempts", keep=6),
    _shorten("attempts", "outcome", to=300),
    _drop("validation_runs", keep=3),
    _drop("touched_files", where=_is_untracked, keep=10, newest_first=True),
    _drop("plan", where=_is_done, keep=3),
    _drop("lineage", keep=2),
    _shorten("recent_turns", "text", to=300),
    _shorten_field("narrative", to=2000),
    _drop("recent_turns"),
    _shorten("blockers", "evidence", to=600),
    _drop("attempts", keep=2),
    _drop("touched_files", keep=40, newest_first=True),
    _shorten_field("narrative", to=0),
    _shorten("validation_runs", "output_tail", to=0),
    _shorten("attempts", "summary", to=200),
    _shorten("background", "text", to=200),
    _drop("background", keep=3),
    _drop("attempts"),
    _drop("touched_files", keep=10, newest_first=True),
    _shorten("decisions", "summary", to=300),
    _shorten("decisions", "why", to=200),
    _shorten("plan", "text", to=200),
    _drop("plan", keep=8, where=lambda entry: not _is_done(entry), newest_first=True),
    _drop("validation_runs", keep=1),
    _shorten("validation_runs", "command", to=200),
    _shorten("blockers", "summary", to=300),
    _shorten("blockers", "evidence", to=120),
    _drop("decisions", keep=5),
    _drop("blockers", keep=3),
    _drop_field("expectations"),
    _shorten_field("limit", "evidence", to=200),
    _drop("plan", keep=3, newest_first=True),
    _drop("background"),
    _drop("touched_files", newest_first=True),
    _drop("decisions"),
    _drop("blockers", keep=1),
    _drop("validation_runs"),
    _shorten_field("focus", to=300),
    _shorten("constraints", "text", to=300),
    _shorten_field("next_task", to=600),
    _shorten_field("unprocessed_prompt", "text", to=2000),
    _shorten_field("task", to=1000),
    _drop("constraints", keep=5),
    _shorten_field("unprocessed_prompt", "text", to=400),
    _shorten_field("task", to=300),
)
