"""Every planted secret vanishes, every line of ordinary source stays, and nothing takes for ever."""

import ast
import importlib.util
import os
import sysconfig
from collections.abc import Callable, Iterator
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.redact.text import Redacted, redact_text
from tests.redact import planted, surroundings
from tests.support.sizes import sized


@pytest.mark.parametrize("kind", list(planted.TOKENS))
def test_a_token_vanishes_wherever_it_stands(kind: str) -> None:
    """In quotes, JSON, diffs, URLs, headers, wrapped over lines: no place is safe for a key."""
    left = [
        (one.context, one.text, redact_text(one.text).text)
        for seed in range(3)
        for one in planted.plant_tokens(seed)
        if one.kind == kind and planted.leaks(one, redact_text(one.text).text)
    ]
    assert left == []


def test_every_planted_text_leaks_before_it_is_redacted() -> None:
    """Otherwise finding nothing afterwards would prove nothing."""
    plants = (planted.plant_tokens(0), surroundings.plant_named(0), surroundings.plant_blocks(0))
    assert [one for plant in plants for one in plant if not planted.leaks(one, one.text)] == []


@pytest.mark.parametrize("plant", [surroundings.plant_named, surroundings.plant_blocks])
def test_a_secret_given_away_by_its_surroundings_vanishes(
    plant: Callable[[int], Iterator[planted.Planted]],
) -> None:
    """Connection strings, headers, `.env` lines, settings, private keys whole and torn."""
    left = [
        (one, redact_text(one.text).text)
        for seed in range(8)
        for one in plant(seed)
        if planted.leaks(one, redact_text(one.text).text)
    ]
    assert left == []


PUTTY = """PuTTY-User-Key-File-3: ssh-ed25519
Public-Lines: 2
AAAAC3NzaC1lZDI1NTE5AAAAIJZb1DgO0n1Jv0H4x7b9u3cQ2p6yRkWmEo5
aTgLfXsB8d
Private-Lines: 1
AAAAIGx8Zt2QvN5rJw7KpY3mB9cDf1Lh6UsE4iOaXgRqVnTb
Private-MAC: 00
"""


def test_only_the_private_part_of_a_putty_key_vanishes() -> None:
    """Its public lines may be read by everybody."""
    redacted = redact_text(PUTTY)
    assert "AAAAC3NzaC1lZDI1NTE5" in redacted.text
    assert "AAAAIGx8Zt2" not in redacted.text
    assert redacted.counts == {"private-key": 1}


def test_what_only_looks_like_a_secret_stays() -> None:
    """A form alone is not enough where ordinary text has the same form."""
    rows = [
        "xeyJxxxxxxxx.eyJxxxxxxxxxx and eyJhbGciOiJub25lfQ.notjsonatall",
        "MMMMMMMMMMMMMMMMMMMMMMMM.method.someOtherVeryLongMemberName",
        "see file.py:123456789:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "the password is sha256-hashed and the token was rejected",
        "-----END PRIVATE KEY----- closes it",
        "words before\n-----END RSA PRIVATE KEY-----",
        'token = "2024-01-02-03"; secret = "1234567890"; password = "/etc/app/password.txt"',
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "Authorization: Basic not-base64!",
    ]
    assert [text for text in rows if redact_text(text).text != text] == []


def test_at_least_25_kinds_are_told_apart() -> None:
    """The packet says what was removed, so the reader knows what is missing."""
    kinds = {
        kind
        for one in (*planted.plant_tokens(0), *surroundings.plant_named(0), *surroundings.plant_blocks(0))
        for kind in redact_text(one.text).counts
    }
    assert len(kinds) >= 50


def test_redacting_twice_changes_nothing_more() -> None:
    """Packets are built from transcripts that may already hold packets."""
    for one in (*planted.plant_tokens(1), *surroundings.plant_named(1), *surroundings.plant_blocks(1)):
        once = redact_text(one.text).text
        assert redact_text(once) == Redacted(once)


