"""Collect the values that are secret wherever they occur, and those that the user's allow-list spares."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from agent_relay.domain.text.plain import compile_late
from agent_relay.redact._named_values import is_stand_in, looks_secret
from agent_relay.redact.rules import SecretSpan

KIND = "known-secret"
LEAST = 8
# Passwords that are also words of every other line of code. Behind a telling name they still go.
COMMON = frozenset(
    {
        *("password", "postgres", "postgresql", "changeme", "rabbitmq", "mongodb", "localhost", "username"),
        *("administrator", "development", "production", "testtest", "testing", "disabled", "undefined"),
        *("elasticsearch", "sqlserver", "example.com", "filesystem", "database", "anonymous", "secret123"),
        *("required", "optional", "default", "password123", "12345678", "00000000", "11111111"),
    }
)


_NAME = compile_late(
    r"(?:^|[_.-])(?:(?:API|ACCESS|PRIVATE|SECRET|AUTH|ENCRYPTION|SIGNING|MASTER|ACCOUNT|SERVICE|[A-Z0-9]*)_?KEYS?"
    r"|TOKENS?|SECRETS?|PASS|PASSW(?:OR)?D|PASSPHRASE|PWD|PW|CREDENTIALS?|CREDS|AUTH|DSN|SALT|PAT|WEBHOOK"
    r"|COOKIE|SIGNATURE|CONNECTION_?STRING|[A-Z]+(?:PASSWORD|PASSWD|SECRET|TOKEN|APIKEY|PWD))(?=$|[_.-])",
    re.IGNORECASE,
)
_NOT_SECRET = compile_late(
    r"(?:^|_)(?:PUBLIC|PUB|GPG|SSH_AUTH|KEYBOARD|MAX|MIN|OLD|TOKENIZERS)(?:_|$)|^(?:PWD|OLDPWD|KEY|KEYS)$"
    r"|_(?:PATH|FILE|DIR|NAME|ID|TYPE|ALGORITHM|LENGTH|SIZE|COUNT|TTL|EXPIRY|HEADER|PREFIX|SOCK|PARALLELISM)$",
    re.IGNORECASE,
)
_LINE = compile_late(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][\w.-]*)\s*[=:]\s*(?P<value>.*)")
_LOGIN = compile_late(r"://[^/\s:@]*:(?P<password>[^/\s@]+)@")
_PLACE = compile_late(r"(?:/|~/|\.{1,2}/|https?://|[A-Za-z]:\\)[^@]*\Z")
_COMMENT = compile_late(r"(?<!\s)\s++#")
_ENCODED = compile_late(rb"%([0-9A-Fa-f]{2})")
_ASCII = 128
_LONG_LINE = 20


def parse_settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of a `.env` file: `export`, quotes, comments, values of several lines."""
    lines = iter(text.splitlines())
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = match["value"].strip()
        if value[:1] in ("'", '"', "`") and value:
            mark, value = value[0], value[1:]
            parts = [value]
            while mark not in parts[-1]:
                following = next(lines, None)
                if following is None:
                    break
                parts.append(following)
            value = "\n".join(parts).partition(mark)[0]
        else:
            value = _COMMENT.split(value, maxsplit=1)[0]
        yield match["name"], value


def collect_known(settings: Iterable[tuple[str, str]], *, from_file: bool) -> frozenset[str]:
    """Return the values among `settings` that must be removed wherever they occur.

    A telling name is enough; in a file, so is a value that looks generated. Of addresses only the logins
    inside count. Paths, plain addresses and words such as `postgres` are left: code is full of them.
    """
    found: set[str] = set()
    for name, value in settings:
        for login in _LOGIN.finditer(value):
            found |= {login["password"], _decode(login["password"])}
        named = _NAME.search(name) is not None and _NOT_SECRET.search(name) is None
        if not (named or (from_file and looks_secret(value, least=16))):
            continue
        if _PLACE.match(value) and not looks_secret(value, least=_LONG_LINE):
            continue
        lines = [line.strip() for line in value.splitlines()]
        found |= {value.strip()} if len(lines) <= 1 else {line for line in lines if len(line) >= _LONG_LINE}
    return frozenset(value for value in found if _is_worth(value))


def _encode(value: str, *, safe: bytes) -> str:
    """Return `value` as URLs carry it."""
    data = value.encode("utf-8", "surrogateescape")
    return "".join(chr(b) if (chr(b).isalnum() and b < _ASCII) or b in safe else f"%{b:02X}" for b in data)


def _decode(value: str) -> str:
    data = _ENCODED.sub(
        lambda match: bytes.fromhex(match[1].decode()), value.encode("utf-8", "surrogateescape")
    )
    return data.decode("utf-8", "replace")


def _is_worth(value: str) -> bool:
    plain = value.casefold() in COMMON or is_stand_in(value) or value.replace(".", "").isdigit()
    return len(value) >= LEAST and not plain


@lru_cache(maxsize=8)
def build_known(values: frozenset[str]) -> re.Pattern[str] | None:
    """Build a pattern of all `values`, as they are, in JSON and in URLs; `None` for no values."""
    forms: set[str] = set()
    for value in values:
        if len(value) < LEAST or value.casefold() in COMMON or value.startswith("[redacted"):
            continue
        forms |= {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {_encode(value, safe=b"-._~"), _encode(value, safe=b"-._~/")}
    if not forms:
        return None
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, longest_first)))


def find_known(text: str, pattern: re.Pattern[str] | None, *, rank: int) -> Iterator[SecretSpan]:
    """Yield every occurrence."""
    if pattern is not None:
        yield from (SecretSpan(match.start(), match.end(), KIND, rank) for match in pattern.finditer(text))


class AllowList(msgspec.Struct, frozen=True):
    """Text to leave: everything inside an occurrence of a literal, and values a pattern matches whole."""

    literals: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()

    def spares(self, text: str, span: SecretSpan) -> bool:
        """Return whether what was found at `span` of `text` stays."""
        value = text[span.start : span.end]
        if any(pattern.fullmatch(value) for pattern in self.patterns):
            return True
        for literal in self.literals:
            at = text.find(literal, max(0, span.end - len(literal)), span.start + len(literal))
            if 0 <= at <= span.start:
                return True
        return False


EMPTY_ALLOW_LIST = AllowList()
"""The allow-list of a user who has none."""


@lru_cache(maxsize=8)
def build_allow(literals: tuple[str, ...], patterns: tuple[str, ...]) -> AllowList:
    """Build the allow-list of these literals and regular expressions, which must be valid ones."""
    return AllowList(tuple(text for text in literals if text), tuple(re.compile(text) for text in patterns))
