"""Find secrets by the name before them, and judge whether a value is a secret or ordinary code."""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from agent_relay.domain.text.plain import compile_late
from agent_relay.redact.rules import SecretSpan

_TEMPLATE = compile_late(
    r"\$[({]|\{\{|\{[\w.:!]*\}|%[({]|%[sdrv]\b|%[A-Z_]+%|<[^<>]*>|#\{|\.\.\.|…|\*{3}|\[redacted",
    re.ASCII,
)
_VARIABLE = compile_late(r"\$+([A-Za-z_]\w*+)?", re.ASCII)
_WORD_IN_PLACE = (
    r"your|my|the|some|any|a|an|insert|enter|change|replace|put|add|dummy|fake|sample|example|placeholder"
    r"|redacted|hidden|masked|todo|xxx++|foo|bar|baz|test|testing|none|null|nil|true|false|undefined|empty"
    r"|default|invalid|wrong|bad|good|old|new|secret|secrets|password|passwd|passphrase|pass|pwd|token|key"
    r"|value|string|here|me|this|it|user|username|api|access|auth|bearer|basic|admin|root|guest|demo"
)
_STAND_IN = compile_late(rf"(?:{_WORD_IN_PLACE})+", re.IGNORECASE)
_ESCAPED_BLANK = compile_late(r"(?<!\\)\\++[nrt]")
_NO_LETTERS = bytes(sign for sign in range(128) if not chr(sign).isalpha())
_TYPE = compile_late(
    r"(?:string|str|boolean|bool|bytes|integer|int|number|float|object|array|any)\??", re.IGNORECASE
)
_POSSESSIVE = compile_late(
    r"(?:my|your|the|some|example)[-_ ]?(?:\w{1,30}[-_ ])?(?:pass\w*|secret|token|key)", re.IGNORECASE
)
_PART = compile_late(r"[A-Za-z]*\d{0,5}|\d{1,4}[a-z]{1,3}")
_SPLIT = compile_late(r"[-_.:/@#, ]+|(?<=[a-z])(?=[A-Z])")
_CODE = compile_late(r"[()\[\]{}<>|\\]|::|->|=>")
_PATTERN = compile_late(r"\(\?|\[\^|\[\w-\w|\\[wsdbWSDBAZ.]|\.\*|\|.*\||\)[+*?{]|\][+*?{]")
_ATTRIBUTE = compile_late(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PATH = compile_late(r"(?:\.{0,2}/|~/|[A-Za-z]:\\|file:|https?:|arn:|urn:)[^@]*\Z")
_NUMBER = compile_late(r"[-+$€#]?[\d_,.:x]+(?:e\d+)?[a-zA-Z%]{0,3}")
_VERSION = compile_late(r"v?\d+(?:[.-]\w+)*")
_LONG = 20
_ROW = 2
_LEAST_WORDS, _MOST_WORDS = 4, 12
_WORDS_ALONE = compile_late(r"[a-z]{3,16}(?: [a-z]{3,16})+")
# Hardly a sentence does without one of them, and word lists for passphrases hold next to none.
_SENTENCE = compile_late(
    r"\b(?:the|and|for|not|are|was|has|have|had|must|may|can|will|shall|should|would|could|does|did|you|your|our"
    r"|their|its|this|that|these|those|with|from|into|onto|over|than|then|them|they|she|him|her|his|who|what|when"
    r"|where|which|while|how|why|all|any|some|one|two|per|via|use|used|using|set|get|see|let|but|also|only|least"
    r"|most|more|less|please|enter|type|choose|changed?|repeat|confirm|forgot|reset|invalid|wrong|missing|required"
    r"|optional|default|empty|passw(?:or)?d|passphrase|secret|token|key|user|username|value|string|characters?"
    r"|words?|letters|digits|long|short|new|old|same|match|field|login)\b"
)


def is_stand_in(value: str) -> bool:
    """Return whether `value` is a placeholder: template, type, repeated character, `your-key-here`."""
    if _TEMPLATE.search(value) or _POSSESSIVE.search(value) or _TYPE.fullmatch(value):
        return True
    if "$" in value and _has_variables(value):
        return True
    plain = _ESCAPED_BLANK.sub("", value) if "\\" in value else value
    bare = plain.encode("ascii", "ignore").translate(None, _NO_LETTERS).decode()
    return len(set(value)) <= _ROW or (bare != "" and _STAND_IN.fullmatch(bare) is not None)


def _has_variables(value: str) -> bool:
    """Return whether the dollar signs in `value` begin variable names: passwords may have such signs, too."""
    if value.startswith("$"):
        return True
    names = [found[1] or "" for found in _VARIABLE.finditer(value) if found[1] or found[0] == "$$"]
    return bool(names) and all(name.isupper() or not any(map(str.isdigit, name)) for name in names)


def is_phrase(value: str) -> bool:
    """Return whether `value` is a passphrase of several words: words drawn at random make no sentence."""
    return (
        _WORDS_ALONE.fullmatch(value) is not None
        and _LEAST_WORDS <= value.count(" ") + 1 <= _MOST_WORDS
        and _SENTENCE.search(value) is None
    )


def is_wordy(value: str) -> bool:
    """Return whether `value` is made of words, each perhaps numbered, as names are: `auth-token-2`."""
    return all(_PART.fullmatch(part) for part in _SPLIT.split(value)) and not _is_scrambled(value)


def is_code(value: str) -> bool:
    """Return whether an unquoted `value` is an expression: a call, index, generic type or attribute."""
    return _CODE.search(value) is not None or _ATTRIBUTE.fullmatch(value) is not None


def is_pattern(value: str) -> bool:
    """Return whether a quoted `value` is a regular expression or a glob."""
    return _PATTERN.search(value) is not None


def looks_secret(value: str, *, least: int) -> bool:
    """Return whether `value`, of at least `least` characters, looks generated rather than written."""
    if len(value) < least or any(map(str.isspace, value)) or not value.isprintable():
        return False
    if is_stand_in(value) or is_wordy(value) or is_pattern(value):
        return False
    if _PATH.match(value) and not _is_scrambled(value):
        return False
    if _NUMBER.fullmatch(value) or _VERSION.fullmatch(value):
        return len(value) >= _LONG
    return any(map(str.isalpha, value)) and any(not c.isalpha() and c not in "_-./:," for c in value)


def _is_scrambled(value: str) -> bool:
    """Return whether case, or letter and digit, change as often as only in generated values."""
    if len(value) < _LONG:
        return False
    kinds = [0 if c.isdigit() else 1 if c.islower() else 2 for c in value if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds)) >= len(kinds) * 0.35


