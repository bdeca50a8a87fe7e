"""The options of commands that start without typer."""

import pytest

from agent_relay.faces.cli.options import OptionParser, UsageError
from agent_relay.faces.render.output import print_error

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


@pytest.mark.parametrize("words", [["--help"], ["shed", "-h", "--nope"], ["--colour", "--help"]])
def test_who_asks_for_help_gets_it_whatever_else_is_there(words: list[str]) -> None:
    """A mistake beside it is why they ask."""
    assert PARSER.parse(words).wants_help


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--nope"], "unknown option '--nope'"),
        (["--fast=yes"], "unknown option '--fast=yes'"),
        (["--colour"], "--colour needs a value"),
        (["a", "b", "c"], "unexpected argument 'c'"),
    ],
)
def test_wrong_use_is_reported_in_one_form(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the command, as programs of the shell do, and its help."""
    with pytest.raises(UsageError) as caught:
        PARSER.parse(words)
    assert print_error(caught.value, command=caught.value.command) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"agent-relay paint: {sentence}"
    assert caught.value.hint
