"""Which values of an environment or a `.env` file are secret wherever they stand."""

from agent_relay.redact.known_values import collect_known, parse_settings

DOTENV = """\
# a comment
DEBUG=true
export DB_PASSWORD="swordfish99"
POSTGRES_PASSWORD=postgres
DATABASE_URL=postgres://app:qwe%21rtyzz@host/db
APP_URL=https://example.com/path
LOG_LEVEL=warning-and-more
SESSION=x8fj3kd93jf8sk2lsl30
OPENAI_API_KEY=made-up-12345678 # trailing
PEM_KEY="short line
MIIEvQIBADANBgkqhkiG9w0BAQEFAAS"
SINGLE='a b#c d e f'
TOKEN_SINGLE='a b#c d e f'
MAX_TOKENS=100000000
KEY_PATH=/home/me/.ssh/id
not a setting
"""


def test_a_dotenv_file_is_read_as_shells_read_it() -> None:
    """Quotes, `export`, comments and values over several lines."""
    settings = dict(parse_settings(DOTENV))
    assert settings["DB_PASSWORD"] == "swordfish99"
    assert settings["OPENAI_API_KEY"] == "made-up-12345678"
    assert settings["PEM_KEY"] == "short line\nMIIEvQIBADANBgkqhkiG9w0BAQEFAAS"
    assert settings["SINGLE"] == "a b#c d e f"
    assert "not a setting" not in settings


def test_telling_names_and_generated_values_are_known() -> None:
    """Common words, paths, numbers and plain addresses are not: code is full of them."""
    assert collect_known(parse_settings(DOTENV), from_file=True) == {
        "swordfish99",
        "postgres://app:qwe%21rtyzz@host/db",
        "qwe%21rtyzz",
        "qwe!rtyzz",
        "x8fj3kd93jf8sk2lsl30",
        "made-up-12345678",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAAS",
        "a b#c d e f",
    }


def test_the_environment_counts_by_name() -> None:
    """Of the hundred variables of a shell, a handful are secrets."""
    rows = {
        "ANTHROPIC_API_KEY": True,
        "GITHUB_TOKEN": True,
        "MY_SECRET": True,
        "PGPASSWORD": True,
        "SMTP_PASS": True,
        "AWS_SECRET_ACCESS_KEY": True,
        "npm_config__auth": True,
        "PWD": False,
        "SSH_AUTH_SOCK": False,
        "KEYBOARD_LAYOUT": False,
        "TOKENIZERS_PARALLELISM": False,
        "COMPASS_SETTING": False,
        "GPG_KEY": False,
        "SOME_KEY_FILE": False,
        "HOSTNAME": False,
    }
    assert {name: bool(collect_known([(name, "swordfish-trail")], from_file=False)) for name in rows} == rows


def test_torn_and_odd_files_are_read_as_far_as_they_go() -> None:
    """A quote that is never closed takes the rest; nothing fails."""
    assert dict(parse_settings("A='b\nc\n")) == {"A": "b\nc"}
    assert collect_known([("API_KEY", "/etc/keys/api"), ("API_KEY", "")], from_file=True) == frozenset()
