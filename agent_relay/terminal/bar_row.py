"""The bar: one row at the bottom of a terminal that says what a switch of agents waits for."""

from agent_relay.domain.text.plain import count_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def fit(texts: "Sequence[str]", cols: int) -> str:
    """Return the first of `texts` that fits `cols` columns; if none does, the last one, cut.

    The texts say the same in falling length; control characters become blanks.
    """
    cleaned = [clean(text) for text in texts]
    for text in cleaned:
        if count_columns(text) <= cols:
            return text
    return _cut(cleaned[-1], cols) if cleaned else ""


def clean(text: str) -> str:
    """Return the text with blanks for unprintable characters, which could move the cursor or do worse."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _cut(text: str, cols: int) -> str:
    left, kept = cols, []
    for sign in text:
        left -= count_columns(sign)
        if left < 0:
            break
        kept.append(sign)
    return "".join(kept)


def render_bar(texts: "Sequence[str]", rows: int, cols: int) -> bytes:
    """Return what paints the bar over the lowest of `rows`, in place, so that it never disappears meanwhile.

    The terminal must not wrap (`CSI ? 7 l`), or the last column would move the screen up.
    """
    text = fit(texts, cols)
    blank = cols - count_columns(text)
    # Whatever stood there goes before the rest of the row is filled, in case columns were counted too high.
    rest = b"\x1b[K" + b" " * blank if blank > 0 else b""
    return b"\x1b[%d;1H\x1b[0;7m" % rows + text.encode("utf-8", "replace") + rest + b"\x1b[0m"


def render_lone_bar(texts: "Sequence[str]", rows: int, cols: int) -> bytes:
    """Return what paints the bar between two pieces of a program's own output; it keeps the cursor."""
    return b"\x1b7\x1b[?7l" + render_bar(texts, rows, cols) + b"\x1b[?7h\x1b8"
