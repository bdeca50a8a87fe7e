"""Words for counts, columns of a terminal, and how much of an agent's output is reported."""

import unicodedata


def render_count(number: int, word: str) -> str:
    """Return `1 handoff`, `2 handoffs`; for words whose plural ends in s."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def capitalize(text: str) -> str:
    """Return `text` as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def count_columns(text: str) -> int:
    """Return the columns of `text` on a terminal; it should hold no control characters."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def split_columns(text: str, most: int) -> list[str]:
    """Return `text` in pieces of at most `most` columns each; a wider sign is a piece by itself."""
    if text.isascii():
        return [text[at : at + most] for at in range(0, len(text), most)]
    pieces, begin, used = [], 0, 0
    for at, sign in enumerate(text):
        width = count_columns(sign)
        if used + width > most and at > begin:
            pieces.append(text[begin:at])
            begin, used = at, 0
        used += width
    return [*pieces, text[begin:]] if text else []


LONGEST_RESULT = 4_000
"""Characters of a tool's input or output that are told; the transcript has the rest."""
