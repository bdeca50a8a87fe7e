"""Cuts what people and agents wrote into quotable sentences; code is left out."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$|^(```|~~~).*\Z", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS = re.compile(r"^(\*\*|__)(.+?)\1$")
# A full stop ends a sentence unless it belongs to one of the usual abbreviations.
_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)[\"')\]]?\s+")
_TABLE = re.compile(r"^\s*\|")
# Shorter lines are broken on purpose; longer ones were wrapped by an editor and go on below.
_WRAPPED_LENGTH = 60
MAX_LENGTH = 600


def split_sentences(text: str) -> list[str]:
    """The sentences of `text` in order, white space evened out; overlong ones are no sentences."""
    found: list[str] = []
    for line in _iterate_paragraphs(_FENCE.sub("\n", text)):
        for part in _END.split(line):
            sentence = " ".join(part.split())
            if sentence and len(sentence) <= MAX_LENGTH:
                found.append(sentence)
    return found


def _iterate_paragraphs(text: str) -> Iterator[str]:
    """Lines without their list marks, those wrapped by an editor joined again."""
    pending = ""
    for raw in [*text.splitlines(), ""]:
        line = _MARK.sub("", raw).strip()
        goes_on = line[:1].islower() and not _MARK.match(raw) and not pending.endswith((".", "!", "?", ":"))
        if goes_on and len(pending) >= _WRAPPED_LENGTH:
            pending = f"{pending} {line}"
            continue
        if pending:
            yield pending
        pending = "" if _TABLE.match(raw) else _EMPHASIS.sub(r"\2", line)


def normalise(text: str) -> str:
    """`text` for comparing: case, white space and closing punctuation do not matter."""
    return " ".join(text.casefold().split()).rstrip(".!…:;, ")


def is_alike(one: str, other: str) -> bool:
    """Whether two short texts say the same: most of their words are shared."""
    first, second = set(re.findall(r"\w+", one.casefold())), set(re.findall(r"\w+", other.casefold()))
    if not first or not second:
        return normalise(one) == normalise(other)
    return len(first & second) / len(first | second) >= 0.6  # noqa: PLR2004 - three of five words
