"""Run a command's functions through typer, if its words need it, with usage errors in our form."""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Annotated

import typer

from agent_relay.domain.errors import ExitCode
from agent_relay.faces.cli.commands import Command
from agent_relay.faces.cli.options import UsageError, suggest

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
"""The option that most commands have."""
Function = Callable[..., int | None]
"""A command; what it returns is its exit status, nothing means done."""
Functions = Mapping[str, Function | str]
"""Functions by sub-command, the command's own under ""; `module:function` is loaded when needed."""
_AS_THEY_ARE = (str, int, float, bool)
"""Defaults of these kinds reach a function unchanged."""
_WrongWords: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
"""Base of every usage error of typer's; of its names for them only the one below it is public."""
_FORMS = (
    (re.compile(r"no such option: (\S+).*"), r"unknown option '\1'"),
    (re.compile(r"option '(\S+)' requires an argument"), r"\1 needs a value"),
    (re.compile(r"no such command (\S+)"), r"unknown command \1"),
    (re.compile(r"got unexpected extra argument(?:s|\(s\))? \((\S+).*\)"), r"unexpected argument '\1'"),
)
"""Our words for what typer says of wrong words, so that every command says it alike."""


def run_functions(functions: Functions, words: list[str], *, name: str, about: str) -> int:
    """Run the sub-command that `words` begin with, or else the command itself; return its exit status."""
    is_named = bool(words) and words[0] != "" and words[0] in functions
    if "" in functions and not is_named:
        return _run_one(load_function(functions[""]), words, name)
    if is_named:
        given = read_plain(load_function(functions[words[0]]), words[1:])
        if given is not None:
            return _call(load_function(functions[words[0]]), given)
    app = _create_app(name)
    app.callback(help=f"{about[:1].upper()}{about[1:]}.")(lambda: None)
    # Each may be dear to load; where the first word is one of them, no other can be meant.
    for word in words[:1] if is_named else filter(None, functions):
        function = load_function(functions[word])
        # Typer cuts what it takes from a docstring itself.
        app.command(word, short_help=(function.__doc__ or "").partition("\n")[0])(function)
    return _run(app, words, name, word=words[0] if is_named else "")


def load_functions(command: Command) -> dict[str, Function]:
    """Return the command's functions by sub-command; none for one that typer does not run."""
    found = command.load()
    functions = found if isinstance(found, dict) else {"": found}
    return {} if command.takes_words else {word: load_function(one) for word, one in functions.items()}


def load_function(function: Function | str) -> Function:
    """Return the function, loaded if it is named."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Function = getattr(importlib.import_module(module), name)
    return found


def _run_one(function: Function, words: list[str], name: str) -> int:
    given = read_plain(function, words)
    if given is not None:
        return _call(function, given)
    app = _create_app(name)
    app.command(name)(function)
    return _run(app, words, name)


def read_plain(function: Function, words: list[str]) -> dict[str, object] | None:
    """Return the arguments typer would pass, if the words are none or `--json`; `None` for all else.

    Most commands are typed like this, and typer loads pydantic, which costs as much as all the rest of them.
    """
    assert isinstance(function, FunctionType)  # noqa: S101 - whose defaults are looked at
    named = function.__kwdefaults__ or {}
    given: dict[str, object] = (
        {"as_json": True} if words == ["--json"] and named.get("as_json") is False else {}
    )
    defaults = [*(function.__defaults__ or ()), *named.values()]
    taken = function.__code__.co_argcount + function.__code__.co_kwonlyargcount
    is_plain = len(defaults) == taken and all(type(value) in _AS_THEY_ARE for value in defaults)
    return given if is_plain and len(words) == len(given) else None


def _call(function: Function, given: Mapping[str, object]) -> int:
    """Call the function; return its exit status as typer would, in whatever way it ends."""
    try:
        end = function(**given)
    except typer.Exit as way_out:
        end = way_out.exit_code
    except (EOFError, typer.Abort):
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
        context_settings={"help_option_names": ["--help", "-h"]},
    )


def _run(app: typer.Typer, words: list[str], name: str, *, word: str = "") -> int:
    """Run the app and return its exit status; raise UsageError for words it rejects.

    `word` is the sub-command, if it is known.
    """
    try:
        end: object = app(words, prog_name=f"agent-relay {name}", standalone_mode=False)
    except _WrongWords as error:
        path = error.ctx.command_path if error.ctx is not None else ""
        meant = suggest(str(getattr(error, "option_name", "")), getattr(error, "possibilities", None) or ())
        message = " ".join(error.format_message().split()).rstrip(".")
        message = f"{message[:1].lower()}{message[1:]}"
        for pattern, form in _FORMS:
            message = pattern.sub(form, message)
        # Of an option without its value typer names the sub-command's parent, or nothing.
        command = max(path.partition(" ")[2], f"{name} {word}".rstrip(), key=len)
        hint = f"{meant}See: agent-relay {command} --help"
        raise UsageError(message, hint=hint, command=command) from None
    except typer.Abort:
        return ExitCode.INTERRUPTED
    sys.stdout.flush()
    return end if isinstance(end, int) else ExitCode.DONE
