"""The options of `metrics`, and what is loaded before they are answered."""

import re
import subprocess
import sys

import pytest

from agent_relay.faces.cli.metrics import HELP, parse_options
from agent_relay.faces.cli.options import UsageError
from tests.faces.cli_run import World
from tests.house.test_hot_paths import PROBE

WRONG = (
    (["--by"], "--by needs a value"),
    (["--wrong"], "unknown option '--wrong'"),
    (["one", "two"], "unexpected argument 'two'"),
    (["--all", "01M7"], "SESSION and --all cannot be used together"),
    (["--all", "--chain"], "--chain and --all cannot be used together"),
    (["--json", "--csv"], "--json and --csv cannot be used together"),
)


def test_words_are_parsed_as_options() -> None:
    """In any order; what is no option is a session."""
    found = parse_options(["--chain", "codex:a=b", "--by=nothing known", "--csv", "--since", "2w"])
    assert (found.arguments, found.flags) == (["codex:a=b"], {"--chain", "--csv"})
    assert found.values == {"--by": "nothing known", "--since": "2w"}


def test_wrong_words_are_refused() -> None:
    """Nothing is guessed: a report about something else would pass for the one that was meant."""
    for words, sentence in WRONG:
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
def test_an_answer_to_plain_words_loads_no_library_for_words(world: World) -> None:
    """It would be a tenth of the time of a first look at hundreds of megabytes."""
    code = PROBE.format(heavy=("typer", "rich"))
    done = subprocess.run(
        [sys.executable, "-c", code, "metrics", "--all"], cwd=world.cwd, env=world.environ(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "HEAVY"
