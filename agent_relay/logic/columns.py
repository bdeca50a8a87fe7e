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
