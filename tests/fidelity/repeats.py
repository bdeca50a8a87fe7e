"""Find long lines that occur twice in a text."""

import re
from collections.abc import Iterator

LONG = 60
"""The length, in characters, from which a repeated line is a waste."""
# The marks of lists and quotations, and who speaks.
_MARK = re.compile(r"^(?:[ \t>]*(?:[-*] )?(?:user: |later: |[\w-]+ had said: |[\w-]+: )?)+")
_PLACE = re.compile(r" \(turn \d+[^()]*\)$")


def list_repeated(text: str) -> Iterator[str]:
    """The long lines whose words occur again elsewhere in the text."""
    lines = [" ".join(_PLACE.sub("", _MARK.sub("", line)).split()) for line in text.split("\n")]
    flat = " ".join(lines)
    for line in lines:
        words = line.rstrip("…")
        if len(words) >= LONG and flat.count(words) > 1:
            yield words
