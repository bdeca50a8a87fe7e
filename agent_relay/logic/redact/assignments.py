"""Secrets recognised by the name before them: assignments, settings, flags, queries, `.env` lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_relay.logic.patterns import compile_late
from agent_relay.logic.redact.rule import Span
from agent_relay.logic.redact.values import is_code, is_pattern, is_stand_in, is_wordy, looks_secret

_PASSWORDS = (
    r"passw(?:or)?d|passphrase|passcode|pwd|kennwort|contrase|(?:^|[_-])pass(?![a-z])|(?:^|[_-])pw(?![a-z])"
)
_IS_PASSWORD = compile_late(_PASSWORDS, re.IGNORECASE)
_EDGE = r"(?![a-z])"
_KEYWORD = compile_late(
    r"password|passwd|passphrase|passcode|pwd|kennwort|contrase|secret|token|credential|webhook"
    rf"|api[_-]?key|apikey|(?:access|private|auth|account|service|encrypt|encryption|signing|master|shared"
    rf"|storage|license|session|client)[_-]?key{_EDGE}|[_-]key{_EDGE}|[_-]pass{_EDGE}|pass=|[_-]pw{_EDGE}"
    rf"|[_-]auth{_EDGE}|[_-]dsn{_EDGE}|[_-]salt{_EDGE}|_pat=|sig=|signature="
)
_NAME_MORE = compile_late(r"[\w-]{0,40}")
_JOIN = compile_late(
    r"(?P<close>\\*[\"'`]?\]?)(?P<before>[ \t]{0,20})"
    r"(?P<sep>=>|:=|={1,3}|:{1,2}|,(?=[ \t]*\\*[\"'])|(?:is|was)(?=[ \t])|(?=[ \t]))"
    r"(?P<after>\s{0,40}(?:[-+>][ \t]{0,20})?)(?P<kind>[@fbru]{0,2}(?=\\*[\"'`])|)(?P<quote>\\*[\"'`]|)"
)
_NAME_BEFORE = compile_late(r"[\w.$-]{0,60}\Z")
_UNQUOTED = compile_late(r"[^\s\"'`,;&<>]{1,1000}")
_FOLD = compile_late(r"\s+(?:[-+>|][ \t]*)?")
_LONGEST_VALUE = 1000
# A name with one of these parts says something about a secret without being one.
_ABOUT = compile_late(
    r"(?:^|[_-])(?:public|pub|primary|foreign|unique|sort|hash|partition|index|cache|dict|max|min|num|count|total"
    r"|next|last|prev|current|keyboard|hot|short|tokeniz\w*|tokenis\w*|by|comment|price|group|lookup|websocket)[_-]"
    r"|[_-](?:path|file|filename|dir|names?|urls?|uri|endpoint|type|len|length|size|limit|count|ttl|expir\w*"
    r"|header|prefix|suffix|algorithm|alg|version|index|format|fields?|label|param|arg|env|var|regex|pattern"
    r"|class|usage|budget|policy|hint|prompt|errors?|message|mode|store|manager|provider|list|map|ref|pat|re)\Z"
    r"|(?:name|path|file|url|type|regex|pattern|tokens)\Z|token(?:iz|is)",
    re.IGNORECASE,
)
_SETTER = compile_late(r"[(\[][ \t]*[bfru]?\\*[\"']\Z")
_COMMAND = compile_late(r"(?:^|[ \t;])(?:set|export|ENV|machine .*|login .*)[ \t]+(?:-\w+[ \t]+)?\Z")
_LEAST_QUOTED = 8
_LEAST_PASSWORD = 4
_LEAST_SETTING = 12
_LEAST_IN_CODE = 20


@dataclass(frozen=True, slots=True)
class _Found:
    """One assignment: its name, how it joins, and the value with where it starts."""

    name: str
    sep: str
    spaced: bool
    quoted: bool
    raw: bool
    flag: bool
    value: str
    start: int


def find_assignments(text: str, lower: str, *, rank: int) -> Iterator[Span]:
    """The values behind telling names that are no stand-ins and no code. `lower` is `text` in lower case."""
    done = 0
    for hit in _KEYWORD.finditer(lower):
        if hit.end() < done:
            continue
        found = _parse(text, hit.start(), hit.end())
        if found and _is_secret(found):
            done = found.start + len(found.value)
            yield Span(found.start, done, _kind(found.name), rank)


def _parse(text: str, begin: int, end: int) -> _Found | None:
    if text[end - 1] == "=":
        end -= 1
    else:
        more = _NAME_MORE.match(text, end)
        end = more.end() if more else end
    join = _JOIN.match(text, end)
    if join is None:
        return None
    quote = join["quote"]
    value = _read_quoted(text, join.end(), quote) if quote else _read_unquoted(text, join.end())
    if not value or ("\n" in join["after"] and not quote):
        return None
    before = _NAME_BEFORE.search(text, max(0, begin - 60), begin)
    start = before.start() if before else begin
    if join["sep"] in ("", ",") and not _is_joined(text, start, join, len(value)):
        return None
    return _Found(
        name=text[start:end].lstrip("-$."),
        sep=join["sep"],
        spaced=bool(join["before"] or join["after"]),
        quoted=bool(quote),
        raw="r" in join["kind"],
        flag=text.startswith("--", start),
        value=value,
        start=join.end(),
    )


def _is_joined(text: str, start: int, join: re.Match[str], length: int) -> bool:
    """Whether a blank or comma means "has the value" here: a flag, or a setter's two arguments."""
    if join["sep"] == ",":
        closing = text[join.end() + length :][:6].lstrip("\\\"'` ")
        return closing.startswith((")", "]")) and _SETTER.search(text, max(0, start - 8), start) is not None
    if "\n" in join["after"]:
        return False
    line = text[max(text.rfind("\n", 0, start) + 1, start - 300) : start]
    return text.startswith("--", start) or _COMMAND.search(line) is not None