ORDINARY = """\
diff --git a/uv.lock b/uv.lock
index 1b2f3c4d5e..9a8b7c6d5e 100644
sdist = { url = "https://files.example.org/a", hash = "sha256:\\
3a7f1d2c9b8e4f60a1b2c3d4e5f60718293a4b5c6d7e8f901a2b3c4d5e6f7081" }
"integrity": "sha512-\\
oH9kZ1qkq3bZpR0Cq5bUu3i3QfWb2X1s8mVQp9fU1v7f0c2b9YpI6yL1m3m5kz2u4QH0n8d6WvT3lJr1a5xQ7g==",
commit 4f2a9e1b7c3d5f60718293a4b5c6d7e8f9012345
request_id: 123e4567-e89b-12d3-a456-426614174000
session 01JD0000000000000000000000 resumed
session_id="57460c66-5f3c-4d3e-9a57-0d5c6a2b1e90"
background: url(data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDw)
password = get_password(user)
password: str = Field(default="")
self.token = token
token = tokens[index]
if token == "IDENTIFIER" and next_token != "NEWLINE":
SECRET_KEY = os.environ["SECRET_KEY"]
API_KEY=${API_KEY:-}
export TOKEN=$(cat token.txt)
parser.add_argument("--password", help="Password for the account")
usage: tool [--token TOKEN] [--password PASSWORD]
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
const key = keyMap["primary_key"];
cache_key = f"{prefix}:{name}"
foreign_key="users.id"
raise ValueError("password must be at least 8 characters")
assert password != "wrong password"
http://user:password@proxy.example.com:3128/
postgres://user:password@localhost/db
postgresql://${DB_USER}:${DB_PASS}@${DB_HOST}/app
mysql://{user}:{password}@{host}/{database}
if "-----BEGIN PRIVATE KEY-----" in text:
PEM = "-----BEGIN RSA PRIVATE KEY-----\\n...\\n-----END RSA PRIVATE KEY-----"
max_tokens=4096, total_tokens: 128000
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7vbqajDhAxYz user@host
!function(e,t){"use strict";var n=e.token,r=t.key;n.password=r("input#password")}(window,document);
"key": "ArrowDown", "public_key": "04a1b2c3d4e5f60718293a4b5c6d7e8f90"
ANTHROPIC_API_KEY=your-api-key-here
OPENAI_API_KEY="sk-..."
sk-ant-xxxxxxxxxxxxxxxxxxxxxxxx
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
docker run -e POSTGRES_PASSWORD="$PW" postgres:16
E   AssertionError: token 'NAME' != 'NUMBER'
tests/test_tokens.py::test_secret_rotation[aes-256] PASSED
            headers.setdefault("sec-websocket-key", "testserver==")
                "credentials": "boolean?",
# is used for the username and password quoting. For the joint userinfo component
    private_key: Ed25519PrivateKey | Ed448PrivateKey,
MLKEM768X25519PrivateKey = rust_openssl.hpke.MLKEM768X25519PrivateKey
    private_key: PKCS7PrivateKeyTypes,
"""


def test_an_ordinary_line_stays_as_it_is() -> None:
    """Hashes, ids, images, lock files, templates and code about passwords are what packets are made of."""
    assert [line for line in ORDINARY.splitlines() if redact_text(line).text != line] == []


def test_ordinary_lines_together_stay_as_they_are() -> None:
    """Neighbours do not make a secret of each other."""
    assert redact_text(ORDINARY) == Redacted(ORDINARY)


def _sources(*folders: str) -> Iterator[str]:
    for folder in folders:
        for here, below, names in os.walk(folder):
            below[:] = [name for name in below if name not in ("site-packages", "__pycache__")]
            for name in names:
                path = os.path.join(here, name)
                if name.endswith((".py", ".toml", ".md", ".j2", ".json")) and os.path.getsize(path) < 400_000:
                    yield path


def _changed(paths: Iterator[str]) -> tuple[int, list[tuple[str, object]]]:
    lines, changed = 0, []
    for path in paths:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
        lines += text.count("\n")
        redacted = redact_text(text)
        if redacted.text != text:
            changed.append((path, redacted.counts))
    return lines, changed


