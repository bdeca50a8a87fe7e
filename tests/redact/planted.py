"""Made-up secrets of many kinds and the places they turn up in; the same ones in every run."""

import json
import random
import re
import string
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
SAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"


@dataclass(frozen=True, slots=True)
class Planted:
    """A text that holds `secret`, and how it was planted there."""

    kind: str
    context: str
    secret: str
    text: str


def make(chance: random.Random, letters: str, length: int) -> str:
    """Random letters, ending in a letter or digit."""
    return "".join(chance.choices(letters, k=length - 1)) + chance.choice(letters.strip("_-+/"))


def _jwt(chance: random.Random) -> str:
    def part(data: object) -> str:
        return urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    header, claims = part({"alg": "HS256", "typ": "JWT"}), part({"sub": make(chance, HEX, 12)})
    return f"{header}.{claims}.{make(chance, SAFE, 43)}"


def _discord(chance: random.Random) -> str:
    account = b64encode(str(chance.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    return f"{account}.{make(chance, ALNUM, 6)}.{make(chance, ALNUM, 27)}"


def _after(prefix: str, letters: str, length: int) -> Callable[[random.Random], str]:
    return lambda chance: prefix + make(chance, letters, length)


# Recognised wherever they stand.
TOKENS: dict[str, Callable[[random.Random], str]] = {
    "anthropic": lambda chance: f"sk-ant-api03-{make(chance, SAFE, 93)}AA",
    "anthropic-oauth": _after("sk-ant-oat01-", SAFE, 93),
    "openai-project": _after("sk-proj-", SAFE, 120),
    "openai-service": _after("sk-svcacct-", SAFE, 80),
    "openai-legacy": lambda chance: f"sk-{make(chance, ALNUM, 20)}T3BlbkFJ{make(chance, ALNUM, 20)}",
    "openrouter": _after("sk-or-v1-", HEX, 64),
    "deepseek": _after("sk-", HEX, 32),
    "google-api": _after("AIza", SAFE, 35),
    "google-oauth": _after("ya29.", SAFE, 120),
    "google-client": _after("GOCSPX-", SAFE, 28),
    "github-classic": _after("ghp_", ALNUM, 36),
    "github-oauth": _after("gho_", ALNUM, 36),
    "github-server": _after("ghs_", ALNUM, 36),
    "github-fine": lambda chance: f"github_pat_{make(chance, ALNUM, 22)}_{make(chance, ALNUM, 59)}",
    "gitlab": _after("glpat-", SAFE, 20),
    "gitlab-runner": _after("glrt-", SAFE, 20),
    "slack-bot": lambda chance: (
        f"xoxb-{chance.randrange(10**12)}-{chance.randrange(10**13)}-{make(chance, ALNUM, 24)}"
    ),
    "slack-app": lambda chance: "-".join(
        ("xapp-1", "A" + make(chance, UPPER, 10), str(chance.randrange(10**12)), make(chance, HEX, 64))
    ),
    "slack-webhook": lambda chance: (
        "https://hooks.slack.com/services/"
        + "/".join((f"T{make(chance, UPPER, 8)}", f"B{make(chance, UPPER, 8)}", make(chance, ALNUM, 24)))
    ),
    "discord-bot": _discord,
    "discord-webhook": lambda chance: (
        f"https://discord.com/api/webhooks/{chance.randrange(10**17, 10**18)}/{make(chance, SAFE, 68)}"
    ),
    "npm": _after("npm_", ALNUM, 36),
    "pypi": _after("pypi-AgEIcHlwaS5vcmc", SAFE, 150),
    "huggingface": _after("hf_", string.ascii_letters, 34),
    "sendgrid": lambda chance: f"SG.{make(chance, SAFE, 22)}.{make(chance, SAFE, 43)}",
    "aws-access": _after("AKIA", UPPER, 16),
    "aws-temporary": _after("ASIA", UPPER, 16),
    "stripe-live": _after("sk_live_", ALNUM, 24),
    "stripe-restricted": _after("rk_live_", ALNUM, 99),
    "stripe-webhook": _after("whsec_", ALNUM, 32),
    "twilio-account": _after("AC", HEX, 32),
    "twilio-key": _after("SK", HEX, 32),
    "telegram": lambda chance: f"{chance.randrange(10**9, 10**10)}:AA{make(chance, SAFE, 33)}",
    "mailgun": _after("key-", HEX, 32),
    "mailchimp": lambda chance: f"{make(chance, HEX, 32)}-us12",
    "square": _after("sq0csp-", SAFE, 43),
    "shopify": _after("shpat_", HEX, 32),
    "digitalocean": _after("dop_v1_", HEX, 64),
    "vault": _after("hvs.", SAFE, 90),
    "databricks": _after("dapi", HEX, 32),
    "grafana": lambda chance: f"glsa_{make(chance, ALNUM, 32)}_{make(chance, HEX, 8)}",
    "linear": _after("lin_api_", ALNUM, 40),
    "notion": _after("ntn_", ALNUM, 46),
    "replicate": _after("r8_", ALNUM, 37),
    "groq": _after("gsk_", ALNUM, 52),
    "xai": _after("xai-", ALNUM, 80),
    "perplexity": _after("pplx-", ALNUM, 48),
    "docker": _after("dckr_pat_", SAFE, 27),
    "postman": lambda chance: f"PMAK-{make(chance, HEX, 24)}-{make(chance, HEX, 34)}",
    "newrelic": _after("NRAK-", UPPER, 27),
    "doppler": _after("dp.pt.", ALNUM, 43),
    "planetscale": _after("pscale_tkn_", ALNUM, 43),
    "supabase": _after("sbp_", HEX, 40),
    "atlassian": _after("ATATT3", SAFE, 180),
    "rubygems": _after("rubygems_", HEX, 48),
    "age": _after("AGE-SECRET-KEY-1", UPPER, 58),
    "figma": _after("figd_", SAFE, 40),
    "tailscale": lambda chance: f"tskey-auth-{make(chance, ALNUM, 16)}-{make(chance, ALNUM, 32)}",
    "jwt": _jwt,
}


def _place(secret: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    cut = chance.randrange(4, len(secret) - 1)
    head, tail = secret[:cut], secret[cut:]
    width = 40
    rows = [secret[at : at + width] for at in range(0, len(secret), width)]
    yield "alone", secret
    yield "prose", f"I used the value {secret}, which worked."
    yield "quotes", f"client = Client('{secret}')\n"
    yield "backticks", f"the key `{secret}` is wrong"
    yield "shell", f"export THING={secret}\nmake test\n"
    yield "shell quotes", f'THING="{secret}" ./run --fast\n'
    yield "flag", f"$ tool --with {secret} --verbose\n"
    yield "json", json.dumps({"a": 1, "thing": secret, "b": [True]})
    yield "json in json", json.dumps({"output": json.dumps({"thing": secret}) + "\n"})
    yield "escaped lines", json.dumps(f"first\n{secret}\nlast")
    yield "diff added", f"@@ -1,2 +1,3 @@\n a\n+THING = '{secret}'\n b\n"
    yield "diff removed", f"@@ -1,3 +1,2 @@\n a\n-{secret}\n b\n"
    yield "yaml", f"thing:\n  - {secret}\n  - other\n"
    yield "url", f"https://api.example.com/v1?thing={quote(secret, safe='')}&page=2"
    yield "encoded", f"redirect=https%3A%2F%2Fa%2F%3Fthing%3D{quote(secret, safe='')}%26b%3Dc"
    yield "header", f"> Authorization: Bearer {secret}\r\n> Accept: */*\r\n"
    yield "table", f"| name | {secret} | ok |"
    yield "assigned", f"thing={secret};"
    yield "coloured", f"\x1b[32m{secret}\x1b[0m"
    yield "wrapped", f"the key is {head}\n{tail}\nand then more"
    yield "wrapped and indented", f"  key: {head}\n       {tail}\n  next: 1\n"
    yield "wrapped in a diff", f"+key = {head}\n+{tail}\n+next = 1\n"
    yield "wrapped by backslash", f"curl -H x:{head}\\\n{tail}\n"
    yield "wrapped in narrow rows", "\n".join(["key:", *rows, ""])
    yield "joined strings", f'key = "{head}"\n      "{tail}"\n'


def plant_tokens(seed: int) -> Iterator[Planted]:
    """Every kind of token in every place."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for kind, build in TOKENS.items():
        secret = build(chance)
        for context, text in _place(secret, chance):
            yield Planted(kind, context, secret, text)


def leaks(planted: Planted, text: str) -> bool:
    """Whether twelve characters in a row of the secret can still be read, or half of a short one."""
    secret = planted.secret.removeprefix("https://hooks.slack.com/services/")
    secret = secret.removeprefix("https://discord.com/api/webhooks/")
    text = re.sub(r"\[redacted: [a-z-]+\]", "", text)
    size = min(12, len(secret) // 2)
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))
