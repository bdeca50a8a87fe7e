"""How many columns of a terminal text takes."""

import unicodedata


def count_columns(text: str) -> int:
    """The columns of `text` on a terminal; it should hold no control characters."""
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
