"""Messages of relay over the lowest rows of the screen while an agent has the terminal."""

LABEL = " relay "
SHORTEST_S = 2.0
"""The least time a message stays, so that a person who is typing sees it, too; keys reach the agent."""
LONGEST_S = 10.0
"""The most time a message stays: an agent's screen must not stay covered when nobody is there."""
# The screen's state is put aside for painting; input modes stay, since keys are the agent's all the time.
_PAINTING = b"\x18\x1b[?2026l\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[?25l"


def render_line(text: str, rows: int, cols: int) -> bytes:
    """Return what paints `text` over the lowest of `rows`, cut to what they hold.

    A repaint afterwards brings back what was covered.
    """
    parts = split_line(text, rows, cols)
    first = rows - len(parts) + 1
    painted = "".join(
        f"\x1b[{first + at};1H\x1b[2K\x1b[7m{' ' * len(LABEL) if at else LABEL}\x1b[0m {part}"
        for at, part in enumerate(parts)
    )
    return _PAINTING + painted.encode()


def split_line(text: str, rows: int, cols: int) -> list[str]:
    """Return `text` in as many pieces as it takes rows, at most all rows but one."""
    # Loaded where something is said: attaching must not pay for it.
    from agent_relay.domain.text.plain import split_columns

    room = max(1, cols - len(LABEL) - 2)
    return split_columns(clean(text), room)[: max(1, rows - 1)]


def clean(text: str) -> str:
    """Return the text without control characters, which could move the cursor or worse."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
