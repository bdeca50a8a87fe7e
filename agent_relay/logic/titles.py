"""A session's title: its task, else the first prompt a person gave it, as one short line.

Hot commands import this module, so it loads only what a text asks for.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = 60
"""How many columns a title takes at most."""
NO_TITLE = "(no prompt seen)"
"""What is shown of a session without one: nothing was asked yet, or its journal is older than prompts are."""
_SEARCHED = 1000
"""How many characters of a text are looked at: a prompt may be a whole file."""


def make_title(text: str) -> str:
    """Return `text` as one line of at most 60 columns without control characters; empty for none."""
    line = text[:_SEARCHED]
    if not line.isascii() or not line.isprintable():
        line = _clean(line)
    return cut_columns(" ".join(line.split()), COLUMNS)


def cut_columns(line: str, most: int) -> str:
    """Return the line where it takes at most `most` columns, else its beginning and an ellipsis."""
    if line.isascii():
        return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
    from agent_relay.logic.columns import count_columns

    # Some signs take no column: so many on one line are nobody's words.
    shown = line[: 4 * most]
    if shown == line and count_columns(line) <= most:
        return line
    used, end = 0, 0
    while end < len(shown) and used + count_columns(shown[end]) < most:
        used += count_columns(shown[end])
        end += 1
    return f"{shown[:end].rstrip()}…"


def find_title(known: "tuple[str, str]", name: str, data: "Mapping[str, object]") -> "tuple[str, str]":
    """Return the title after one more line of a journal, and the leg whose next prompt is relay's own.

    `known` is what it was before, `name` and `data` are the event's. A leg that takes over is first asked
    by relay to go on; what a person asks it comes after that.
    """
    title, opened = known
    if title:
        return known
    if name == "leg.starting":
        return "", _text(data, "leg") if _text(data, "handoff") else ""
    if name == "prompt.seen":
        if _text(data, "leg") == opened:
            return "", ""
        return make_title(_text(data, "text")), opened
    if name in {"session.created", "chat.begun"}:
        return make_title(_text(data, "task")), opened
    return (make_title(_text(data, "prompt")), opened) if name == "turn.begun" else known


def _clean(line: str) -> str:
    from agent_relay.logic.plain import clean_text

    return "".join(sign if sign.isprintable() else " " for sign in clean_text(line))


def _text(data: "Mapping[str, object]", key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""