def _read_quoted(text: str, at: int, quote: str) -> str:
    """Up to the closing quote of the same kind, over at most one line end with no blanks but around it."""
    stop = text.find(quote, at, at + _LONGEST_VALUE)
    if stop < 0:
        return _read_unquoted(text, at)
    value = text[at:stop]
    if "\n" not in value:
        return value
    first, _, rest = value.partition("\n")
    whole = (
        len(first) >= _LEAST_PASSWORD and first.isascii() and not re.search(r"[\s(){}]", first.rstrip("\r"))
    )
    return value if whole and not re.search(r"[\n(){}]|\w[ \t]", rest) else ""


def _read_unquoted(text: str, at: int) -> str:
    match = _UNQUOTED.match(text, at)
    if match is None:
        return ""
    value = re.split(r"\\+[nrt]", match[0], maxsplit=1)[0]
    return value if value.startswith(("(", "[", "{")) else value.rstrip(").]}:!?\\")


def _kind(name: str) -> str:
    if _IS_PASSWORD.search(name):
        return "password"
    lowered = name.lower()
    return "aws-secret" if "aws" in lowered else "token" if "token" in lowered else "secret"


def _is_secret(found: _Found) -> bool:
    value = _FOLD.sub("", found.value) if "\n" in found.value else found.value
    if _ABOUT.search(found.name) or is_stand_in(value):
        return False
    password = _IS_PASSWORD.search(found.name) is not None
    if found.quoted:
        return not found.raw and _is_quoted_secret(value, password=password)
    if is_code(value):
        return looks_secret(value, least=_LEAST_IN_CODE) and not re.search(r"[()\[\]{}]", value)
    if found.sep == "" or (found.sep in ("is", "was")):
        return looks_secret(value, least=6 if found.flag and password else 8) and not value.isalpha()
    if found.sep == "=" and not found.spaced and (found.name.isupper() or found.flag):
        return _is_setting(value, password=password)
    return looks_secret(value, least=_LEAST_QUOTED)


def _is_quoted_secret(value: str, *, password: bool) -> bool:
    if looks_secret(value, least=_LEAST_QUOTED):
        return True
    strong = password and len(value) >= _LEAST_QUOTED and not value.isalnum() and any(map(str.isdigit, value))
    return strong and not is_pattern(value) and not is_wordy(value) and " " not in value


def _is_setting(value: str, *, password: bool) -> bool:
    """For `NAME=value` as shells and `.env` files have it, where a value needs no quotes."""
    if password:
        return len(value) >= _LEAST_PASSWORD and not value.isupper()
    numbered = len(value) >= _LEAST_SETTING and any(map(str.isdigit, value)) and "/" not in value
    return looks_secret(value, least=_LEAST_QUOTED) or (numbered and not is_wordy(value))
