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


def plant_named(seed: int) -> Iterator[Planted]:
    """Secrets that only their surroundings give away."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    password = f"{make(chance, ALNUM, 7)}!{make(chance, ALNUM, 5)}"
    simple = "hunter2trailblazer"
    aws = make(chance, BASE64, 40)
    key64 = make(chance, ALNUM, 40)
    hexed = make(chance, HEX, 40)
    azure = make(chance, BASE64, 86) + "=="
    login = b64encode(f"deploy:{password}".encode()).decode()
    q = quote(password, safe="")
    for kind, secret, text in (
        (
            "postgres",
            password,
            f"DATABASE_URL=postgres://app:{password}@db.internal:5432/prod?sslmode=require",
        ),
        ("mysql", password, f"engine = create_engine('mysql+pymysql://root:{password}@10.0.0.3/shop')"),
        (
            "mongodb",
            password,
            f'"uri": "mongodb+srv://svc:{password}@cluster0.ab1cd.mongodb.net/?w=majority"',
        ),
        ("redis", password, f"redis://:{password}@cache:6379/0"),
        ("amqp", simple, f"amqps://worker:{simple}@mq.internal/vhost"),
        ("url encoded", q, f"next=postgres%3A%2F%2Fapp%3A{q}%40db.internal%2Fprod"),
        ("git url", key64, f"git clone https://x-access-token:{key64}@git.example.com/a/b.git"),
        (
            "ado",
            password,
            f'"Server=tcp:a.database.windows.net;Database=b;User ID=c;Password={password};Encrypt=True"',
        ),
        ("ado pwd", password, f"Driver=x;Uid=sa;Pwd={password};"),
        ("libpq", password, f"psql 'host=db user=app password={password} dbname=prod'"),
        ("go dsn", password, f'sql.Open("mysql", "root:{password}@tcp(127.0.0.1:3306)/db")'),
        (
            "azure storage",
            azure,
            f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={azure};EndpointSuffix=b",
        ),
        (
            "azure bus",
            azure,
            f"Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey={azure}",
        ),
        (
            "azure sas",
            quote(azure, safe=""),
            f"https://a.blob.core.windows.net/c?sv=2024&sig={quote(azure, safe='')}&se=1",
        ),
        ("azure client", f"abc8Q~{key64[:34]}", f"AZURE_CLIENT = abc8Q~{key64[:34]}"),
        ("aws secret", aws, f"aws_secret_access_key = {aws}\nregion = eu-west-1"),
        ("aws secret json", aws, json.dumps({"SecretAccessKey": aws})),
        ("aws secret shell", aws, f"export AWS_SECRET_ACCESS_KEY='{aws}'"),
        ("aws pair", aws, f"AKIA{make(chance, UPPER, 16)},{aws}\n"),
        ("aws session", key64 * 4, f"AWS_SESSION_TOKEN={key64 * 4}"),
        ("bearer", key64, f"-H 'Authorization: Bearer {key64}'"),
        ("token header", hexed, f"Authorization: token {hexed}"),
        ("basic", login, f"Authorization: Basic {login}"),
        ("api key header", hexed, f'headers = {{"X-Api-Key": "{hexed}"}}'),
        ("cookie", key64, f"Cookie: theme=dark; sessionid={key64}; x=1"),
        ("env password", simple, f"DB_PASSWORD={simple}\nDEBUG=1"),
        ("env short password", "s3cr3tpw", "REDIS_PASSWORD=s3cr3tpw"),
        ("env secret", key64, f"SECRET_KEY={key64}"),
        ("env quoted", password, f'export SMTP_PASS="{password}"'),
        ("env token", hexed, f"+INTERNAL_API_TOKEN={hexed}"),
        ("env removed", password, f"-ADMIN_PASSWORD={password}"),
        ("compose", simple, f"    environment:\n      - POSTGRES_PASSWORD={simple}\n"),
        ("dockerfile", key64, f"ENV API_KEY {key64}"),
        ("docker run", simple, f"docker run -e MYSQL_ROOT_PASSWORD={simple} mysql:8"),
        ("yaml", password, f"database:\n  password: {password}\n  host: db\n"),
        ("yaml quoted", password, f"  client_secret: '{password}'\n"),
        ("json", password, json.dumps({"user": "a", "password": password})),
        ("json in json", password, json.dumps(json.dumps({"password": password}))),
        ("python", key64, f'API_TOKEN = "{key64}"'),
        ("python keyword", password, f'connect(user="a", password="{password}")'),
        ("javascript", key64, f"const apiKey = `{key64}`;"),
        ("go", key64, f'apiKey := "{key64}"'),
        ("php", password, f"'password' => '{password}',"),
        ("ruby", key64, f"config.secret_key_base = '{key64 * 2}'"),
        ("ini", password, f"[smtp]\npassword = {password}\n"),
        ("toml", hexed, f'auth_token = "{hexed}"'),
        ("properties", password, f"spring.datasource.password={password}"),
        ("next line", key64, f'"client_secret":\n    "{key64}"'),
        ("cut in two", key64, f'api_key = "{key64[:20]}\n{key64[20:]}"'),
        ("flag", password, f"deploy --password={password} --yes"),
        ("flag apart", password, f"deploy --password {password} --yes"),
        ("query", key64, f"GET /v1/items?limit=5&access_token={key64} HTTP/1.1"),
        ("curl user", password, f"curl -sS -u admin:{password} https://a.example.com"),
        ("sshpass", simple, f"sshpass -p {simple} ssh host"),
        ("netrc", simple, f"machine api.example.com login bot password {simple}"),
        ("pgpass", simple, f"db.internal:5432:prod:app:{simple}"),
        ("npmrc", hexed, f"//registry.example.com/:_authToken={hexed}"),
        ("docker config", login, json.dumps({"auths": {"r.example.com": {"auth": login}}})),
        ("dsn", hexed[:32], f"https://{hexed[:32]}@o1.ingest.sentry.io/42"),
        ("prose", password, f"For staging the password is {password} as always."),
        ("fish", key64, f"set -x SERVICE_TOKEN {key64}"),
        ("powershell", key64, f'$env:API_KEY = "{key64}"'),
        ("presigned", hexed * 2, f"https://b.s3.amazonaws.com/k?X-Amz-Signature={hexed * 2}&X-Amz-Date=1"),
    ):
        yield Planted(kind, "named", secret, text)


def plant_blocks(seed: int) -> Iterator[Planted]:
    """Private keys whole, torn, escaped, quoted and in diffs. `secret` is a line from the middle."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for name in (
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "EC PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ):
        rows = [make(chance, BASE64, 64) for _ in range(9)] + [make(chance, BASE64, 22) + "=="]
        lines = [f"-----BEGIN {name}-----", *rows, f"-----END {name}-----"]
        whole = "\n".join(lines)
        for context, text in (
            ("plain", f"before\n{whole}\nafter"),
            ("windows", "\r\n".join(["before", *lines, "after"])),
            ("no end", "\n".join(["before", *lines[:7]])),
            ("no begin", "\n".join([*lines[4:], "after"])),
            (
                "json",
                json.dumps({"type": "service_account", "private_key": whole + "\n", "client_email": "a@b"}),
            ),
            ("json no end", json.dumps({"private_key": "\n".join(lines[:6])})),
            ("json in json", json.dumps({"output": json.dumps({"private_key": whole})})),
            ("diff", "\n".join(["@@ -0,0 +1,12 @@", *(f"+{line}" for line in lines)])),
            ("diff removed", "\n".join(f"-{line}" for line in lines)),
            ("yaml", "key: |\n" + "\n".join(f"    {line}" for line in lines) + "\nnext: 1"),
            ("python", "KEY = (\n" + "\n".join(f'    "{line}\\n"' for line in lines) + "\n)"),
            ("env", 'PRIVATE_KEY="' + "\\n".join(lines) + '"'),
            ("quoted", "\n".join(f"> {line}" for line in lines)),
            ("indented", whole.replace("\n", "\r\n  ")),
            ("numbered", "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))),
            ("numbered by cat", "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))),
        ):
            yield Planted(name, context, rows[4], text)


def leaks(planted: Planted, text: str) -> bool:
    """Whether twelve characters in a row of the secret can still be read, or half of a short one."""
    secret = planted.secret.removeprefix("https://hooks.slack.com/services/")
    secret = secret.removeprefix("https://discord.com/api/webhooks/")
    text = re.sub(r"\[redacted: [a-z-]+\]", "", text)
    size = min(12, len(secret) // 2)
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))
