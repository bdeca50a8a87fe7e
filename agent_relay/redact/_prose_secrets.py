"""Find secrets stated in a sentence, in seven languages: "the password for staging is …", "login: … / …".

The pattern is a keyword, at most `_REACH` characters of the same sentence, a connector (`is`, `:`, a user
name and `/`), then a value that looks chosen or generated. How much so depends on the keyword: after one for
a password, a word with a number is enough, while a "key" is as often the name of a column as a secret.
"""

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum, IntEnum, auto
from itertools import pairwise

import msgspec

from agent_relay.domain.text.plain import compile_late
from agent_relay.redact._named_values import is_code, is_phrase, is_stand_in, is_wordy, looks_secret
from agent_relay.redact.rules import SecretSpan, find_all, is_varied


class _Shape(IntEnum):
    """The likeness of a value to a secret: none, chosen by somebody, chosen with care, generated."""

    ORDINARY = 0
    CHOSEN = 1
    STRONG = 2
    GENERATED = 3


class _SecretKind(Enum):
    """The kind of secret that a keyword names."""

    PASSWORD = auto()
    MAYBE_PASSWORD = auto()
    TOKEN = auto()
    KEY = auto()
    LOGIN = auto()


_LEAST = {
    _SecretKind.PASSWORD: _Shape.CHOSEN,
    _SecretKind.MAYBE_PASSWORD: _Shape.STRONG,
    _SecretKind.TOKEN: _Shape.GENERATED,
    _SecretKind.KEY: _Shape.GENERATED,
    _SecretKind.LOGIN: _Shape.GENERATED,
}
_LEFT = r"(?<![^\W\d_])"
_RIGHT = r"(?![^\W\d])"
# The stem to search for, the pattern that must then match there, and the kind of secret it names. German
# keywords are often the end of a compound.
_WORDS = tuple(
    (stem, compile_late(pattern), sort)
    for stem, pattern, sort in (
        ("passw", rf"passw(?:or[dt]e?n?|örter|oerter|d)s?{_RIGHT}", _SecretKind.PASSWORD),
        ("passphrase", rf"passphrases?n?{_RIGHT}", _SecretKind.PASSWORD),
        ("passcode", rf"passcodes?{_RIGHT}", _SecretKind.PASSWORD),
        ("kennw", rf"kennw(?:ort|örter|oerter)e?s?{_RIGHT}", _SecretKind.PASSWORD),
        ("contrase", rf"{_LEFT}contrase(?:ñ|n|ny)as?{_RIGHT}", _SecretKind.PASSWORD),
        ("de passe", rf"(?<=mot )de passe{_RIGHT}|(?<=mots )de passe{_RIGHT}", _SecretKind.PASSWORD),
        ("mdp", rf"{_LEFT}mdp{_RIGHT}", _SecretKind.PASSWORD),
        ("senha", rf"{_LEFT}senhas?{_RIGHT}", _SecretKind.PASSWORD),
        ("palavra", rf"{_LEFT}palavras?[- ]passe{_RIGHT}", _SecretKind.PASSWORD),
        ("pwd", rf"{_LEFT}pwd{_RIGHT}", _SecretKind.PASSWORD),
        ("密码", "密码", _SecretKind.PASSWORD),
        ("密碼", "密碼", _SecretKind.PASSWORD),
        ("口令", "口令", _SecretKind.PASSWORD),
        ("パスワード", "パスワード", _SecretKind.PASSWORD),
        ("パスフレーズ", "パスフレーズ", _SecretKind.PASSWORD),
        ("暗証", "暗証", _SecretKind.PASSWORD),
        ("pass", rf"{_LEFT}pass(?:es)?{_RIGHT}", _SecretKind.MAYBE_PASSWORD),
        ("pw", rf"{_LEFT}pw{_RIGHT}", _SecretKind.PASSWORD),
        ("clave", rf"{_LEFT}claves?{_RIGHT}", _SecretKind.MAYBE_PASSWORD),
        ("contra", rf"(?<=la )contra{_RIGHT}", _SecretKind.MAYBE_PASSWORD),
        ("secret", rf"{_LEFT}secret(?:s|o|os)?{_RIGHT}", _SecretKind.MAYBE_PASSWORD),
        ("segredo", rf"{_LEFT}segredos?{_RIGHT}", _SecretKind.MAYBE_PASSWORD),
        ("geheimnis", rf"geheimnis(?:ses?)?{_RIGHT}", _SecretKind.MAYBE_PASSWORD),
        ("暗号", "暗号", _SecretKind.MAYBE_PASSWORD),
        ("合言葉", "合言葉", _SecretKind.MAYBE_PASSWORD),
        ("シークレット", "シークレット", _SecretKind.MAYBE_PASSWORD),
        ("token", rf"tokens?{_RIGHT}", _SecretKind.TOKEN),
        ("jeton", rf"{_LEFT}jetons?{_RIGHT}", _SecretKind.TOKEN),
        ("令牌", "令牌", _SecretKind.TOKEN),
        ("トークン", "トークン", _SecretKind.TOKEN),
        ("credential", rf"{_LEFT}credentials?{_RIGHT}", _SecretKind.LOGIN),
        ("creds", rf"{_LEFT}creds{_RIGHT}", _SecretKind.LOGIN),
        ("credencia", rf"{_LEFT}credencia(?:l|les|is){_RIGHT}", _SecretKind.LOGIN),
        ("identifiant", rf"{_LEFT}identifiants?{_RIGHT}", _SecretKind.LOGIN),
        ("login", rf"{_LEFT}logins?(?:daten)?{_RIGHT}", _SecretKind.LOGIN),
        ("zugang", rf"{_LEFT}zugang(?:s|sdaten)?{_RIGHT}", _SecretKind.LOGIN),
        ("anmeldedaten", "anmeldedaten", _SecretKind.LOGIN),
        ("acceso", rf"{_LEFT}accesos?{_RIGHT}", _SecretKind.LOGIN),
        ("acesso", rf"{_LEFT}acessos?{_RIGHT}", _SecretKind.LOGIN),
        ("accès", rf"{_LEFT}accès{_RIGHT}", _SecretKind.LOGIN),
        ("account", rf"{_LEFT}accounts?{_RIGHT}", _SecretKind.LOGIN),
        ("账号", "账号", _SecretKind.LOGIN),
        ("帐号", "帐号", _SecretKind.LOGIN),
        ("账户", "账户", _SecretKind.LOGIN),
        ("登录", "登录", _SecretKind.LOGIN),
        ("ログイン", "ログイン", _SecretKind.LOGIN),
        ("アカウント", "アカウント", _SecretKind.LOGIN),
        ("key", rf"(?<!\w)keys?{_RIGHT}", _SecretKind.KEY),
        ("schlüssel", rf"schlüsseln?{_RIGHT}", _SecretKind.KEY),
        ("schluessel", rf"schluesseln?{_RIGHT}", _SecretKind.KEY),
        ("clé", rf"{_LEFT}clés?{_RIGHT}", _SecretKind.KEY),
        ("llave", rf"{_LEFT}llaves?{_RIGHT}", _SecretKind.KEY),
        ("chave", rf"{_LEFT}chaves?{_RIGHT}", _SecretKind.KEY),
        ("密钥", "密钥", _SecretKind.KEY),
        ("密鑰", "密鑰", _SecretKind.KEY),
        ("秘钥", "秘钥", _SecretKind.KEY),
        ("キー", "キー", _SecretKind.KEY),
        ("鍵", "鍵", _SecretKind.KEY),
    )
)
STEMS = tuple(stem for stem, _, _ in _WORDS)
"""The stems, which are searched for first, as plain text."""
_REACH = 100
_LONGEST = 400
_BEFORE = 100
_NEAR = 50
_MOST_WORDS = 6
_BREAK = compile_late(r"\n|[.!?](?=\s)|[。！？]")
_SIGNS = r"!#-&*+./0-:=?@A-Z^_a-z~À-ɏ-"
_VALUE = compile_late(
    rf"(?<![{_SIGNS}])(?:[A-Za-zÀ-ɏ_.:/-]*+[0-9!#-&*+=?@^~][{_SIGNS}]*+"
    rf"|[a-z]{{3,16}}(?:-[a-z]{{3,16}}){{3,7}}(?![{_SIGNS}]))"
)
_CODE_BEFORE, _CODE_AFTER = "$<{[|\\@/", "([{<\\|"
_OPENING = r"[\s\"'`“„«‹「『（(*_]{0,6}"
_NO_LETTER_BEFORE, _NO_LETTER_AFTER = r"(?<![^\W\d_])", r"(?![^\W\d_])"
_JOIN = (
    r"(?:[:：＝→是为為成用はをがに]|(?<![=!<>])="
    rf"|{_NO_LETTER_BEFORE}(?:is|was|are|were|to|be|now|still|es|era|será|son|sea|ist|war|lautet|lauten|heißt|heisst"
    r"|sind|auf|est|était|sont|à|a|é|são|foi|para|seja)"
    r"(?:\s{1,3}(?:now|still|always|just|simply|currently|again|ahora|siempre|todavía|igual|jetzt|noch|immer"
    r"|weiterhin|wieder|maintenant|toujours|encore|agora|ainda|sempre|como siempre|immer noch))?)"
)
_USER = r"[A-Za-zÀ-ɏ][\w.@+-]{1,40}[\"'`”“»」』]?"
_AND = (
    r"(?:\s{0,2}[/:,|，、和と]\s{0,2}|\s{1,2}(?:and|with|und|mit|y|con|et|avec|e|com)\s{1,2})"
    r"(?:(?:password|passwort|contraseña|clave|mot de passe|senha)\s{1,2})?"
)
_JOINED = compile_late(rf"{_JOIN}{_OPENING}\Z")
_PAIRED = compile_late(rf"{_JOIN}{_OPENING}{_USER}{_AND}{_OPENING}\Z")
_PAIR_BESIDE = compile_late(rf"[\"'`*]?(?:\s|[「『（“]){_OPENING}{_USER}{_AND}{_OPENING}")
_BESIDE = compile_late(rf"[\"'`*]?(?:\s|[「『（“]){_OPENING}")
# The value may come before its keyword: "use … as the password".
_CHOSEN_FOR = compile_late(
    r"[\"'`”“»」』]?(?:\s{1,3}(?:as|als|como|comme)\s(?:[a-zà-ÿ]{1,12}[ -]){0,3}"
    r"|\s?(?:作为|作為|当作|當作|是|を)(?:[\w\s]{0,12}的)?)\Z"
)
_CHOSEN_SIGNS = (" as ", " als ", " como ", " comme ", "作", "当", "當", "是", "を")
_PAIR_INSIDE = compile_late(r"[A-Za-z][\w.@+-]{1,40}[/:](?=[^/:]{8,64}\Z)")

