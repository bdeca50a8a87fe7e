"""Tells the user's words from what agents put around them and into their mouth."""

import re


def compile_wrappers(*names: str) -> re.Pattern[str]:
    """A pattern for whole elements of the given names, an unclosed one reaching to the end."""
    joined = "|".join(names)
    return re.compile(rf"<(?P<tag>{joined})(?:\s[^>]*)?>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)


def strip_wrappers(text: str, wrappers: re.Pattern[str]) -> str:
    """`text` without the wrapped elements, blank edges trimmed."""
    if "<" not in text:
        return text.strip()
    return wrappers.sub("", text).strip()


def clip(text: str, *, limit: int = 8000) -> str:
    """`text` cut in its middle to about `limit` characters; the end is kept longer, errors stand there."""
    if len(text) <= limit:
        return text
    head = limit // 4
    omitted = len(text) - limit
    return f"{text[:head]}\n[… {omitted} characters left out …]\n{text[head - limit :]}"
