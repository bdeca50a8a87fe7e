"""The options of `metrics`, and what is loaded before they are answered."""

import re
import subprocess
import sys

import pytest

from agent_relay.faces.cli.metrics import HELP, parse_options
from agent_relay.faces.cli.options import UsageError
from tests.faces.cli_run import create_world
from tests.house.test_hot_paths import PROBE

PLAIN: list[tuple[list[str], list[str], set[str], dict[str, str]]] = [
    ([], [], set(), {}),
    (["--all"], [], {"--all"}, {}),
    (
        ["--all", "--by", "day", "--agent", "codex", "--json"],
        [],
        {"--all", "--json"},
        {"--by": "day", "--agent": "codex"},
    ),
    (["--chain", "01M7"], ["01M7"], {"--chain"}, {}),
    (["01M7", "--chain", "--csv"], ["01M7"], {"--chain", "--csv"}, {}),
    (["--since", "7d", "--since", "2w", "--json", "--json"], [], {"--json"}, {"--since": "2w"}),
    (["", "--by", ""], [""], set(), {"--by": ""}),
    (["--by=nothing known", "--csv"], [], {"--csv"}, {"--by": "nothing known"}),
    (["codex:a=b"], ["codex:a=b"], set(), {}),
]
WRONG = (
    (["--by"], "--by needs a value"),
    (["--wrong"], "unknown option '--wrong'"),
    (["--al"], "unknown option '--al'"),
    (["one", "two"], "unexpected argument 'two'"),
    (["--all", "01M7"], "SESSION and --all cannot be used together"),
    (["--all", "--chain"], "--chain and --all cannot be used together"),
    (["--json", "--csv"], "--json and --csv cannot be used together"),
)


@pytest.mark.parametrize(
    ("words", "arguments", "flags", "values"),
    PLAIN,
    ids=lambda one: " ".join(one) if type(one) is list else "",
)
def test_words_are_parsed_as_options(
    words: list[str], arguments: list[str], flags: set[str], values: dict[str, str]
) -> None:
    """Whatever order they come in; the last of two values counts."""
    found = parse_options(words)
    assert (found.arguments, found.flags, found.values) == (arguments, flags, values)


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_wrong_words_are_refused(words: list[str], sentence: str) -> None:
    """Nothing is guessed: a report about something else would pass for the one that was meant."""
    with pytest.raises(UsageError) as caught:
        parse_options(words)
    assert (caught.value.command, caught.value.sentence) == ("metrics", sentence)


def test_the_help_names_every_option() -> None:
    """Each is taken; who asks for help gets it also where options exclude each other."""
    for words in (["--help"], ["--all", "--help"], ["-h", "--all", "--chain"]):
        assert parse_options(words).wants_help
    named = set(re.findall(r"^  (--[a-z]+)", HELP, re.MULTILINE))
    assert named == {"--chain", "--all", "--by", "--since", "--agent", "--json", "--csv"}


@pytest.mark.size("test")
def test_an_answer_to_plain_words_loads_no_library_for_words(tmp_path: object) -> None:
    """It would be a tenth of the time of a first look at hundreds of megabytes."""
    world = create_world(f"{tmp_path}")
    code = PROBE.format(heavy=("typer", "rich"))
    done = subprocess.run(
        [sys.executable, "-c", code, "metrics", "--all"], cwd=world.cwd, env=world.environ(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "HEAVY"