_PASSWORDS = (
    r"passw(?:or)?d|passwort|passphrase|passcode|pwd|kennwort|contrase|mot[_-]?de[_-]?passe"
    r"|(?:^|[_-])(?:pass|pw|mdp|senha|clave)(?![a-z])"
)
_IS_PASSWORD = compile_late(_PASSWORDS, re.IGNORECASE)
_EDGE = r"(?![a-z])"
_KEYWORD = compile_late(
    r"password|passwort|passwd|passphrase|passcode|pwd|kennwort|contrase|mot[_-]?de[_-]?passe|secret|token"
    rf"|(?<![a-z])(?:mdp|senha|clave){_EDGE}|credential|webhook|api[_-]?key|apikey"
    rf"|(?:access|private|auth|account|service|encrypt|encryption|signing|master|shared|app|subscription"
    rf"|instrumentation|storage|license|session|client)[_-]?key{_EDGE}|[_-]key{_EDGE}|[_-]pass{_EDGE}|pass=|[_-]pw{_EDGE}"
    rf"|[_-]auth{_EDGE}|[_-]dsn{_EDGE}|[_-]salt{_EDGE}|_pat=|sig=|signature="
)
WORDS = (
    "password",
    "pwd=",
    "pass=",
    "secret",
    "token",
    "api_key",
    "_pat=",
    "sig=",
    "machine login ",
    "passphrase: ",
)
"""Names that tell, as a text might hold many of them."""
_NAME_MORE = compile_late(r"[\w-]{0,40}")
_JOIN = compile_late(
    r"(?P<close>\\*[\"'`]?\]?)(?P<before>[ \t]{0,20})"
    r"(?P<sep>=>|:=|={1,3}|:{1,2}|,(?=[ \t]*\\*[\"'])|(?:is|was)(?=[ \t])|(?=[ \t]))"
    r"(?P<after>\s{0,40}(?:[-+>][ \t]{0,20})?)(?P<kind>[@fbru]{0,2}(?=\\*[\"'`])|)(?P<quote>\\*[\"'`]|)"
)
# Asked of what stands before a name, backwards: a search that must end there would begin at every character.
_NAME_BACKWARDS = compile_late(r"[\w.$-]*+")
_LONGEST_BEFORE = 60
# A character that separates commands or parameters may also be part of a value.
_UNQUOTED = compile_late(r"(?:[^\s\"'`,;&<>]|&(?![&\s\"'`]|\Z|#?\w{0,60}[=;])){1,1000}")
_ESCAPE = compile_late(r"(?<!\\)\\++[nrt]")
_FOLD = compile_late(r"\s+(?:[-+>|][ \t]*)?")
_BLANK_OR_CODE = compile_late(r"[\s(){}]")
_MORE_LINES = compile_late(r"[\n(){}]|\w[ \t]")
_BRACKET = compile_late(r"[()\[\]{}]")
_IS_PASSPHRASE = compile_late(r"passphrase|pass_phrase", re.IGNORECASE)
_PHRASE = compile_late(r"[a-z]{3,16}(?: [a-z]{3,16}){3,11}(?=[ \t]{0,8}(?:[#\r\n]|\Z))")
_LONGEST_VALUE = 1000
_MOST_TRIES = 16
# Judging takes as long as the value: a long one without blanks counts as several tries.
_PER_TRY = 200
# A name with one of these parts says something about a secret without being one.
_ABOUT = compile_late(
    r"(?:^|[_-])(?:public|pub|primary|foreign|unique|sort|hash|partition|index|cache|dict|max|min|num|count|total"
    r"|next|last|prev|current|keyboard|hot|short|tokeniz\w*|tokenis\w*|by|comment|price|group|lookup|websocket)[_-]"
    r"|[_-](?:path|file|filename|dir|names?|urls?|uri|endpoint|type|len|length|size|limit|count|ttl|expir\w*"
    r"|header|prefix|suffix|algorithm|alg|version|index|format|fields?|label|param|arg|env|var|regex|pattern"
    r"|datei|pfad|feld|spalte|archivo|campo|columna|arquivo|fichier|champ|class|usage|budget|policy|hint|prompt|errors?|message|mode|store|manager|provider|list|map|ref|pat|re)\Z"
    r"|(?:name|path|file|url|type|regex|pattern|tokens)\Z|token(?:iz|is)",
    re.IGNORECASE,
)
_SETTER = compile_late(r"[(\[][ \t]*[bfru]?\\*[\"']\Z")
_COMMANDS = frozenset({"set", "setx", "export", "ENV"})
_OPTION = compile_late(r"-\w++")
_LOGIN = compile_late(r"(?:^|[ \t;])(?:machine|login) ")
_LOGIN_WORDS = ("machine ", "login ")
# The name of a type of keys, as annotations and modules about cryptography have them.
_KEY_TYPE = compile_late(r"[A-Za-z_][\w.]*(?:Private|Public|Secret)Keys?(?:Types?)?", re.ASCII)
_LEAST_QUOTED = 8
_LEAST_PASSWORD = 4
_LEAST_CHOSEN = 6
_LEAST_SETTING = 12
_LEAST_IN_CODE = 20
_LEAST_SIGNED, _LEAST_SIGNS = 24, 3
_SIGNS = frozenset("!@#$%^&*+")


