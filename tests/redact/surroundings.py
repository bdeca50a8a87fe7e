"""Secrets that only their surroundings give away, and private keys, in the places they turn up in."""

import json
import random
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

from tests.redact.planted import ALNUM, BASE64, HEX, Planted, make

# What it is, which secret stands at the mark §, and the text around it.
NAMED: tuple[tuple[str, str, str], ...] = (
    ("postgres", "password", "DATABASE_URL=postgres://app:§@db.internal:5432/prod?sslmode=require"),
    ("mysql", "password", "engine = create_engine('mysql+pymysql://root:§@10.0.0.3/shop')"),
    ("mongodb", "password", '"uri": "mongodb+srv://svc:§@cluster0.ab1cd.mongodb.net/?w=majority"'),
    ("redis", "password", "redis://:§@cache:6379/0"),
    ("amqp", "simple", "amqps://worker:§@mq.internal/vhost"),
    ("url encoded", "q", "next=postgres%3A%2F%2Fapp%3A§%40db.internal%2Fprod"),
    ("git url", "key64", "git clone https://x-access-token:§@git.example.com/a/b.git"),
    ("ado", "password", '"Server=tcp:a.database.windows.net;Database=b;User ID=c;Password=§;Encrypt=True"'),
    ("ado pwd", "password", "Driver=x;Uid=sa;Pwd=§;"),
    ("libpq", "password", "psql 'host=db user=app password=§ dbname=prod'"),
    ("go dsn", "password", 'sql.Open("mysql", "root:§@tcp(127.0.0.1:3306)/db")'),
    ("azure storage", "azure", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=§;EndpointSuffix=b"),
    ("azure bus", "azure", "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey=§"),
    ("azure sas", "azure_url", "https://a.blob.core.windows.net/c?sv=2024&sig=§&se=1"),
    ("azure client", "azure_client", "AZURE_CLIENT = §"),
    ("aws secret", "aws", "aws_secret_access_key = §\nregion = eu-west-1"),
    ("aws secret json", "aws", '{"SecretAccessKey": "§"}'),
    ("aws secret shell", "aws", "export AWS_SECRET_ACCESS_KEY='§'"),
    ("aws pair", "aws", "AKIAA1B2C3D4E5F6G7H8,§\n"),
    ("aws session", "long", "AWS_SESSION_TOKEN=§"),
    ("bearer", "key64", "-H 'Authorization: Bearer §'"),
    ("token header", "hexed", "Authorization: token §"),
    ("basic", "login", "Authorization: Basic §"),
    ("api key header", "hexed", 'headers = {"X-Api-Key": "§"}'),
    ("cookie", "key64", "Cookie: theme=dark; sessionid=§; x=1"),
    ("env password", "simple", "DB_PASSWORD=§\nDEBUG=1"),
    ("env short password", "short", "REDIS_PASSWORD=§"),
    ("env secret", "key64", "SECRET_KEY=§"),
    ("env quoted", "password", 'export SMTP_PASS="§"'),
    ("env token", "hexed", "+INTERNAL_API_TOKEN=§"),
    ("env removed", "password", "-ADMIN_PASSWORD=§"),
    ("compose", "simple", "    environment:\n      - POSTGRES_PASSWORD=§\n"),
    ("dockerfile", "key64", "ENV API_KEY §"),
    ("docker run", "simple", "docker run -e MYSQL_ROOT_PASSWORD=§ mysql:8"),
    ("yaml", "password", "database:\n  password: §\n  host: db\n"),
    ("yaml quoted", "password", "  client_secret: '§'\n"),
    ("json", "password", '{"user": "a", "password": "§"}'),
    ("json in json", "password", '"{\\"password\\": \\"§\\"}"'),
    ("python", "key64", 'API_TOKEN = "§"'),
    ("python keyword", "password", 'connect(user="a", password="§")'),
    ("javascript", "key64", "const apiKey = `§`;"),
    ("go", "key64", 'apiKey := "§"'),
    ("php", "password", "'password' => '§',"),
    ("ruby", "long", "config.secret_key_base = '§'"),
    ("ini", "password", "[smtp]\npassword = §\n"),
    ("toml", "hexed", 'auth_token = "§"'),
    ("properties", "password", "spring.datasource.password=§"),
    ("next line", "key64", '"client_secret":\n    "§"'),
    ("cut in two", "cut", 'api_key = "§"'),
    ("flag", "password", "deploy --password=§ --yes"),
    ("flag apart", "password", "deploy --password § --yes"),
    ("query", "key64", "GET /v1/items?limit=5&access_token=§ HTTP/1.1"),
    ("curl user", "password", "curl -sS -u admin:§ https://a.example.com"),
    ("sshpass", "simple", "sshpass -p § ssh host"),
    ("netrc", "simple", "machine api.example.com login bot password §"),
    ("pgpass", "simple", "db.internal:5432:prod:app:§"),
    ("npmrc", "hexed", "//registry.example.com/:_authToken=§"),
    ("docker config", "login", '{"auths": {"r.example.com": {"auth": "§"}}}'),
    ("dsn", "short_hex", "https://§@o1.ingest.sentry.io/42"),
    ("prose", "password", "For staging the password is § as always."),
    ("fish", "key64", "set -x SERVICE_TOKEN §"),
    ("powershell", "key64", '$env:API_KEY = "§"'),
    ("presigned", "long", "https://b.s3.amazonaws.com/k?X-Amz-Signature=§&X-Amz-Date=1"),
)


def plant_named(seed: int) -> Iterator[Planted]:
    """Every text of `NAMED` with made-up secrets."""
    secrets = _make_secrets(random.Random(seed))  # noqa: S311 - reproducible, not secret
    for kind, name, text in NAMED:
        secret = secrets[name]
        shown = secret.replace("\n", "") if name == "cut" else secret
        yield Planted(kind, "named", shown, text.replace("§", secret))


def _make_secrets(chance: random.Random) -> dict[str, str]:
    password = f"{make(chance, ALNUM, 7)}!{make(chance, ALNUM, 5)}"
    key, hexed = make(chance, ALNUM, 40), make(chance, HEX, 40)
    azure = make(chance, BASE64, 86) + "=="
    return {
        "password": password,
        "q": quote(password, safe=""),
        "login": b64encode(f"deploy:{password}".encode()).decode(),
        "simple": "hunter2trailblazer",
        "short": "s3cr3tpw",
        "aws": make(chance, BASE64, 40),
        "key64": key,
        "long": key * 4,
        "cut": f"{key[:20]}\n{key[20:]}",
        "hexed": hexed,
        "short_hex": hexed[:32],
        "azure": azure,
        "azure_url": quote(azure, safe=""),
        "azure_client": f"abc8Q~{key[:34]}",
    }


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
