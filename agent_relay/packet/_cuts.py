"""Shorten or drop one section of a packet at a time, and note in `cuts` what was left out."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from agent_relay.domain.documents.document import Document
from agent_relay.domain.documents.packet import Cut, Provenance, ResumePacket

# Longer than what says that a middle was left out: cutting less than it gains nothing.
_MARK = 45
_LABELS = {field: f"{field} text" for field in ("unprocessed_prompt", "task", "next_task", "focus", "limit")}
_DocumentT = TypeVar("_DocumentT", bound=Document)


class CutStep(msgspec.Struct, frozen=True):
    """One step of cutting. `most` is how far it can go; `cut` cuts by `amount` and notes what was cut."""

    most: Callable[[ResumePacket], int]
    cut: Callable[[ResumePacket, int], ResumePacket]


def drop(
    field: str,
    *,
    keep: int = 0,
    where: Callable[[Document], bool] = lambda _: True,
    label: str = "",
    newest_first: bool = False,
    rank: Callable[[Document], int] = lambda _: 0,
) -> CutStep:
    """Build a step that drops the entries of `field` that match `where`, until `keep` of them are left.

    The lowest `rank` goes first, the oldest (or with `newest_first` the newest) first among equals.
    """

    def chosen(packet: ResumePacket) -> list[int]:
        entries = _entries(packet, field)
        places = [place for place, entry in enumerate(entries) if where(entry)]
        places = places[::-1] if newest_first else places
        return sorted(places, key=lambda place: rank(entries[place]))

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

    return CutStep(lambda packet: max(0, len(chosen(packet)) - keep), cut)


def shorten(field: str, part: str, *, to: int) -> CutStep:
    """Build a step that cuts the middles of the texts `part` of all entries of `field`.

    At the most, `to` characters of each are left.
    """

    def most(packet: ResumePacket) -> int:
        return max((_find_excess(_text(entry, part), to) for entry in _entries(packet, field)), default=0)

    def cut(packet: ResumePacket, amount: int) -> ResumePacket:
        entries = _entries(packet, field)
        longest = max(len(_text(entry, part)) for entry in entries)
        limit = max(to, longest - amount)
        left = tuple(_with_text(entry, part, _cut_middle(_text(entry, part), limit)) for entry in entries)
        changed = [entry for entry, new in zip(entries, left, strict=True) if new is not entry]
        if not changed:
            return packet
        omitted = sum(len(_text(entry, part)) - limit for entry in changed)
        path = _find_path(changed, packet)
        return _note(packet.model_copy(update={field: left}), f"{field} text", omitted, path)

    return CutStep(most, cut)


def shorten_field(field: str, part: str = "", *, to: int) -> CutStep:
    """Build a step that cuts the middle of one text of the packet.

    The text is `field` itself, or `part` of the document `field`; at the most, `to` characters are left.
    """

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

    return CutStep(lambda packet: _find_excess(read(packet), to), cut)


def drop_field(field: str) -> CutStep:
    """Build a step that drops a whole optional field."""

    def cut(packet: ResumePacket, _: int) -> ResumePacket:
        # That its texts or parts went before is of no interest now.
        cuts = tuple(one for one in packet.cuts if one.section.partition(" ")[0] != field)
        return _note(packet.model_copy(update={field: None, "cuts": cuts}), field, 1, "")

    return CutStep(lambda packet: 1 if getattr(packet, field) else 0, cut)


def shorten_terms(field: str, *, to: int) -> CutStep:
    """Build a step that cuts the middles of the texts in `field`, down to `to` characters each.

    `field` is a document of named texts and lists of texts.
    """

    def most(packet: ResumePacket) -> int:
        return max((_find_excess(text, to) for text in _list_texts(getattr(packet, field))), default=0)

    def cut(packet: ResumePacket, amount: int) -> ResumePacket:
        terms: dict[str, object] = getattr(packet, field)
        limit = max(to, max(map(len, _list_texts(terms))) - amount)
        left = {name: _shorten_texts(value, limit) for name, value in terms.items()}
        omitted = sum(max(0, len(text) - limit) for text in _list_texts(terms) if _find_excess(text, limit))
        return _note(packet.model_copy(update={field: left}), f"{field} text", omitted, "")

    return CutStep(most, cut)


def drop_terms(field: str, part: str, *, keep: int) -> CutStep:
    """Build a step that drops the last texts of the list `part`, until `keep` are left.

    `field` is a document of named texts and lists of texts.
    """

    def read(packet: ResumePacket) -> list[object]:
        terms: dict[str, object] | None = getattr(packet, field)
        found = terms.get(part) if terms else None
        return found if isinstance(found, list) else []

    def cut(packet: ResumePacket, amount: int) -> ResumePacket:
        terms: dict[str, object] = getattr(packet, field)
        left = read(packet)[:-amount]
        return _note(packet.model_copy(update={field: {**terms, part: left}}), f"{field} {part}", amount, "")

    return CutStep(lambda packet: max(0, len(read(packet)) - keep), cut)


def _list_texts(terms: dict[str, object] | None) -> list[str]:
    found: list[str] = []
    for value in (terms or {}).values():
        found += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    return found


def _shorten_texts(value: object, limit: int) -> object:
    if isinstance(value, list):
        return [_shorten_texts(one, limit) for one in value]
    return _cut_middle(value, limit) if isinstance(value, str) else value


def _entries(packet: ResumePacket, field: str) -> tuple[Document, ...]:
    entries: tuple[Document, ...] = getattr(packet, field)
    return entries


def _text(entry: Document, part: str) -> str:
    text: object = getattr(entry, part)
    return text if isinstance(text, str) else ""


def _with_text(entry: _DocumentT, part: str, text: str) -> _DocumentT:
    return entry if _text(entry, part) == text else entry.model_copy(update={part: text})


def _find_excess(text: str, to: int) -> int:
    """Count the characters of `text` beyond `to`.

    The count is 0 if the mark in their place would be as long as they are.
    """
    return len(text) - to if len(text) > to + (_MARK if to else 0) else 0


def _cut_middle(text: str, limit: int) -> str:
    """Cut `text` to about `limit` characters: its beginning and its end, with a mark between."""
    if limit <= 0:
        return ""
    if not _find_excess(text, limit):
        return text
    tail = limit // 3
    head = limit - tail
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[len(text) - tail :]}"


def _find_path(entries: list[Document], packet: ResumePacket) -> str:
    """Return the transcript most of `entries` come from, else the one the task comes from."""
    sources = [getattr(entry, "source", None) for entry in entries]
    paths = [source.transcript for source in sources if isinstance(source, Provenance) and source.transcript]
    if paths:
        return max(sorted(set(paths)), key=paths.count)
    return packet.task_source.transcript if packet.task_source else ""


def _note(packet: ResumePacket, section: str, omitted: int, path: str) -> ResumePacket:
    """Add a cut to the packet's `cuts`, summed with the section's earlier cuts."""
    before = sum(cut.omitted for cut in packet.cuts if cut.section == section)
    others = tuple(cut for cut in packet.cuts if cut.section != section)
    entry = Cut(section=section, omitted=before + omitted, path=path)
    return packet.model_copy(update={"cuts": (*others, entry)})
