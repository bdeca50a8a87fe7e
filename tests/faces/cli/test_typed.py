"""What is understood without typer is what typer would have understood."""

import functools
import inspect
from typing import Annotated

import pytest
import typer

from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.options import UsageError
from agent_relay.faces.cli.session.handoff import HANDOFF
from agent_relay.faces.cli.typer_runner import (
    Function,
    Functions,
    load_function,
    load_functions,
    read_plain,
    run_functions,
)


def list_functions() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for name, command in COMMANDS.items():
        functions = HANDOFF if name == "handoff" else load_functions(command)
        found |= {f"{name} {word}".strip(): load_function(one) for word, one in functions.items()}
    return found


FUNCTIONS = list_functions()


def ask_typer(function: Function, words: list[str]) -> dict[str, object] | None:
    """What typer gives the function for the words; `None` where it refuses them."""
    heard: list[dict[str, object]] = []

    @functools.wraps(function)
    def record(*given: object, **named: object) -> None:
        assert not given
        heard.append(named)

    app = typer.Typer(add_completion=False)
    app.command()(record)
    try:
        app(words, standalone_mode=False)
    except typer.BadParameter.__mro__[1]:
        return None
    return heard[0]


def test_words_that_need_no_typer_mean_what_typer_makes_of_them() -> None:
    """Two ways to understand one command must not come apart."""
    apart = []
    for name, function in FUNCTIONS.items():
        defaults = {one.name: one.default for one in inspect.signature(function).parameters.values()}
        for words in ([], ["--json"]):
            said = read_plain(function, words)
            if said is not None and ask_typer(function, words) != {**defaults, **said}:
                apart.append((name, words, said))
    assert apart == []


def test_most_commands_are_understood_so() -> None:
    """Were there none, the test above would say nothing."""
    plain = [name for name, function in FUNCTIONS.items() if read_plain(function, []) is not None]
    assert {"sessions", "stop", "daemon stop", "handoff list", "limits", "doctor"} <= {*plain}
    assert read_plain(FUNCTIONS["daemon stop"], ["--json"]) == {"as_json": True}
    assert read_plain(FUNCTIONS["daemon stop"], ["--yes"]) is None
    assert read_plain(FUNCTIONS["packet build"], []) is None


def leave() -> None:
    raise typer.Exit(69)


def hear_nothing() -> None:
    raise EOFError


def give_up() -> None:
    raise typer.Abort


def fail(*, as_json: bool = False) -> int:
    return 7 if as_json else 1


def test_a_command_called_without_typer_ends_as_with_it() -> None:
    """Scripts go by the status."""
    for function, status in ((leave, 69), (hear_nothing, 130), (give_up, 130), (fail, 1)):
        both = {"": function, "two": fail}
        for functions, words in (({"": function}, []), ({"one": function}, ["one"]), (both, [])):
            assert run_functions(functions, words, name="some", about="some") == status
        assert run_functions(both, ["two", "--json"], name="some", about="some") == 7


def test_a_function_is_loaded_when_its_word_is_said() -> None:
    """And the others are named in the help all the same."""
    functions: Functions = {"here": fail, "there": "tests.faces.not_there:function"}
    assert run_functions(functions, ["here"], name="some", about="some") == 1
    with pytest.raises(ModuleNotFoundError):
        run_functions(functions, ["there"], name="some", about="some")


def test_the_table_of_commands_names_every_sub_command() -> None:
    """Completion and the help behind the relay key go by the table, the command line by the functions.

    A word that only the functions know would be a FOCUS elsewhere: `/handoff narrative` handed the work over.
    """
    for name, command in COMMANDS.items():
        words = [word for word in (HANDOFF if name == "handoff" else load_functions(command)) if word]
        assert sorted(command.words) == sorted(words)


def paint(colour: Annotated[str, typer.Option("--colour")] = "", *, fast: bool = False) -> None:
    raise AssertionError(f"it was done: {colour} {fast}")


def test_wrong_words_are_refused_as_by_commands_without_typer() -> None:
    """One form for all, with the sub-command's own name and the option that may be meant."""
    several: Functions = {"shed": paint, "door": fail}
    for words, sentence, meant in (
        (["--color", "red"], "unknown option '--color'", "Did you mean --colour? "),
        (["--zzz"], "unknown option '--zzz'", ""),
        (["--fast=1"], "option '--fast' does not take a value", ""),
        (["--colour"], "--colour needs a value", ""),
    ):
        for functions, before, name in (({"": paint}, [], "some"), (several, ["shed"], "some shed")):
            with pytest.raises(UsageError) as caught:
                run_functions(functions, [*before, *words], name="some", about="some")
            error = caught.value
            assert (error.sentence, error.command) == (sentence, name)
            assert error.hint == f"{meant}See: agent-relay {name} --help"


def test_help_is_asked_for_in_two_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """`-h` worked for half of the commands."""
    for option in ("-h", "--help"):
        assert run_functions({"": paint}, [option], name="some", about="some") == 0
        assert capsys.readouterr().out.startswith("Usage: agent-relay some")
