"""Find private keys in blocks: PEM, OpenSSH, PGP and PuTTY, whole, torn, quoted or in a diff."""

from base64 import b64decode
from collections.abc import Iterator

from agent_relay.domain.text.patterns import compile_late
from agent_relay.redact.rules import SecretSpan, find_all

KIND = "private-key"
# Agents and pagers number the lines they show.
_NUMBER = compile_late(r"\s*\d{1,6}(?:[→:|]|\s)\s*")
_LONGEST = 40_000
_BEGIN = compile_late(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ )*(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY) ?-{4,5}")
_END = compile_late(r"-{4,5} ?END (?:[A-Z0-9]+ )*(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY) ?-{4,5}")
_ESCAPE = compile_late(r"(?<!\\)\\++[nrt]")
_RUNS = compile_late(r"[A-Za-z0-9+/=]+")
_FIELD = compile_late(r"[A-Z][A-Za-z-]+: .{1,200}")
# What stands around the lines of a key: marks of diffs, quotations and comments, quotes, operators.
_AROUND = " \t\r\\\"'`,;:.#*>|()[]{}-"
_ENCODED_BEGIN = "LS0tLS1CRUdJTi"
_ENCODED_HEAD = 80
_PUTTY = compile_late(r"Private-Lines: *\d+")
_ENOUGH = 40
_LONG_WORD = 16  # no line of prose is made of words that long


def find_blocks(text: str) -> Iterator[SecretSpan]:
    """Yield every private key. A header without a key below it is code about keys, and is left."""
    if "PRIVATE KEY" in text or "SECRET KEY" in text:
        yield from _find_marked(text)
    yield from _find_encoded(text)
    marks = [match for at in find_all(text, "Private-Lines:") if (match := _PUTTY.match(text, at))]
    for match, limit in zip(marks, [*(after.start() for after in marks[1:]), len(text)], strict=False):
        # No further than the next one, so that a thousand cost no more than one.
        end = _walk(text, match.end(), limit)
        if _holds_key(text[match.end() : end]):
            yield SecretSpan(match.end(), end, KIND, 0)


def _find_encoded(text: str) -> Iterator[SecretSpan]:
    """Yield keys whose whole block is base64 once more, as settings and Kubernetes carry them."""
    end = 0
    for at in find_all(text, _ENCODED_BEGIN):
        if at < end or not _is_encoded_key(text[at : at + _ENCODED_HEAD]):
            continue
        run = _RUNS.match(text, at)
        end = max(run.end() if run else at, _walk(text, at, len(text)))
        yield SecretSpan(at, end, KIND, 0)


def _is_encoded_key(head: str) -> bool:
    """Return whether the block that begins with `head` in base64 is a secret key: most are not."""
    run = _RUNS.match(head)
    begun = b64decode(head[: len(run[0].rstrip("=")) // 4 * 4]) if run else b""
    return _BEGIN.match(begun.decode("latin-1")) is not None


def _find_marked(text: str) -> Iterator[SecretSpan]:
    """Yield keys at their marks; each is searched only up to the next mark, which keeps this linear."""
    marks = sorted([*_BEGIN.finditer(text), *_END.finditer(text)], key=lambda mark: mark.start())
    edges = [0, *(mark.start() for mark in marks[1:]), len(text)]
    covered = 0
    for index, mark in enumerate(marks):
        after = edges[index + 1]
        if "BEGIN" in mark[0]:
            follower = marks[index + 1] if index + 1 < len(marks) else None
            covered = _walk(text, mark.end(), after)
            if not _holds_key(text[mark.end() : covered]):
                continue
            if follower and "END" in follower[0] and not text[covered:after].strip(_AROUND + "+n\n"):
                covered = follower.end()
            yield SecretSpan(mark.start(), covered, KIND, 0)
        elif mark.start() >= covered:
            before = marks[index - 1].end() if index else 0
            start = _walk_back(text, mark.start(), max(before, covered))
            if _holds_key(text[start : mark.start()]):
                yield SecretSpan(start, mark.end(), KIND, 0)


def _holds_key(body: str) -> bool:
    """Return whether enough of `body` is base64 to be a key."""
    runs = [run for run in _RUNS.findall(_ESCAPE.sub(" ", body)) if len(run) >= _LONG_WORD]
    return sum(map(len, runs)) >= _ENOUGH and any(map(str.isdigit, "".join(runs)))


def _is_key_line(line: str) -> bool:
    """Return whether `line` is a line of a key: base64 and decoration, a header field, or decoration."""
    number = _NUMBER.match(line)
    line = line[number.end() :] if number else line
    words = [word.strip(_AROUND) for word in _ESCAPE.sub(" ", line).split()]
    words = [word.removeprefix("+") for word in words if word not in ("", "+")]
    if all(_RUNS.fullmatch(word) for word in words):
        return all(len(word) >= _LONG_WORD for word in words[:-1])
    return _FIELD.fullmatch(line.strip(_AROUND + "+")) is not None


def _walk(text: str, at: int, limit: int) -> int:
    """Return where the lines of a key that begin at `at` end; at most `limit`."""
    end = at
    limit = min(limit, at + _LONGEST)
    while end < limit:
        stop = text.find("\n", end + 1, limit)
        stop = stop if stop >= 0 else limit
        line = text[end:stop]
        if not _is_key_line(line):
            break
        end = stop
    return at + len(text[at:end].rstrip())


def _walk_back(text: str, at: int, limit: int) -> int:
    """Return where the lines of a key that end at `at` begin; at least `limit`."""
    limit = max(limit, at - _LONGEST)
    start = max(text.rfind("\n", limit, at) + 1, limit)
    if not _is_key_line(text[start:at]):
        return at
    while start > limit:
        above = max(text.rfind("\n", limit, start - 1) + 1, limit)
        line = text[above : start - 1]
        if not line.strip() or not _is_key_line(line):
            break
        start = above
    return start
