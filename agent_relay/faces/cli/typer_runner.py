"""Run a command's functions through typer, if its words need it, with usage errors in our form."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType

import typer

from agent_relay.domain.errors import ExitCode, WrongUseError

Function = Callable[..., int | None]
"""A command; what it returns is its exit status, nothing means done."""
_AS_THEY_ARE = (str, int, float, bool)
"""Defaults of these kinds reach a function unchanged."""
_WrongWords: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
"""What every usage error of typer's is; of its names for them only the one below it is public."""


class LazyFunctions(Mapping[str, Function]):
    """Commands by their word; one given as `module:function` is loaded when it is looked up."""

    def __init__(self, places: Mapping[str, Function | str]) -> None:
        self._places = places

    def __getitem__(self, word: str) -> Function:
        found = self._places[word]
        if not isinstance(found, str):
            return found
        module, _, name = found.partition(":")
        function: Function = getattr(importlib.import_module(module), name)
        return function

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def run_one(function: Function, words: list[str], *, name: str) -> int:
    """Run a command that is one function; return its exit status."""
    said = read_plain(function, words)
    if said is not None:
        return _call(function, said)
    app = _create_app(name)
    app.command(name)(function)
    return _run(app, words, name)


def run_group(functions: Mapping[str, Function], words: list[str], *, name: str, about: str) -> int:
    """Run a command with sub-commands; return its exit status."""
    said = read_plain(functions[words[0]], words[1:]) if words and words[0] in functions else None
    if said is not None:
        return _call(functions[words[0]], said)
    app = _create_app(name)
    app.callback(help=about)(lambda: None)
    # Each may be dear to load; where the first word is one of them, no other can be meant.
    meant = words[:1] if words and words[0] in functions else list(functions)
    for word in meant:
        app.command(word)(functions[word])
    return _run(app, words, name)


def read_plain(function: Function, words: list[str]) -> dict[str, object] | None:
    """Return the arguments typer would pass, if the words are none or `--json`; `None` for all else.

    Most commands are typed like this, and typer loads pydantic, which costs as much as all the rest of them.
    """
    assert isinstance(function, FunctionType)  # noqa: S101 - whose defaults are looked at
    named = function.__kwdefaults__ or {}
    said: dict[str, object] = (
        {"as_json": True} if words == ["--json"] and named.get("as_json") is False else {}
    )
    defaults = [*(function.__defaults__ or ()), *named.values()]
    taken = function.__code__.co_argcount + function.__code__.co_kwonlyargcount
    is_plain = len(defaults) == taken and all(type(value) in _AS_THEY_ARE for value in defaults)
    return said if is_plain and len(words) == len(said) else None


def _call(function: Function, said: Mapping[str, object]) -> int:
    """Call the function; return its exit status as typer would, in whatever way it ends."""
    try:
        end = function(**said)
    except typer.Exit as way_out:
        end = way_out.exit_code
    except EOFError:
        sys.stderr.write("\n")
        return ExitCode.INTERRUPTED
    sys.stdout.flush()
    return ExitCode.DONE if end is None else end


def _create_app(name: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
    )


def _run(app: typer.Typer, words: list[str], name: str) -> int:
    """Run the app and return its exit status; raise WrongUseError, in our form, for words it rejects."""
    try:
        end: object = app(words, prog_name=f"agent-relay {name}", standalone_mode=False)
    except _WrongWords as error:
        path = error.ctx.command_path if error.ctx is not None else f"agent-relay {name}"
        message = " ".join(error.format_message().split()).rstrip(".")
        sentence = f"{path.partition(' ')[2]}: {message[:1].lower()}{message[1:]}"
        raise WrongUseError(sentence, hint=f"See: {path} --help") from None
    except typer.Abort:
        return ExitCode.INTERRUPTED
    sys.stdout.flush()
    return end if isinstance(end, int) else ExitCode.DONE
