"""Find keys and tokens of providers, by the formats that they publish."""

import re
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as NotBase64Error
from collections.abc import Callable, Iterator
from json import loads

from agent_relay.domain.text.plain import compile_late
from agent_relay.redact._named_values import is_stand_in
from agent_relay.redact.rules import LEFT, RIGHT, LineRule, SecretSpan, Token, is_varied

_WORD = r"[A-Za-z0-9_-]"
_ALNUM = r"[A-Za-z0-9]"
_HEX = r"[0-9a-fA-F]"
_SLASH = "(?:/|%2F)"

# kind, literal beginnings, rest. A rest ending in `}` after a comma has no fixed length.
_FORMATS: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", _WORD + "{20,}"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _WORD + "{20,}"),
    ("openrouter-key", "sk-or-", _WORD + "{20,}"),
    ("langfuse-key", "sk-lf-", _WORD + "{20,}"),
    ("api-key", "sk-", _ALNUM + "{32,}"),
    ("google-key", "AIza", _WORD + "{35}"),
    ("google-token", "ya29.", _WORD + "{20,}"),
    ("google-secret", "GOCSPX-", _WORD + "{28}"),
    ("google-token", "1//0", _WORD + "{30,}"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM + "{36,}"),
    ("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glft- glsoat- glcbt- glptt- glagent- gloas- glimt- glffct-",
        r"[A-Za-z0-9_.-]{20,}",
    ),
    ("gitlab-token", "GR1348941", _WORD + "{20,}"),
    ("slack-token", "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9-]{10,}"),
    ("slack-token", "xoxe.xox", r"[bp]-[A-Za-z0-9-]{10,}"),
    ("slack-token", "xapp-", r"\d-[A-Z0-9]+-\d+-[a-z0-9]{20,}"),
    (
        "slack-webhook",
        "hooks.slack.com",
        rf"{_SLASH}(?:services|workflows|triggers)(?:{_SLASH}[A-Za-z0-9_]{{6,}})+",
    ),
    (
        "discord-webhook",
        "discord.com discordapp.com",
        rf"{_SLASH}api{_SLASH}webhooks{_SLASH}\d{{15,}}{_SLASH}[A-Za-z0-9_-]{{30,}}",
    ),
    ("npm-token", "npm_", _ALNUM + "{36}"),
    ("pypi-token", "pypi-Ag", _WORD + "{40,}"),
    ("huggingface-token", "hf_ api_org_", _ALNUM + "{30,}"),
    ("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("aws-key", "AKIA ASIA ABIA ACCA", r"[0-9A-Z]{16}"),
    ("aws-key", "A3T", r"[A-Z0-9]{17}"),
    ("aws-token", "ABSK", r"[A-Za-z0-9+/]{109,}={0,2}"),
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM + "{16,}"),
    ("stripe-secret", "whsec_", r"[A-Za-z0-9+/=]{32,}"),
    ("twilio-key", "AC SK", r"[0-9a-f]{32}"),
    ("mailgun-key", "key-", r"[0-9a-f]{32}"),
    ("square-token", "sq0csp- sq0atp- sq0idp-", _WORD + "{22,}"),
    ("square-token", "EAAA", _WORD + "{60}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", _HEX + "{32}"),
    ("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("heroku-key", "HRKU-", _WORD + "{36,}"),
    ("vault-token", "hvs. hvb. hvr.", _WORD + "{24,}"),
    ("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    ("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("grafana-token", "glc_", r"[A-Za-z0-9+/]{32,}={0,2}"),
    ("linear-key", "lin_api_", _ALNUM + "{32,}"),
    ("notion-token", "ntn_", _ALNUM + "{40,}"),
    ("notion-token", "secret_", _ALNUM + "{43}"),
    ("replicate-token", "r8_", _ALNUM + "{37}"),
    ("groq-key", "gsk_", _ALNUM + "{40,}"),
    ("xai-key", "xai-", _ALNUM + "{40,}"),
    ("perplexity-key", "pplx-", _ALNUM + "{40,}"),
    ("fireworks-key", "fw_", _ALNUM + "{22,}"),
    ("docker-token", "dckr_pat_ dckr_oat_", _WORD + "{27,}"),
    ("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("newrelic-key", "NRAK- NRJS- NRII- NRRA-", r"[A-Za-z0-9-]{27,}"),
    ("sentry-token", "sntrys_", r"[A-Za-z0-9+/=_-]{40,}"),
    ("sentry-token", "sntryu_", r"[0-9a-f]{64}"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{40,}"),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{32,}"),
    ("supabase-token", "sbp_", r"[0-9a-f]{40}"),
    ("supabase-token", "sb_secret_", _WORD + "{22,}"),
    ("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("atlassian-token", "ATATT3", r"[A-Za-z0-9_=-]{50,}"),
    ("atlassian-token", "ATBB", r"[A-Za-z0-9_=-]{24,}"),
    ("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    ("crates-token", "cio", _ALNUM + "{32}"),
    ("figma-token", "figd_", _WORD + "{40,}"),
    ("fly-token", "fm2_", r"[A-Za-z0-9+/=_-]{60,}"),
    ("fly-token", "fo1_", _WORD + "{40,}"),
    ("cloudflare-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}"),
    ("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    ("tailscale-key", "tskey-", r"[A-Za-z0-9-]{20,}"),
    ("dropbox-token", "sl.", r"[A-Za-z0-9_-]{130,}"),
    ("facebook-token", "EAACEdEose0cBA", r"[0-9A-Za-z]+"),
    ("easypost-key", "EZAK", _ALNUM + "{54}"),
    ("artifactory-token", "AKCp", _ALNUM + "{10,}"),
    ("artifactory-token", "cmVmdGtuO", _ALNUM + "{50,}"),
    ("telegram-token", "bot", r"\d{8,10}:[A-Za-z0-9_-]{35}"),
    ("cargo-token", "crates_io_", _ALNUM + "{30,}"),
)

_SEPARATOR = compile_late(r"[-_.]")
_WEAK_LENGTH = 3
_WEAK = frozenset({"secret_", "api_org_", "dapi", "EAAA", "key-", "1//0", "crates_io_"})
_OPEN = re.compile(r"(?:,\}|\)?\+)(?:=\{0,2\})?$")
_JWT = r"eyJ[A-Za-z0-9_=-]{8,2000}+\.[A-Za-z0-9_=-]{8,20000}+(?:\.[A-Za-z0-9_.+/=-]{0,4000})?"


def build_tokens() -> tuple[Token, ...]:
    """Build a rule for every format, JSON web tokens included."""
    formats = tuple(
        Token(
            kind,
            prefix,
            compile_late(f"{LEFT}{re.escape(prefix)}{rest}{RIGHT}"),
            compile_late(f"{re.escape(prefix)}{rest}"),
            open_ended=_OPEN.search(rest) is not None,
            accept=_accept_after(prefix),
        )
        for kind, prefixes, rest in _FORMATS
        for prefix in prefixes.split()
    )
    return (
        *formats,
        Token("jwt", "eyJ", compile_late(LEFT + _JWT), compile_late(_JWT), open_ended=True, accept=_is_jwt),
    )


def _accept_after(prefix: str) -> Callable[[str], bool]:
    """Build a check of what follows `prefix`: a short prefix proves little, the rest must look generated."""
    length = len(prefix)
    if length <= _WEAK_LENGTH or prefix in _WEAK:
        return lambda secret: is_varied(secret[length:])
    return lambda secret: not _is_filler(secret[length:])


def _is_filler(rest: str) -> bool:
    """Return whether `rest` is what manuals write in a key's place: `xxxx`, `your-key-goes-here`."""
    parts = _SEPARATOR.split(rest)
    row = len(set("".join(parts).lower())) == 1 and rest[0] in "xX*.0"
    words = len(parts) > 2 and all(part == "" or (part.isalpha() and part.islower()) for part in parts)  # noqa: PLR2004 - a generated key may hold one or two
    return row or words or is_stand_in(rest)


def _is_jwt(token: str) -> bool:
    """Return whether the first part is a JSON object: `eyJ` alone begins a lot of base64."""
    head = token.partition(".")[0]
    try:
        header: object = loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, NotBase64Error, RecursionError):
        return False
    return isinstance(header, dict)


_IS = r"""["']?\]? {0,20}(?:=>|:=|::|[=: ]) {0,20}["']?"""
_NAME_ENDS = "(?:key|pwd|password|pass|token)"


def _assigned(name: str, secret: str) -> str:
    """Build the expression of a secret that is given to `name`: in code, JSON, YAML, a shell or prose."""
    return rf"(?i)(?<!\w){name}{_IS}({secret})"


# Formats that no beginning tells, or that are found inside words: kind, literals in lower case of which
# a line holds one, expressions whose group is the secret. Where a format has no literal of its own, the words
# that its users write beside it serve. AWS is not here: without edges it fires inside long lines of base64.
_IN_LINES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "artifactory-token",
        "artifactory jfrog akc",
        (r"""(?:^|[\s=:"])A(?:KC[A-Za-z0-9]{10,}|P[0-9A-F][A-Za-z0-9]{8,})(?=["\s]|$)""",),
    ),
    ("azure-key", "accountkey=", (r"AccountKey=[A-Za-z0-9+/=]{88}",)),
    (
        "cloudant-key",
        "cloudant",
        (
            _assigned("(?:cloudant|clou|cl)[_-]?(?:api)?(?:pw|" + _NAME_ENDS + ")", "[0-9a-f]{64}|[a-z]{24}"),
            r"(?i)https?://[\w-]{1,200}:([0-9a-f]{64}|[a-z]{24})@[\w-]{1,200}\.cloudant\.com",
        ),
    ),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", (r"gh[pousr]_[A-Za-z0-9_]{36}",)),
    (
        "gitlab-token",
        "gl gr1348941",
        (
            r"(?:gl(?:pat|dt|ft|soat|rt)-|GR1348941)[\w-]{20,50}(?!\w)",
            r"gl(?:cbt-(?:[0-9A-Fa-f]{2}_)?[\w-]{20,50}|imt-[\w-]{25}|ptt-[\w-]{40})(?!\w)",
            r"gl(?:agent-[\w-]{50,1024}|oas-[\w-]{64})(?!\w)",
        ),
    ),
    (
        "ibm-key",
        "ibm bluemix iam_ iam-",
        (
            _assigned(
                "(?:(?:ibm[_-]?)?cloud[_-]?iam|ibm[_-]?(?:cloud|iam)?|iam|cloud)?[_-]?(?:api)?[_-]?"
                + _NAME_ENDS,
                "[0-9a-z_-]{44}(?![0-9a-z_-])",
            ),
        ),
    ),
    (
        "ibm-key",
        "secret_access_key secret-access-key ibm cos_",
        (
            _assigned(
                "(?:(?:ibm)?[_-]?cos[_-]?(?:hmac)?)?[_-]?secret[_-]?(?:access)?[_-]?key",
                "[0-9a-f]{48}(?![0-9a-f])",
            ),
        ),
    ),
    ("mailchimp-key", "-us", (r"[0-9a-z]{32}-us[0-9]{1,2}",)),
    (
        "npm-token",
        ":_authtoken=",
        (r"//.{1,200}/:_authToken=\s{0,20}(npm_.{1,200}|[0-9A-Fa-f-]{36}).{0,200}",),
    ),
    ("openai-key", "t3blbkfj", (r"sk-[\w-]{0,200}[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",)),
    ("pypi-token", "pypi-ag", (r"pypi-Ag(?:EIcHlwaS5vcmc|ENdGVzdC5weXBpLm9yZw)[\w-]{70,}",)),
    ("sendgrid-key", "sg.", (r"SG\.[\w-]{22}\.[\w-]{43}",)),
    (
        "slack-token",
        "xox hooks.slack.com",
        (r"(?i)xox[abopsr]-(?:[0-9]+-)+[0-9a-z]+", r"(?i)https://hooks\.slack\.com/services/T\w+/B\w+/\w+"),
    ),
    (
        "softlayer-key",
        "softlayer",
        (
            _assigned("(?:softlayer|sl)[_-]?(?:api)?[_-]?" + _NAME_ENDS, "[0-9a-z]{64}"),
            r"(?i)https?://api\.softlayer\.com/soap/v3(?:\.1)?/([0-9a-z]{64})",
        ),
    ),
    ("square-token", "sq0csp-", (r"sq0csp-[\w\\-]{43}",)),
    ("stripe-key", "_live_", (r"[rs]k_live_[0-9A-Za-z]{24}",)),
)


def _is_telegram_token(found: str) -> bool:
    account, _, secret = found.partition(":")
    return account.isdigit() and is_varied(secret)


def _is_discord_token(found: str) -> bool:
    """Return whether the first part is the account's number in base64."""
    head = found.partition(".")[0]
    try:
        return b64decode(head + "=" * (-len(head) % 4), altchars=b"-_").isdigit()
    except (ValueError, NotBase64Error):
        return False


# These begin with nothing a search could go by and would fire inside longer words. They are looked for
# by the punctuation they must hold, and judged with each of the lengths their first part can have.
_BY_PUNCTUATION = (
    (
        re.compile(r"[0-9]{8,10}:[\w-]{35}", re.ASCII),
        "telegram-token",
        re.compile(r"(?::|%3A)[\w-]{35}(?![\w-])", re.ASCII),
        (10, 9, 8),
        _is_telegram_token,
    ),
    (
        re.compile(r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}", re.ASCII),
        "discord-token",
        re.compile(r"\.[\w-]{6}\.[\w-]{27,40}(?![\w-])", re.ASCII),
        (26, 25, 24),
        _is_discord_token,
    ),
)
# The same two over line ends: of fixed length there, because what follows may be the next line's word.
FOLDING = (
    LineRule("telegram-token", ":aa", re.compile(r"(?<![0-9])[0-9]{8,10}:AA[\w-]{33}", re.ASCII), is_varied),
    LineRule(
        "discord-token",
        ".",
        re.compile(r"[MNO][\w-]{23,25}\.[\w-]{6}\.(?:[\w-]{38}|[\w-]{27})", re.ASCII),
        _is_discord_token,
    ),
)


def build_line_rules() -> tuple[LineRule, ...]:
    """Build a rule for every expression and literal of `_IN_LINES`."""
    return tuple(
        LineRule(kind, hint, compile_late(expression, re.ASCII), is_varied)
        for kind, hints, expressions in _IN_LINES
        for expression in expressions
        for hint in hints.split()
    )


def find_by_punctuation(text: str, *, rank: int) -> Iterator[SecretSpan]:
    """Yield tokens without a literal beginning: Telegram's and Discord's."""
    for whole, kind, pattern, lengths, is_plausible in _BY_PUNCTUATION:
        for match in pattern.finditer(text):
            for length in lengths:
                start = match.start() - length
                if start < 0:
                    continue
                found = text[start : match.end()].replace("%3A", ":")
                if whole.match(found) and is_plausible(found):
                    yield SecretSpan(start, match.end(), kind, rank)
                    break
