"""Runs a cold command's functions through typer, which is only loaded here; its usage errors exit 2."""

import sys
from collections.abc import Callable, Mapping

import typer

Function = Callable[..., None]


def run_one(function: Function, words: list[str], *, name: str) -> int:
    """The exit status of a command that is one function."""
    app = _create_app(name)
    app.command(name)(function)
    return _run(app, words, name)


def run_group(functions: Mapping[str, Function], words: list[str], *, name: str, about: str) -> int:
    """The exit status of a command with sub-commands."""
    app = _create_app(name)
    app.callback(help=about)(lambda: None)
    for word, function in functions.items():
        app.command(word)(function)
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
    """Runs in standalone mode, where typer prints its own usage errors and turns Ctrl-C into 130."""
    try:
        app(words, prog_name=f"agent-relay {name}", standalone_mode=True)
    except SystemExit as end:
        sys.stdout.flush()
        return end.code if isinstance(end.code, int) else 0
    return 0
