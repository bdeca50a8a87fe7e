"""Make text readable and safe: remove escape sequences, count, measure columns, quote reasons."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import AnyStr, cast

_ASKED = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


def compile_late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for what `re.compile` returns, compiled when it is first used.

    For patterns in our own code only, where a test compiles them all: an invalid pattern from elsewhere
    must be refused when it is read, not when it is first needed. Once compiled it is as fast as any other.
    """
    late = _Late(pattern, flags)
    _WAITING.add(late)
    return cast("re.Pattern[AnyStr]", late)


def compile_all() -> None:
    """Compile every pattern of the modules loaded: for a process whose children will use them."""
    while _WAITING:
        next(iter(_WAITING)).prepare()


def read_pattern(value: object) -> re.Pattern[str] | re.Pattern[bytes] | None:
    """Return the pattern `value` is, compiled; `None` for anything else."""
    if isinstance(value, _Late):
        return value.compiled
    return value if isinstance(value, re.Pattern) else None


class _Late:
    """A pattern with empty slots until its first use; then they hold the compiled pattern's methods."""

    __slots__ = ("_flags", "_pattern", *_ASKED)

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    @property
    def compiled(self) -> re.Pattern[str] | re.Pattern[bytes]:
        """The compiled pattern."""
        return re.compile(self._pattern, self._flags)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # no pattern has such a thing, and who copies or shows us asks for some
            raise AttributeError(name)
        return getattr(self.prepare(), name)

    def prepare(self) -> re.Pattern[str] | re.Pattern[bytes]:
        """Compile the pattern, copy its methods into the slots, and return it."""
        _WAITING.discard(self)
        compiled = self.compiled
        for asked in _ASKED:
            setattr(self, asked, getattr(compiled, asked))
        return compiled


_WAITING: set[_Late] = set()


# Whole terminal sequences go first, so that no `[201~` or `[31m` is left behind as litter. An operating
# system command that is never closed ends with its line.
_SEQUENCE = compile_late(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]"
)
_BREAK = compile_late("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = compile_late(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# What reorders the text around it is written out: a reader should see that somebody tried.
_REORDERING = compile_late("[\u202a-\u202e\u2066-\u2069]")
_SURROGATE = compile_late("[\ud800-\udfff]")
_TAG = compile_late(r"<(?=\s*+(?:/\s*+)?handoff[-_]context)", re.IGNORECASE)
_SUSPECT = compile_late("[^\t\n -~\u00a0-\u00ac\u00ae-\u0600\u3000-\u9fff]")


def clean_text(text: str) -> str:
    r"""Return `text` without terminal sequences, control (but LF and TAB) or invisible characters.

    CR becomes LF; bidirectional overrides and undecodable bytes are written as `\uNNNN`. Idempotent.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _SEQUENCE.sub("", text)
    text = _UNSEEN.sub("", _BREAK.sub("\n", text))
    return _SURROGATE.sub(_escape, _REORDERING.sub(_escape, text))


def quote_text(text: str) -> str:
    """Return `text` cleaned, and unable to open or close the handoff document around it. Idempotent."""
    return _TAG.sub("\u2039", clean_text(text))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def replace_signs(text: str, replacements: Mapping[str, str]) -> str:
    """Return `text` with each sign replaced, one after the other."""
    for sign, replacement in replacements.items():
        text = text.replace(sign, replacement)
    return text


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


_LONGEST = 300
_DEEPEST = 4
"""Most nested messages that are opened: a program's own quotes a provider's answer."""
_FEWEST_WORDS = 3
"""Fewest words that say enough by themselves: with fewer, a class before them says most: `KeyError: 'x'`."""

_STAMP = compile_late(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:+Z-]*\]?\s+")
_LEVEL = compile_late(
    r"^(?:\[(?:ERROR|WARN|WARNING|FATAL|INFO|DEBUG)\]|(?:ERROR|WARN|WARNING|FATAL|INFO|DEBUG)\b):?\s*"
)
_MODULE = compile_late(r"^\w+(?:::\w+)+:\s+")
_CLASS = compile_late(r"^\w*(?:Error|Exception):\s+")
_FIELD = compile_late(r'(?:^|\s)([A-Za-z][\w.]*)=(?:"((?:[^"\\]|\\.)*)"?|(\S+))')
_OBJECT = compile_late(r'\[? ?\{ ?"')
_MESSAGE = compile_late(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)')
_CODE = compile_late(r'"(?:reason|status|code)"\s*:\s*"([A-Za-z_]+)"')
_FRAME = compile_late(r"^\s*+(?:at |[\s\[\]{}(),;.]*+$|Node\.js v)")


def find_reason(errors: str) -> str:
    """Return why a program failed, by what it wrote to its standard error; empty if that gives no reason.

    That is the last line which is no part of a stack, or the JSON document at its end.
    """
    lines = clean_text(errors).splitlines()
    begun = [number for number, line in enumerate(lines) if line.startswith("{")]
    document = " ".join(lines[begun[-1] :]) if begun else ""
    if document.rstrip().endswith("}") and _MESSAGE.search(document):
        return quote_reason(document)
    said = [line for line in lines if not _FRAME.match(line)]
    return quote_reason(said[-1]) if said else ""


def quote_reason(text: str) -> str:
    """Return `text`, an agent's words or a line of its log, in one line without log and JSON syntax."""
    line = " ".join(clean_text(text).split())
    for prefix in (_STAMP, _LEVEL, _MODULE):
        line = prefix.sub("", line, count=1)
    line = _drop_class(_quote_message(_choose_field(line)))
    # What JSON had escaped was not there to be cleaned before.
    line = " ".join(clean_text(line).split())
    if line.startswith("[") and line.endswith("]") and "[" not in line[1:]:
        line = line[1:-1]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _choose_field(line: str) -> str:
    """Return the value that says why, of a log line of `name=value`; any other line as it is."""
    fields = {name: quoted or bare for name, quoted, bare in _FIELD.findall(line)}
    if len(fields) < 2 or not _FIELD.match(line):  # noqa: PLR2004 - one of them may stand in a sentence
        return line
    errors = [value for name, value in fields.items() if name.rpartition(".")[2] in {"error", "err"}]
    chosen = [*errors[-1:], *(fields[name] for name in ("message", "msg") if name in fields)]
    return _unescape(chosen[0]) if chosen else line


def _quote_message(line: str) -> str:
    """Return the text before a JSON document, and the innermost message in that; else `line`."""
    found = _OBJECT.search(line)
    if found is None:
        return line
    before, document = line[: found.start()].rstrip(" :-"), line[found.start() :]
    message = ""
    for _ in range(_DEEPEST):
        inner = _MESSAGE.search(document)
        if inner is None:
            break
        message = document = " ".join(_unescape(inner[1]).split())
    code = _CODE.search(document)
    if not message and code is not None:
        message = code[1].replace("_", " ").lower()
    return ": ".join(part for part in (before, message) if part) or line


def _unescape(text: str) -> str:
    """Return the text of a JSON string's inside, which may be cut anywhere."""
    try:
        value = json.loads(f'"{text}"')
    except ValueError:
        value = text.replace('\\"', '"').replace("\\n", " ")
    return str(value)


def _drop_class(line: str) -> str:
    rest = _CLASS.sub("", line, count=1)
    return rest if len(rest.split()) >= _FEWEST_WORDS else line
