"""Numbers of things, in words."""


def render_count(number: int, word: str) -> str:
    """Return `1 handoff`, `2 handoffs`; for words whose plural ends in s."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
