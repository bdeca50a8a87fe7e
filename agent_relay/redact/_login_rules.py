"""Rules for secrets in connection strings, URLs, HTTP headers, and in files and flags that carry logins."""

import re
from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Callable

from agent_relay.domain.text.plain import compile_late
from agent_relay.redact._named_values import is_code, is_stand_in, is_wordy, looks_secret
from agent_relay.redact.rules import LineRule, is_varied

_SERVERS = (
    r"(?:postgres\w*|mysql\w*|mariadb|mongodb|rediss?|valkeys?|amqps?|mssql|sqlserver|oracle|cockroachdb"
    r"|clickhouse|cassandra|neo4j|bolt|couchdb|ldaps?|smtps?|imaps?|ftps?|sftp|kafka|nats|mqtts?|ssh)"
)
_USER = r"[^\s:/@\"'`<>{}]{0,128}"
_PART = r"([^\s\"'`<>/\\]{1,256})"
_LEAST = 6
_HASHED = r"\$[A-Za-z0-9+/.=_-]{4,128}\$[A-Za-z0-9+/._-]{16,256}={0,2}"
_SAYS = r"[\"'`]?\s{0,4}(?:is|was|[:=]|=>)?\s{0,4}[\"'`]?"


def _is_no_stand_in(value: str) -> bool:
    return not is_stand_in(value) and not is_code(value)


def _is_made(value: str) -> bool:
    """Return whether a password in an ordinary URL looks real: manuals write plain words."""
    return len(value) >= _LEAST and _is_no_stand_in(value) and not (is_wordy(value) and value.isalpha())


def _is_long(value: str) -> bool:
    return looks_secret(value, least=12)


def _is_credential(value: str) -> bool:
    return looks_secret(value, least=16) or (len(value) >= 20 and value.isalnum() and not value.isalpha())  # noqa: PLR2004 - no word is that long


def _is_login(value: str) -> bool:
    """Return whether `value` is base64 of `user:password`, and the password is no placeholder."""
    try:
        user, _, password = b64decode(value + "=" * (-len(value) % 4)).decode("utf-8").partition(":")
    except (ValueError, NotBase64Error):
        return False
    return bool(user and password) and password.isprintable() and not is_stand_in(password)


def _is_chosen(value: str) -> bool:
    """Return whether `value` may be a password if only words suggest it: it has a digit or a symbol."""
    letters = value.rstrip(".!?").isalpha()  # a word at the end of its sentence
    return _is_no_stand_in(value) and not letters and any(map(str.isalpha, value))


def _build(kind: str, hint: str, pattern: str, accept: Callable[[str], bool]) -> LineRule:
    return LineRule(kind, hint, compile_late(pattern, re.IGNORECASE | re.MULTILINE), accept)


