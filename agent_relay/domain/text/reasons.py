"""Make a program's error message readable: without log prefixes, the JSON around it, or a stack."""

import json

from agent_relay.domain.text.patterns import compile_late
from agent_relay.domain.text.plain import clean_text

_LONGEST = 300
_DEEPEST = 4
"""So many messages stand within one another where a provider's answer is quoted in a program's own."""
_FEWEST_WORDS = 3
"""With fewer, a class before them says most of it: `KeyError: 'x'`."""

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
