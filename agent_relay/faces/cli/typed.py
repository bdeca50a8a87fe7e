"""Runs a cold command's functions through typer, which is only loaded here; its usage errors become ours."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping

import typer

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.domain.loading import leave_out_plugins

Function = Callable[..., int | None]
"""A command; what it returns is its exit status, nothing means done."""
leave_out_plugins()
_WrongWords: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
"""What every usage error of typer's is; of its names for them only the one below it is public."""


class LateFunctions(Mapping[str, Function]):
    """Commands by their word; one that is given as `module:function` is loaded when it is asked for."""

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
    """The exit status of a command that is one function."""
    app = _create_app(name)
    app.command(name)(function)
    return _run(app, words, name)


def run_group(functions: Mapping[str, Function], words: list[str], *, name: str, about: str) -> int:
    """The exit status of a command with sub-commands."""
    app = _create_app(name)
    app.callback(help=about)(lambda: None)
    # Each may be dear to load; where the first word is one of them, no other can be meant.
    meant = words[:1] if words and words[0] in functions else list(functions)
    for word in meant:
        app.command(word)(functions[word])
    return _run(app, words, name)


def _create_app(name: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
    )


def _run(app: typer.Typer, words: list[str], name: str) -> int:
    """The exit status. Raises WrongUseError, in our form, for words typer cannot use."""
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
