"""Separate the user's words from what agents wrap around them, and clip long output in its middle."""

import re

from agent_relay.domain.text.plain import compile_late

# How far from its place a cut may be made: longer than any secret in one piece but a key block.
_SEARCHED = 600
_ENDS = ("\n", " ", ",", ";")
_STARTS = tuple(map(compile_late, (r"\n", r"[,;]\s*", r"(?<=[^\s:=]{4}) (?=[^:=])")))


def compile_wrappers(*names: str) -> re.Pattern[str]:
    """Compile a pattern for whole elements of the given names; an unclosed one reaches to the end."""
    joined = "|".join(names)
    return compile_late(rf"<(?P<tag>{joined})(?:\s[^<>]*)?>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)


def strip_wrappers(text: str, wrappers: re.Pattern[str]) -> str:
    """Remove the wrapped elements from `text`, and trim blank edges."""
    if "<" not in text:
        return text.strip()
    return wrappers.sub("", text).strip()


def clip(text: str, *, limit: int = 8000) -> str:
    """Cut `text` in its middle to at most `limit` characters, keeping more of its end: errors are there.

    It is cut between lines, in overlong lines at blanks or commas: half a key would not be recognised as one.
    """
    if len(text) <= limit:
        return text
    head = _find_end(text, limit // 4)
    tail = _find_start(text, len(text) - limit + limit // 4)
    return f"{text[:head]}\n[… {tail - head} characters left out …]\n{text[tail:]}"


def _find_end(text: str, at: int) -> int:
    """Return the last place up to `at` where a line or word ends, else `at`."""
    for mark in _ENDS:
        found = text.rfind(mark, max(0, at - _SEARCHED), at)
        if found >= 0:
            return found
    return at


def _find_start(text: str, at: int) -> int:
    """Return the first place from `at` where a line or word begins, but not a value cut off from its name."""
    for mark in _STARTS:
        found = mark.search(text, at, at + _SEARCHED)
        if found is not None:
            return found.end()
    return at
