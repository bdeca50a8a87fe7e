"""Find an agent's own notices on a screen by their position, apart from its prose and its tools' output."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_relay.domain.documents.record_matching import compile_pattern, squeeze
from agent_relay.domain.documents.rules import Feed, Near, ScreenPlace
from agent_relay.domain.screen import Screen


@dataclass(frozen=True, slots=True)
class Notice:
    """Words at a notice's position: the feed they belong to, wrapped rows joined, and their first row."""

    feed: str
    text: str
    row: int


def find_notices(feeds: Sequence[Feed], screen: Screen) -> tuple[Notice, ...]:
    """Return every notice of the screen feeds, from the top row down."""
    texts = [row.text.replace("\u00a0", " ") for row in screen.rows]
    colours = [row.color for row in screen.rows]
    found = [
        Notice(feed.name, text, row)
        for feed in feeds
        if feed.place is not None
        for row, text in _find_at(feed.place, texts, colours)
    ]
    return tuple(sorted(found, key=lambda notice: notice.row))


def _find_at(place: ScreenPlace, texts: list[str], colours: list[str]) -> list[tuple[int, str]]:
    starts = compile_pattern(place.starts)
    found = []
    for row, text in enumerate(texts):
        match = starts.search(text)
        if match is None or not _stands_right(place, texts, row):
            continue
        if place.colour and colours[row] not in place.colour:
            continue
        found.append((row, _join(place, texts, row, match.end())))
    return found


def _clean(text: str, blanks: str) -> str:
    return text.translate({ord(character): " " for character in blanks}) if blanks else text


def _stands_right(place: ScreenPlace, texts: list[str], row: int) -> bool:
    if place.above and (row == 0 or not compile_pattern(place.above).search(texts[row - 1])):
        return False
    if place.unless_below:
        below = compile_pattern(place.unless_below)
        if any(below.search(text) for text in texts[row + 1 :]):
            return False
    if place.under is not None and not _stands_under(place.under, texts, row):
        return False
    return all(_follows(near, texts, row) for near in place.followed)


def _stands_under(near: Near, texts: list[str], row: int) -> bool:
    pattern = compile_pattern(near.pattern)
    last = next((index for index in range(len(texts) - 1, -1, -1) if pattern.search(texts[index])), None)
    return last is not None and last < row <= last + near.rows


def _follows(near: Near, texts: list[str], row: int) -> bool:
    pattern = compile_pattern(near.pattern)
    return any(pattern.search(text) for text in texts[row + 1 : row + 1 + near.rows])


def _join(place: ScreenPlace, texts: list[str], row: int, start: int) -> str:
    """Return the words after the opening at `start`, with the rows they wrapped onto."""
    stops = compile_pattern(place.stops) if place.stops else None
    parts = [squeeze(_clean(texts[row], place.blanks)[start:])]
    for text in texts[row + 1 : row + place.join]:
        clean = squeeze(_clean(text, place.blanks))
        if not clean or (stops is not None and stops.search(text)):
            break
        parts.append(clean)
    return " ".join(part for part in parts if part)
