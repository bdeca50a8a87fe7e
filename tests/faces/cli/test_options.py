"""The options of commands that start without typer, `metrics` among them, and what is loaded for them."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from agent_relay.faces.cli.metrics import HELP, parse_options
from agent_relay.faces.cli.options import OptionParser, UsageError
from agent_relay.faces.cli.session.run import run_chat, run_turn
from agent_relay.faces.render.output import print_error
from tests.faces.cli_run import World
from tests.house.test_hot_paths import PROBE

PARSER = OptionParser(
    "paint", flags=("--fast",), values=("--colour", "-n"), lists=("--with",), takes_rest=True, most=2, free=1
)


def test_words_are_flags_values_lists_and_arguments() -> None:
    """In any order; the last value counts, and a list keeps all."""
    found = PARSER.parse(
        ["shed", "--with", "brush", "--colour=red", "--fast", "--with=care", "--colour", "blue"]
    )
    assert (found.arguments, found.flags, found.values) == (["shed"], {"--fast"}, {"--colour": "blue"})
    assert (found.lists, found.rest, found.wants_help) == ({"--with": ["brush", "care"]}, None, False)


def test_what_follows_two_dashes_is_for_somebody_else() -> None:
    """Also words that look like options, or ask for help."""
    found = PARSER.parse(["shed", "--", "--fast", "--help"])
    assert (found.arguments, found.flags, found.rest) == (["shed"], set(), ["--fast", "--help"])
    assert not found.wants_help


def test_an_argument_that_may_be_any_text_may_begin_with_a_dash() -> None:
    """A task is what a person wrote; a lone dash stands for standard input anywhere."""
    assert PARSER.parse(["shed", "-- or not --"]).arguments == ["shed", "-- or not --"]
    assert PARSER.parse(["-"]).arguments == ["-"]


def test_who_asks_for_help_gets_it_however_many_arguments_are_there() -> None:
    """How many there may be is what they want to know."""
    for words in (["--help"], ["shed", "-h"], ["a", "b", "c", "--help"], ["--help", "--fast"]):
        assert PARSER.parse(words).wants_help, words


def test_what_follows_an_option_is_its_value() -> None:
    """A task may be `-h`: help in its place, with status 0, passed for work that was done."""
    for value in ("-h", "--help", "--", "--fast", "-"):
        found = PARSER.parse(["--colour", value, "shed"])
        assert (found.values, found.arguments) == ({"--colour": value}, ["shed"])
        assert (found.wants_help, found.flags, found.rest) == (False, set(), None)


def test_two_dashes_end_the_options() -> None:
    """Of a command that starts no agent, what follows them are arguments."""
    parser = OptionParser("count", flags=("--json",), most=1)
    found = parser.parse(["--json", "--", "--x"])
    assert (found.arguments, found.flags, found.rest) == (["--x"], {"--json"}, None)
    assert parser.parse(["--json", "--"]).arguments == []


def test_a_misspelt_option_is_told_from_an_unknown_one() -> None:
    """As a misspelt command is."""
    meant = {"--fats": "Did you mean --fast? ", "--color=red": "Did you mean --colour? ", "--zzz": ""}
    for word, words in meant.items():
        with pytest.raises(UsageError) as caught:
            PARSER.parse([word])
        assert caught.value.hint == f"{words}Options of the agent itself go after --, at the end"


def test_wrong_use_is_reported_in_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    """It names the command, as programs of the shell do, and its help."""
    for words, sentence in (
        (["--nope"], "unknown option '--nope'"),
        (["--fast=yes"], "option '--fast' does not take a value"),
        (["--nope", "-h"], "unknown option '--nope'"),
        (["--help", "--nope"], "unknown option '--nope'"),
        (["--colour"], "--colour needs a value"),
        (["a", "b", "c"], "unexpected argument 'c'"),
    ):
        with pytest.raises(UsageError) as caught:
            PARSER.parse(words)
        assert print_error(caught.value, command=caught.value.command) == 2
        assert capsys.readouterr().err.splitlines()[0] == f"agent-relay paint: {sentence}"
        assert caught.value.hint


@pytest.mark.parametrize("command", [run_turn, run_chat])
def test_a_schema_is_printed_alone(command: Callable[[list[str]], int]) -> None:
    """With a task beside it, status 0 passed for work that was done."""
    for words in (["--schema", "x"], ["demo", "t", "--schema"], ["--schema", "--continue", "S"]):
        with pytest.raises(UsageError, match="and --schema cannot be used together"):
            command(words)
    assert command(["--schema", "--json"]) == command(["--schema"]) == 0


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