RULES: tuple[LineRule, ...] = (
    # scheme://user:password@host, plain and percent-encoded
    _build(
        "connection-string",
        "://",
        rf"\b{_SERVERS}(?:\+\w+)?://{_USER}:{_PART}@(?=[\w.\[$%-])",
        _is_no_stand_in,
    ),
    _build("url-password", "://", rf"\b[a-z][a-z0-9+.-]{{1,20}}://{_USER}:{_PART}@(?=[\w.\[$%-])", _is_made),
    _build(
        "connection-string",
        "%3a%2f%2f",
        r"%3A%2F%2F[^\s%\"']{0,128}%3A([^\s\"'&]{1,256}?)%40",
        _is_no_stand_in,
    ),
    _build("sentry-dsn", "://", r"https?://([0-9a-f]{32}(?::[0-9a-f]{32})?)@[\w.-]+/\d", lambda _: True),
    _build("connection-string", "@tcp(", r"[\w.-]:([^\s\"'`@:/]{1,128})@tcp\(", _is_no_stand_in),
    _build("connection-string", "pwd=", r"[;\"']\s*pwd=([^\s;\"'&]{1,256})", _is_no_stand_in),
    _build(
        "connection-string",
        "password=",
        r"(?:[;\"']|;\s*\w+\s)\s*password=([^\s;\"'&]{1,256})",
        _is_no_stand_in,
    ),
    _build(
        "connection-string",
        "password=",
        r"\b(?:host|user|dbname)=[^\s,]{1,200} .{0,200}?\bpassword=([^\s;\"'&]{1,256})",
        _is_no_stand_in,
    ),
    _build(
        "connection-string",
        "password=",
        r"\bpassword=([^\s;\"'&]{1,256}) .{0,200}?\b(?:host|user|dbname)=",
        _is_no_stand_in,
    ),
    _build("azure-key", "sharedaccesskey=", r"SharedAccessKey=([A-Za-z0-9+/=]{20,})", _is_long),
    _build("azure-key", "sig=", r"[?&;]sig=([A-Za-z0-9%+/=_-]{20,})", _is_long),
    _build("azure-secret", "q~", r"(?<![\w~.-])([\w~.-]{3}\dQ~[\w~.-]{31,34})(?![\w~-])", _is_long),
    _build(
        "aws-signature",
        "x-amz-",
        r"X-Amz-(?:Signature|Security-Token|Credential)(?:=|%3D)([^\s\"'&]{20,})",
        _is_long,
    ),
    _build(
        "aws-secret",
        "aws",
        r"\baws[\w .-]{0,30}(?:key|pwd|pw|password|pass|token)[\w .-]{0,20}[\"']?\s*[:=,>]{1,3}\s*\\*[\"'`]?"
        r"([0-9a-zA-Z/+]{40})(?![\w/+=])",
        is_varied,
    ),
    _build(
        "aws-secret", "akia", r"\bAKIA[0-9A-Z]{16}[\s\"',:;|]{1,20}([A-Za-z0-9/+]{40})(?![\w/+=])", is_varied
    ),
    _build("api-key", "key=", r"[?&](?:(?:api|access|app|auth)[_-]?)?key=([\w~.-]{16,200})", _is_credential),
    # XML elements with such a name or attribute
    *(
        _build(
            "password",
            word,
            rf"<(?:\w{{1,20}}\s(?:[^<>]{{0,200}}?\s)?(?:key|name)=[\"'])?[\w:.-]{{0,40}}{word}[\"']?\s{{0,4}}>"
            r"([^<>\s]{6,200})</",
            _is_chosen,
        )
        for word in ("password", "passwd", "pwd", "passwort", "kennwort")
    ),
    # headers
    _build("bearer-token", "bearer", r"\bbearer\s+([\w.~+/=-]{8,})", _is_credential),
    _build(
        "authorization",
        "authorization",
        r"authorization[\"']?\s*[:=,]\s*[\"']?(?:token|apikey|key|digest)\s+([\w.~+/=-]{8,})",
        _is_credential,
    ),
    _build(
        "authorization",
        "authorization",
        r"authorization:\s*([\w.~+/=-]{16,})\s*(?:[\"'\\]|$)",
        _is_credential,
    ),
    _build("basic-auth", "basic", r"\bbasic\s+([A-Za-z0-9+/]{8,}={0,2})", _is_login),
    _build(
        "api-key",
        "x-",
        r"\bx-(?:[\w-]{0,30})(?:key|token|secret|auth)[\"']?\s*[:=]\s*[\"']?([\w.~+/=-]{12,})",
        _is_long,
    ),
    _build(
        "cookie",
        "cookie:",
        r"cookie:.{0,400}?(?:sess\w{0,40}|sid|auth\w{0,40}|token|jwt|csrf\w{0,40}|connect\.sid|remember\w{0,40})=([^\s;\"']{8,})",
        _is_long,
    ),
    # passwords on their way to sudo
    _build(
        "password",
        "sudo",
        r"\b(?:echo|printf)\s{1,8}(?:-\w{1,4}\s{1,8}|[\"']?%s(?:\\+n)?[\"']?\s{1,8}){0,2}"
        r"[\"']?([^\s\"'|][^\"'|\n]{0,127}?)[\"']?\s{0,8}\|\s{0,8}sudo\s(?:[^\n|;&]{0,60}?\s)?(?:-\w{0,8}S|--stdin)\b",
        _is_no_stand_in,
    ),
    _build(
        "password",
        "sudo",
        r"\bsudo\s(?:[^\n|;&]{0,60}?\s)?(?:-\w{0,8}S|--stdin)\b[^\n|;&<]{0,100}<<<\s{0,8}[\"']?([^\s\"']{1,128})",
        _is_no_stand_in,
    ),
    # what systems keep of passwords: good for trying words at home
    _build("password-hash", "$2", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}(?![./A-Za-z0-9])", is_varied),
    _build("password-hash", "$argon2", rf"\$argon2(?:id|i|d)(?:\$[\w=,]{{1,40}}){{1,2}}{_HASHED}", is_varied),
    _build("password-hash", "$pbkdf2", rf"\$pbkdf2(?:-[\w-]{{1,20}})?\$[\w=,]{{1,40}}{_HASHED}", is_varied),
    _build("password-hash", "$scrypt$", rf"\$scrypt\$[\w=,]{{1,40}}{_HASHED}", is_varied),
    *(
        _build(
            "password-hash",
            f"${scheme}$",
            rf"\${scheme}\$(?:rounds=\d{{1,9}}\$|[./\w]{{1,40}}\$)?[./\w]{{1,40}}\$[./A-Za-z0-9]{{22,128}}(?![./A-Za-z0-9])",
            is_varied,
        )
        for scheme in ("1", "5", "6", "7", "y", "gy")
    ),
    # 32 hexadecimal digits are a sum of a file as well: only words that say what they are tell
    _build(
        "api-key",
        "key",
        r"\b(?:api|access|secret|private|auth|license|licence|app|application|client|subscription|account|service"
        r"|encryption|signing|master|admin|datadog|mailgun|openai|azure|stripe|sendgrid|algolia|newrelic|twilio)"
        rf"[ _-]?key\b{_SAYS}([0-9a-f]{{32}})(?![0-9a-f])",
        is_varied,
    ),
    _build(
        "api-key",
        "key",
        rf"(?<![\w -])(?:the |my |our |your )?key{_SAYS}([0-9a-f]{{32}})(?![0-9a-f])",
        is_varied,
    ),
    *(
        _build("api-key", word, rf"\b{word}\b{_SAYS}([0-9a-f]{{32}})(?![0-9a-f])", is_varied)
        for word in ("secret", "token")
    ),
    # files and flags that carry logins
    _build("netrc", "machine", r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+([^\s\"']+)", _is_no_stand_in),
    _build("pgpass", ":", r"^[\w.*-]+:(?:543\d|643\d|\*):[\w*-]+:[\w.*-]+:(\S+)$", _is_no_stand_in),
    _build("docker-auth", '"auth"', r"\\?\"auth\\?\"\s*:\s*\\?\"([A-Za-z0-9+/]{8,}={0,2})\\?\"", _is_login),
    _build("npm-token", "_password", r":_password\s*=\s*\"?([A-Za-z0-9+/=]{8,})", _is_no_stand_in),
    _build("npm-token", "_auth", r"(?:^|:)_auth(?:Token)?\s*=\s*\"?([\w+/=.-]{8,})", _is_no_stand_in),
    _build(
        "password",
        "curl",
        r"\bcurl\b.{0,400}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]+:([^\s\"'@]{4,})",
        _is_no_stand_in,
    ),
    _build(
        "password",
        "from-literal",
        r"--from-literal[= ][\"']?[\w.-]{0,60}(?:pass|pwd|secret|token|key|senha|clave)[\w.-]{0,40}"
        r"=([^\s\"']{4,256})",
        _is_chosen,
    ),
    _build("password", "%", r"\s-U\s?[\"']?[\w.\\/@-]{1,60}%([^\s\"']{4,256})", _is_no_stand_in),
    _build(
        "password", "/user:", r"\bnet use\b.{0,120}?\s/user:\S{1,60}\s+([^\s/\"'][^\s\"']{3,256})", _is_chosen
    ),
    _build("password", "zip", r"\b(?:un)?zip\b.{0,120}?\s-P\s?[\"']?([^\s\"']{4,256})", _is_no_stand_in),
    _build("password", "7z", r"\b7z[ar]?\b.{0,200}?\s-p[\"']?([^\s\"']{4,256})", _is_no_stand_in),
    _build("password", " pass:", r"-pass(?:in|out)?\s{1,4}pass:([^\s\"']{4,256})", _is_no_stand_in),
    _build("password", "openssl enc", r"\bopenssl enc\b.{0,200}?\s-k\s([^\s\"']{4,256})", _is_no_stand_in),
    _build(
        "password",
        "pass",
        r"\buser(?:name)?[ :=]{1,3}[\w.@-]{2,60}[ ,;/]{1,3}pass(?:word)?[ :=]{1,3}([^\s\"'`,;]{6,256})",
        _is_chosen,
    ),
    _build("password", "sshpass", r"\bsshpass\s+-p\s*[\"']?([^\s\"']+)", _is_no_stand_in),
    _build("password", "mysql", r"\bmysql\w*\b.{0,200}?\s-p([^\s\"'-][^\s\"']{3,})", _is_made),
    _build(
        "password", "docker login", r"docker login\b.{0,200}?\s-p[ =]?[\"']?([^\s\"']{4,})", _is_no_stand_in
    ),
    _build("password", "redis-cli", r"\bredis-cli\b.{0,200}?\s-a\s+[\"']?([^\s\"']{4,})", _is_no_stand_in),
)