_UUID = compile_late(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX = compile_late(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_BASE64 = compile_late(r"[A-Za-z0-9+/_-]{10,}={0,2}")
_ENDINGS = (
    "py|js|tsx?|jsx|java|kts?|go|rs|[ch]|cpp|md|txt|json|ya?ml|toml|ini|env|cfg|conf|sql|sh|html?|css|csv|log|lock"
    "|xml|pem|key|crt|png|jpe?g|svg|pdf|rb|php|cs|swift|vue|zip|tar|gz|dev|com|org|net|io|local|internal"
)
# A number with its unit, an environment variable or ticket, an address, a path, a format, an identifier.
_ORDINARY = compile_late(
    r"[\d.,:/x+-]++_?(?:[a-zà-ÿ][a-zà-ÿ-]*|[A-Z]{1,3})?"
    r"|[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)*"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\w[\w-]*=.+|~[\w.]+"
    r"|[.~]?/.*|[\w.@-]*/[\w./@:-]*"
    rf"|.*\.(?:{_ENDINGS})(?::\d+){{0,2}}"
    r"|[a-z]+(?:[A-Z][a-z]+)+\d{0,2}|(?:[A-Z][a-z]+){2,}\d{0,2}"
)
_TECHNICAL = compile_late(
    r"(?:sha|md|aes|rsa|hs|rs|es|ps|ed|pbkdf|argon|bcrypt|scrypt|base|utf|iso|rfc|cp|latin|oauth|tls|ssl|ipv|http"
    r"|ecdsa|curve|chacha|crc|blake|totp|fips|nist|win|ntlm|java|python|node|php|ruby|postgres|mysql|log|junit|vue"
    r"|angular|[hkpqsvx]|rev|phase|step|stage|level|version|test|option|line|row|page|part|issue|bug|case|type|field"
    r"|column|col|item|group|slot|shard|host|server|schema|table|model|key|token|pass|password)[-_]?v?\d[\w.-]*"
)
_SNAKE = compile_late(r"[a-z]+(?:_[a-z0-9]+)+")
_SNAKE_PART = compile_late(r"pass|key|token|secret|user|admin|id|name|field|col|hash|url|file|path|test|type")
_ENTITY = compile_late(r"&#?\w+;|%(?:[-.\d]{0,4}[sdr]|[0-9A-Fa-f]{2})|\{|\}|\?\?|==|&&|://")

_CHECKSUM = compile_late(
    rf"{_NO_LETTER_BEFORE}(?:commits?|hash(?:e[sd])?|sha-?\d*|md5|checksum|digest|etag|fingerprint|revision|rev|ids?|uuid"
    r"|guid|public|primary|foreign|cache|partition|sort|idempotency|trace|span|request|branch|tag|merge|image|layer"
    r"|prüfsumme|öffentliche?r?|primär\w{0,12}|pública|público|publique|primaria|primaire|primária|huella|empreinte)"
    rf"{_NO_LETTER_AFTER}|哈希|散列|提交|公钥|主键|缓存|ハッシュ|コミット|公開|主キー|キャッシュ|チェックサム",
)
_ABOUT_AFTER = compile_late(
    r"(?:[\s_-]{1,2}(?:d[eu]\s)?(?:columns?|fields?|variables?|env|functions?|class|method|headers?"
    r"|param(?:eter)?s?|flags?|policy|formats?|patterns?|regex|hash\w{0,4}|algorithms?|length"
    r"|files?(?! server)|filename|path|names?"
    r"|prefix|suffix|hint|version|types?|count|limit|budget|manager|reset|spalte|feld|funktion|datei|pfad|länge)"
    r"|(?:spalte|feld|funktion|datei|pfad|länge)\w{0,3})(?![^\W\d_])"
    r"|[的の]?(?:字段|列|变量|函数|文件|长度|哈希|フィールド|変数|関数|ファイル|長さ|ハッシュ)",
)
_ABOUT_BEFORE = compile_late(
    rf"{_NO_LETTER_BEFORE}(?:column|field|variable|function|header|parameter|flag|hash|spalte|feld|funktion|datei"
    r"|columna|campo|función|archivo|colonne|champ|fonction|fichier|coluna|variável|função|arquivo)\s"
    r"(?:[a-zà-ÿ']{1,4}\s){0,2}\Z",
)
# Separators of a name and its value in a document, program or command: such values are found by their name.
_IN_CODE = compile_late(r"[={}]|\A[\"'`]?[\]\s]{0,8}:\s{0,8}[\"'`]|\"[^\"]{0,60}\"|\A[\w-]{0,40}\"")
_ASSIGNED = compile_late(
    r"[\w-]{0,40}(?:(?:[\"'`]\]?\s{0,8}[:=]|\s{0,8}=)[>\s]{0,8}[\"'`]?|\s{0,8}:\s{0,8}[\"'`])"
)
_DIGITS = compile_late(r"\d+")
_SPECIAL = frozenset("!@#$%^*?~")
_LEAST_CHARACTERS, _CAREFUL = 6, 8
_LEAST_GENERATED, _SURELY_GENERATED = 16, 32


class _Keyword(msgspec.Struct, frozen=True):
    start: int
    end: int
    sort: _SecretKind


def find_prose_secrets(text: str, lower: str, *, rank: int) -> Iterator[SecretSpan]:
    """Yield the secret values that sentences state. `lower` is `text` in lower case."""
    words = sorted(_find_keywords(text, lower), key=lambda word: word.end)
    ends = [word.end for word in words]
    may_follow = bool(words) and any(sign in lower for sign in _CHOSEN_SIGNS)
    broken = seen = 0
    for word in words:
        if word.end <= broken:
            continue
        floor, begin, stop = broken, max(word.end, seen), word.end + _REACH
        found = _BREAK.search(text, begin, stop + 1) if begin < stop else None
        if found:
            stop = broken = found.end()
        if may_follow and word.sort is _SecretKind.PASSWORD:
            yield from _find_before(text, lower, word, max(floor, word.start - _BEFORE), rank)
        # The part that was searched for the previous keyword is not searched again.
        seen = max(seen, stop)
        for value in _VALUE.finditer(text, begin, stop):
            index = bisect_right(ends, value.start())
            near = [one for one in words[max(0, index - _MOST_WORDS) : index] if one.start >= floor]
            yield from _judge(text, lower, value.start(), near, rank)


def _find_before(text: str, lower: str, word: _Keyword, floor: int, rank: int) -> Iterator[SecretSpan]:
    """Yield the value right before a keyword for a password, connected by "as" or the like."""
    near = lower[max(floor, word.start - _NEAR) : word.start]
    if not any(sign in near for sign in _CHOSEN_SIGNS):
        return
    joined = _CHOSEN_FOR.search(lower, word.start - len(near), word.start)
    if joined is None or _is_about(lower, word):
        return
    values = [
        value for value in _VALUE.finditer(text, floor, joined.start()) if value.end() == joined.start()
    ]
    for value in values:
        if measure(value[0]) >= _Shape.CHOSEN and text[max(0, value.start() - 1)] not in _CODE_BEFORE:
            yield SecretSpan(value.start(), value.end(), _kind(word), rank)


def _find_keywords(text: str, lower: str) -> Iterator[_Keyword]:
    for stem, pattern, sort in (one for one in _WORDS if one[0] in lower):
        for at in find_all(lower, stem):
            match = pattern.match(lower, at)
            if match and (sort is _SecretKind.PASSWORD or not _is_camel(text, at)):
                yield _Keyword(at, match.end(), sort)


def _is_camel(text: str, at: int) -> bool:
    """Return whether the keyword is part of an identifier, whose value is found by its name."""
    return at > 0 and text[at].isupper() and text[at - 1].isalpha()


def _judge(text: str, lower: str, start: int, near: list[_Keyword], rank: int) -> Iterator[SecretSpan]:
    whole = _VALUE.match(text, start, start + _LONGEST)
    if whole is None or text[whole.end() : whole.end() + 1] in tuple(_CODE_AFTER):
        return
    if start and text[start - 1] in _CODE_BEFORE:
        return
    bare = whole[0].lstrip("*_")
    start += len(whole[0]) - len(bare)
    value = bare.rstrip(".:!?*/")
    before = text[max(0, start - _BEFORE) : start]
    pair = _PAIR_INSIDE.match(value)
    for word in reversed(near):
        between = lower[word.end : start]
        if len(between) > _REACH or _is_about(lower, word):
            continue
        assigned = word.sort is _SecretKind.PASSWORD and _ASSIGNED.fullmatch(between) is not None
        if not assigned and _IN_CODE.search(between):
            continue
        joined = _JOINED.search(before) is not None
        beside = _BESIDE.fullmatch(between) is not None
        beside = beside and lower[word.start - 1 : word.start] != "-"
        paired = _PAIRED.search(before) is not None or _PAIR_BESIDE.fullmatch(between) is not None
        if pair and (joined or beside) and measure(value[pair.end() :]) >= _Shape.STRONG:
            start, value = start + pair.end(), value[pair.end() :]
        elif not _is_secret(value, word, joined=joined, beside=beside, paired=paired, assigned=assigned):
            continue
        if _is_checksum(value, lower, word, between):
            continue
        yield SecretSpan(start, start + len(value), _kind(word), rank)
        return


def _is_secret(
    value: str, word: _Keyword, *, joined: bool, beside: bool, paired: bool, assigned: bool
) -> bool:
    shape = measure(value)
    if paired and word.sort is not _SecretKind.KEY:
        return shape >= _Shape.STRONG
    if joined:
        return shape >= (_Shape.STRONG if assigned else _LEAST[word.sort])
    return (
        beside
        and shape >= max(_LEAST[word.sort], _Shape.STRONG)
        and word.sort is not _SecretKind.MAYBE_PASSWORD
    )


def _is_about(lower: str, word: _Keyword) -> bool:
    """Return whether the keyword is part of the name of something else: a column, a variable, a file."""
    if _ABOUT_AFTER.match(lower, word.end):
        return True
    return _ABOUT_BEFORE.search(lower[max(0, word.start - 30) : word.start]) is not None


def _is_checksum(value: str, lower: str, word: _Keyword, between: str) -> bool:
    """Return whether the sentence says that a generated value is a commit, a checksum or an id."""
    if not (_HEX.fullmatch(value) or _UUID.fullmatch(value)):
        return False
    if word.sort is _SecretKind.KEY and _UUID.fullmatch(value):
        return True
    return _CHECKSUM.search(f"{lower[max(0, word.start - 20) : word.start]} | {between[-40:]}") is not None


def _kind(word: _Keyword) -> str:
    match word.sort:
        case _SecretKind.TOKEN:
            return "token"
        case _SecretKind.KEY:
            return "secret"
        case _:
            return "password"


def measure(value: str) -> _Shape:
    """Return how much `value` looks like a secret, regardless of its context."""
    if (
        len(value) < _LEAST_CHARACTERS
        or not any(map(str.isalpha, value))
        or is_stand_in(value)
        or is_code(value)
    ):
        return _Shape.ORDINARY
    if _is_generated(value):
        return _Shape.GENERATED
    if _ENTITY.search(value) or _ORDINARY.fullmatch(value):
        return _Shape.ORDINARY
    if _TECHNICAL.fullmatch(value.lower()):
        return _Shape.ORDINARY
    if is_phrase(value.replace("-", " ")):
        return _Shape.CHOSEN
    return _measure_chosen(value)


def _measure_chosen(value: str) -> _Shape:
    if _SNAKE.fullmatch(value) and _SNAKE_PART.search(value):
        return _Shape.ORDINARY
    digits = any(map(str.isdigit, value))
    special = any(sign in _SPECIAL for sign in value) or (digits and ("&" in value or "+" in value))
    if not digits and not special:
        return _Shape.ORDINARY
    kinds = (any(map(str.islower, value)), any(map(str.isupper, value)), digits, special)
    return _Shape.STRONG if len(value) >= _CAREFUL and sum(kinds) > 2 else _Shape.CHOSEN  # noqa: PLR2004 - of four kinds


def _is_generated(value: str) -> bool:
    if _UUID.fullmatch(value):
        return True
    if _HEX.fullmatch(value):
        return is_varied(value) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if not _BASE64.fullmatch(value) or not any(map(str.isdigit, value)):
        return False
    changes = _count_changes(value)
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    if len(value) < _SURELY_GENERATED and len(_DIGITS.findall(value)) < 2:  # noqa: PLR2004 - a name has one number
        return False
    if len(value) < _LEAST_GENERATED:
        return mixed and changes >= 0.5 and not is_wordy(value)  # noqa: PLR2004 - names change less
    return changes >= 0.35 and looks_secret(value, least=_LEAST_GENERATED)  # noqa: PLR2004 - as for any made value


def _count_changes(value: str) -> float:
    """Return the share of positions at which `value` changes case, or between letter and digit."""
    kinds = [0 if sign.isdigit() else 1 if sign.islower() else 2 for sign in value if sign.isalnum()]
    return sum(one != other for one, other in pairwise(kinds)) / max(1, len(kinds))
