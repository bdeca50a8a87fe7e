"""What is understood without typer is what typer would have understood."""

import functools
import importlib
import inspect

import pytest
import typer

from agent_relay.faces.cli.commands import COMMANDS, PACKAGE
from agent_relay.faces.cli.typer_runner import Function, LazyFunctions, read_plain, run_group, run_one


def list_functions() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for name, (place, _, _) in COMMANDS.items():
        module = place.partition(":")[0]
        full = module if module.startswith("agent_relay.") else f"{PACKAGE}.{module}"
        functions: dict[str, Function] = getattr(importlib.import_module(full), "FUNCTIONS", {})
        found |= {f"{name} {word}".strip(): function for word, function in functions.items()}
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


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["nothing", "json"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_words_that_need_no_typer_mean_what_typer_makes_of_them(name: str, words: list[str]) -> None:
    """Two ways to understand one command must not come apart."""
    function = FUNCTIONS[name]
    said = read_plain(function, words)
    if said is not None:
        defaults = {one.name: one.default for one in inspect.signature(function).parameters.values()}
        assert ask_typer(function, words) == {**defaults, **said}


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


def fail(*, as_json: bool = False) -> int:
    return 7 if as_json else 1


@pytest.mark.parametrize(("function", "status"), [(leave, 69), (hear_nothing, 130), (fail, 1)])
def test_a_command_called_without_typer_ends_as_with_it(function: Function, status: int) -> None:
    """Scripts go by the status."""
    assert run_one(function, [], name="some") == status
    assert run_group({"one": function}, ["one"], name="some", about="Some.") == status
    assert run_group({"one": function, "two": fail}, ["two", "--json"], name="some", about="Some.") == 7


def test_a_function_is_loaded_when_its_word_is_said() -> None:
    """And the others are named in the help all the same."""
    functions = LazyFunctions({"here": fail, "there": "tests.faces.not_there:function"})
    assert (list(functions), len(functions), functions["here"]) == (["here", "there"], 2, fail)
    assert run_group(functions, ["here"], name="some", about="Some.") == 1
    with pytest.raises(ModuleNotFoundError):
        functions["there"]