class _Found(msgspec.Struct, frozen=True):
    """One assignment: its name, how it is joined to its value, and the value with its start."""

    name: str
    sep: str
    spaced: bool
    quoted: bool
    raw: bool
    flag: bool
    value: str
    start: int


def find_assignments(text: str, lower: str, *, rank: int) -> Iterator[SecretSpan]:
    """Yield values after telling names, without placeholders and code. `lower` is `text` in lower case."""
    done = value_end = tries = 0
    for hit in _KEYWORD.finditer(lower):
        if hit.end() < done:
            continue
        found = _parse(text, hit.start(), hit.end())
        if found is None:
            continue
        end = found.start + len(found.value)
        if _is_secret(found):
            done, value_end = end, 0
            yield SecretSpan(found.start, done, _kind(found.name), rank)
            continue
        # A value may hold a thousand telling names, whose values would each be judged to the same end.
        if hit.start() >= value_end:
            value_end, tries = end, 0
        tries += 1 if found.quoted else 1 + len(found.value) // _PER_TRY
        if tries >= _MOST_TRIES:
            done = value_end


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
    phrase = _PHRASE.match(text, join.end()) if not quote and join["sep"] in (":", "=") else None
    if phrase and _IS_PASSPHRASE.search(text, begin, end) and is_phrase(phrase[0]):
        value = phrase[0]
    if not value or ("\n" in join["after"] and not quote):
        return None
    before = _NAME_BACKWARDS.match(text[max(0, begin - _LONGEST_BEFORE) : begin][::-1])
    start = begin - len(before[0]) if before else begin
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
    """Return whether a blank or comma means "has the value" here: a flag, or a setter's two arguments."""
    if join["sep"] == ",":
        closing = text[join.end() + length : join.end() + length + 6].lstrip("\\\"'` ")
        return closing.startswith((")", "]")) and _SETTER.search(text, max(0, start - 8), start) is not None
    if "\n" in join["after"]:
        return False
    line = text[max(start - 300, 0) : start].rpartition("\n")[2]
    return text.startswith("--", start) or (
        line[-1:] in (" ", "\t") and (_is_command(line) or _is_login(line))
    )