@pytest.mark.size("every")
def test_no_line_of_a_quarter_million_of_ordinary_source_is_changed() -> None:
    """A rule that eats code does more harm than a successor without that code."""
    project = os.path.dirname(os.path.dirname(importlib.util.find_spec("agent_relay").origin))  # type: ignore[union-attr, arg-type, type-var]
    library = sysconfig.get_paths()["stdlib"]
    folders = (os.path.join(library, name) for name in ("asyncio", "email", "http", "urllib", "json", "xml"))
    own = (os.path.join(project, name) for name in ("agent_relay", "adapters", "docs", "examples"))
    top = (os.path.join(library, name) for name in os.listdir(library) if name.endswith(".py"))
    lines, changed = _changed(iter([*_sources(*folders, *own), *top]))
    assert changed == []
    assert lines > 150_000


@pytest.mark.size("every")
@pytest.mark.timed
@pytest.mark.parametrize("part", sized(range(8), [7]))
def test_no_line_of_the_standard_library_and_the_dependencies_is_changed(part: int) -> None:
    """The whole corpus: more than a million lines by other people."""
    paths = sysconfig.get_paths()
    dependencies = [os.path.join(paths["purelib"], name) for name in os.listdir(paths["purelib"])]
    everything = sorted(_sources(paths["stdlib"], *dependencies))
    lines, changed = _changed(iter(everything[part::8]))
    assert changed == []
    assert lines > 100_000


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----\n",
        "eyJhbGciOiJIUzI1NiJ9.",
        "sk-ant-A1",
        "+aB1\n",
        "\\n",
        'token="\\',
        "://a:b@",
        "authorization: ",
    ],
)
def test_a_hostile_text_costs_no_more_than_its_length(unit: str) -> None:
    """Twice the text is about twice the work, whatever the text: no rule goes over it again and again."""

    def cost(characters: int) -> float:
        text = unit * (characters // len(unit))
        best = float("inf")
        for _ in range(3):
            begun = thread_time()
            redact_text(text)
            best = min(best, thread_time() - begun)
        return best

    assert cost(160_000) < 8 * cost(40_000) + 0.05


def test_known_values_vanish_in_every_spelling() -> None:
    """A value from the user's environment has no shape; it is found by itself, in JSON and URLs too."""
    known = frozenset({'swordfish "and" more/é', "zzyzxroad"})
    text = (
        'a swordfish "and" more/é b\n{"a": "swordfish \\"and\\" more/\\u00e9"}\n'
        "?p=swordfish%20%22and%22%20more%2F%C3%A9&zzyzxroad"
    )
    redacted = redact_text(text, known=known)
    assert redacted.text == (
        'a [redacted: known-secret] b\n{"a": "[redacted: known-secret]"}\n'
        "?p=[redacted: known-secret]&[redacted: known-secret]"
    )
    assert redacted.counts == {"known-secret": 4}


def test_known_values_that_are_words_of_code_stay() -> None:
    """`POSTGRES_PASSWORD=postgres` must not eat the name of the database in every line."""
    assert (
        redact_text("import postgres", known=frozenset({"postgres", "short", ""})).text == "import postgres"
    )


def test_counts_are_by_kind() -> None:
    """They become the packet's `redactions`."""
    text = "AKIAQ4ZB2C7DX9EK5LMN and AKIAQ4ZB2C7DX9EK5LMO and postgres://a:Kj8sd72ks@h/d"
    redacted = redact_text(text)
    assert redacted.counts == {"aws-key": 2, "connection-string": 1}
    assert (
        redacted.text
        == "[redacted: aws-key] and [redacted: aws-key] and postgres://a:[redacted: connection-string]@h/d"
    )


@settings(max_examples=150)
@given(
    st.text(),
    st.sampled_from(
        [one.text for one in planted.plant_tokens(7) if one.context in ("prose", "json", "shell")]
    ),
    st.text(),
)
def test_redaction_is_idempotent_on_anything(before: str, secret: str, after: str) -> None:
    """And it never fails, whatever stands around."""
    once = redact_text(f"{before} {secret} {after}").text
    assert redact_text(once).text == once


def test_replaced_python_still_parses() -> None:
    """A quoted secret is replaced inside its quotes, so code around it stays readable."""
    source = 'PASSWORD = "x9!fjK2lp0"\nconnect("db", token="Zk3jd9sLq2mN8vB4xT6y")\n'
    redacted = redact_text(source)
    ast.parse(redacted.text)
    assert redacted.counts == {"password": 1, "token": 1}