def _is_command(line: str) -> bool:
    """Return whether `line` ends in a command that sets something, perhaps with an option and blanks."""
    words = line.rsplit(None, 2)[-2:]
    if len(words) > 1 and _OPTION.fullmatch(words[-1]):
        words.pop()
    return bool(words) and words[-1].rpartition(";")[2] in _COMMANDS


def _is_login(line: str) -> bool:
    """Return whether `line` contains a word that begins a login, but not at its end."""
    if not any(word in line for word in _LOGIN_WORDS):
        return False
    login = _LOGIN.search(line)
    return login is not None and login.end() < len(line)


def _read_quoted(text: str, at: int, quote: str) -> str:
    """Read up to the closing quote of the same kind, over at most one line end with blanks only around it."""
    stop = text.find(quote, at, at + _LONGEST_VALUE)
    if stop < 0:
        return _read_unquoted(text, at)
    value = text[at:stop]
    if "\n" not in value:
        return value
    first, _, rest = value.partition("\n")
    whole = (
        len(first) >= _LEAST_PASSWORD and first.isascii() and not _BLANK_OR_CODE.search(first.rstrip("\r"))
    )
    return value if whole and not _MORE_LINES.search(rest) else ""


def _read_unquoted(text: str, at: int) -> str:
    match = _UNQUOTED.match(text, at)
    if match is None:
        return ""
    value = _ESCAPE.split(match[0], maxsplit=1)[0]
    return value if value.startswith(("(", "[", "{")) else value.rstrip(").]}:!?\\")


def _kind(name: str) -> str:
    if _IS_PASSWORD.search(name):
        return "password"
    lowered = name.lower()
    return "aws-secret" if "aws" in lowered else "token" if "token" in lowered else "secret"


def _is_secret(found: _Found) -> bool:
    value = _FOLD.sub("", found.value) if "\n" in found.value else found.value
    if _ABOUT.search(found.name) or is_stand_in(value) or _KEY_TYPE.fullmatch(value):
        return False
    password = _IS_PASSWORD.search(found.name) is not None
    if found.quoted or " " in value:
        is_setting = password and found.sep == "=" and found.name.isupper() and _is_numbered(value)
        return not found.raw and (is_setting or _is_quoted_secret(value, password=password))
    if is_code(value):
        is_plain = not _BRACKET.search(value) or _is_signed(value)
        return looks_secret(value, least=_LEAST_IN_CODE) and is_plain
    if found.sep in ("", "is", "was"):
        return _is_told(found, value, password=password)
    if found.sep == "=" and not found.spaced and (found.name.isupper() or found.flag):
        return _is_setting(value, password=password)
    return looks_secret(value, least=_LEAST_QUOTED)


def _is_told(found: _Found, value: str, *, password: bool) -> bool:
    """Return whether a value after a flag, a command's name or a verb is a secret."""
    is_flag = found.flag and password
    if is_flag and found.sep == "" and _is_numbered(value):
        return True
    return looks_secret(value, least=6 if is_flag else 8) and not value.isalpha()


def _is_signed(value: str) -> bool:
    """Return whether `value` has as many special characters as the keys that frameworks generate."""
    return len(value) >= _LEAST_SIGNED and len(_SIGNS.intersection(value)) >= _LEAST_SIGNS


def _is_numbered(value: str) -> bool:
    """Return whether `value` is a word with a number, like a password that people choose."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_mixed and len(value) >= _LEAST_CHOSEN and not any(sign in "./:=" for sign in value)


def _is_quoted_secret(value: str, *, password: bool) -> bool:
    if looks_secret(value, least=_LEAST_QUOTED) or (password and is_phrase(value)):
        return True
    strong = password and len(value) >= _LEAST_QUOTED and not value.isalnum() and any(map(str.isdigit, value))
    return strong and not is_pattern(value) and not is_wordy(value) and " " not in value


def _is_setting(value: str, *, password: bool) -> bool:
    """Return whether `NAME=value` of a shell or `.env` file, where a value needs no quotes, is a secret."""
    if password:
        return len(value) >= _LEAST_PASSWORD and not value.isupper()
    numbered = len(value) >= _LEAST_SETTING and any(map(str.isdigit, value)) and "/" not in value
    return looks_secret(value, least=_LEAST_QUOTED) or (numbered and not is_wordy(value))
