"""Find the command for the first word, run it, and turn errors into a sentence and an exit code."""

import errno
import os
import sys

from agent_relay.domain.errors import DaemonUnreachableError, ExitCode, RelayError
from agent_relay.domain.names import KEY_VARIABLE
from agent_relay.faces.cli.commands import COMMANDS, Command
from agent_relay.faces.cli.options import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SETTINGS_BYTES = 1 << 16
BROKEN_PIPE = 141
"""The status a shell shows for a program that SIGPIPE ended."""
_EXIT_AT_ONCE = frozenset({"metrics"})
"""Commands that leave nothing to be done, but much in memory: to give it back takes a fortieth of a look."""
OUTPUT = frozenset({errno.EPIPE, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def run(words: list[str]) -> int:
    """Run the command that `words` name; return its exit status."""
    _adapt_hints_to_place()
    return guard(lambda: _find(words)(words[1:]), words)


def _adapt_hints_to_place() -> None:
    """Print commands as they are typed behind the relay key, if this process was started there."""
    # Nothing that is started from here is.
    session = os.environ.pop(KEY_VARIABLE, "")
    if session:
        from functools import partial

        from agent_relay.domain.text.hints import render_at_key
        from agent_relay.faces.render.output import HintStyle

        HintStyle.render = partial(render_at_key, session=session)


def leave(words: list[str], status: int) -> int:
    """Return `status`, or exit with it at once if the command leaves nothing else to be done."""
    if words[0] in _EXIT_AT_ONCE:
        # What it printed is out: `guard` flushed the one stream, and the other is written line by line.
        os._exit(status)
    return status


def guard(command: "Callable[[], int]", words: list[str]) -> int:
    """Run `command` and return its exit status; report an error, and return that error's status instead.

    `words` name the command in a crash report.
    """
    _keep_writing()
    _collect_children()
    try:
        status = command()
        sys.stdout.flush()
    except RelayError as error:
        return _print_error(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except ImportError as error:
        return report_bug(error, words) if os.path.exists(__file__) else _print_error(_build_gone_error())
    except OSError as error:
        return report_output(error) if error.errno in OUTPUT else report_trouble(error, words)
    except Exception as error:  # noqa: BLE001 - the failure reporter: every bug ends here, in one form
        return report_trouble(error, words)
    return status


def report_output(error: OSError) -> int:
    """Return the exit status for output that failed: its reader is gone, or what holds it is full.

    The error is printed unless the reader is gone.
    """
    # Closing must not fail a second time.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:
        return BROKEN_PIPE
    return _print_error(RelayError(f"nothing more can be written: {error.strerror}"))


def _print_error(error: RelayError) -> int:
    """Print `error` and return its exit status, even if what prints errors was uninstalled meanwhile."""
    try:
        from agent_relay.faces.render.output import print_error
    except ImportError:
        sys.stderr.write(f"agent-relay: {error.sentence}\n  {error.hint}\n")
        return int(error.code)
    return print_error(error, command=error.command if isinstance(error, UsageError) else "")


def _build_gone_error() -> RelayError:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return DaemonUnreachableError(
        f"agent-relay is no longer installed in {package}, so this command cannot go on",
        hint="If it was moved or upgraded, run agent-relay again; else install it again",
    )


def missing_extra(error: ModuleNotFoundError, extra: str) -> RelayError:
    """Return an error that names the missing module and the extra that brings it.

    Raises `error` itself if the module is one of ours.
    """
    if error.name is None or error.name.startswith("agent_relay"):
        raise error
    from agent_relay.domain.errors import ConfigurationError

    hint = f"It comes with: {render_extra_install(extra)}"
    return ConfigurationError(f"{error.name} is not installed", hint=hint)


def render_extra_install(extra: str) -> str:
    """Return the command that adds the extra to this installation, however it was made."""
    from agent_relay.domain.text.hints import render_install
    from agent_relay.system.disk.files import read_bounded

    try:
        path = os.path.join(sys.prefix, "pyvenv.cfg")
        settings = read_bounded(path, limit_bytes=_SETTINGS_BYTES).decode("utf-8", "replace")
    except (OSError, RelayError):
        settings = ""
    return render_install(
        extra, prefix=sys.prefix, base_prefix=sys.base_prefix, executable=sys.executable, settings=settings
    )


def report_trouble(error: Exception, words: list[str]) -> int:
    """Report what stopped the command, the machine's state or a bug of ours; return the exit status."""
    trouble = _build_outer_error(error)
    if trouble is None:
        return report_bug(error, words)
    from agent_relay.faces.render.output import print_error

    return print_error(trouble)


def _build_outer_error(error: Exception) -> RelayError | None:
    """Return the error to print if the cause lies outside of relay; `None` for any other.

    Such causes are a working folder or a daemon that is gone, and a machine short of resources.
    """
    from agent_relay.system.disk.folders import get_cwd
    from agent_relay.system.failures import find_passing

    if isinstance(error, FileNotFoundError):
        try:
            get_cwd()  # what a relative path is looked up from may be gone
        except RelayError as gone:
            return gone
    if isinstance(error, ConnectionError):
        return DaemonUnreachableError("the daemon ended before it had answered", hint="Try again.")
    if lacking := find_passing(error):
        why = f"this machine is short of something just now: {lacking}"
        return RelayError(why, hint="Close some programs, and try again.")
    return None


def _find(words: list[str]) -> "Callable[[list[str]], int]":
    """Return the function for the first word: a command's, else the one that takes it as an agent's name."""
    if not words or words[0] in {"-h", "--help", "help"}:
        return _help
    if words[0] == "agent":
        # The long form, for an agent that is called like a command.
        from agent_relay.faces.cli.session.agent import run_named

        return run_named
    known = COMMANDS.get(words[0])
    if known is not None:
        return _load_command(known)
    from agent_relay.faces.cli.session.agent import run_agent

    return lambda rest: run_agent(words[0], rest)


def _load_command(command: Command) -> "Callable[[list[str]], int]":
    """Return the function that runs the command with its words."""
    found = command.load()
    if command.takes_words:
        return found
    from agent_relay.faces.cli.typer_runner import run_functions

    functions = found if isinstance(found, dict) else {"": found}
    return lambda rest: run_functions(functions, rest, name=command.name, about=command.about)


def _help(rest: list[str]) -> int:
    """Print the help of the command in `rest`, or of all."""
    if rest and not rest[0].startswith("-"):
        return _find(rest)([*rest[1:], "--help"])
    from agent_relay.faces.cli.command_help import render_help

    sys.stdout.write(render_help())
    return ExitCode.DONE


def report_bug(error: Exception, words: list[str]) -> int:
    """Write a crash report and print where it is; return the exit status.

    The report names a known command at most, never what the user typed.
    """
    from datetime import UTC, datetime

    from agent_relay import __version__
    from agent_relay.system.crash_reports import write_crash
    from agent_relay.system.disk.folders import get_folders

    doing = words[0] if words and words[0] in COMMANDS else "a command"
    try:
        folder = get_folders().crashes
    except RelayError:
        folder = ""
    path = folder and write_crash(folder, error, at=datetime.now(UTC), version=__version__, doing=doing)
    where = f"A report without contents, ready to paste into an issue: {path}" if path else ""
    sys.stderr.write(f"agent-relay: internal error ({type(error).__name__}) in {doing}; please report it\n")
    if where:
        sys.stderr.write(f"  {where}\n")
    return ExitCode.OUR_BUG


def _collect_children() -> None:
    """Set SIGCHLD to its default, so that programs we start can be waited for.

    The process that started us may ignore SIGCHLD: the kernel then reaps our children itself, and every
    program below us inherits that (signal(7)). `_signal` is the C part of `signal`, which also loads `enum`,
    a third of a bare Python.
    """
    try:
        from _signal import SIG_DFL, SIGCHLD, signal  # type: ignore[import-not-found]  # typeshed lacks it
    except ImportError:
        from signal import SIG_DFL, SIGCHLD, signal
    signal(SIGCHLD, SIG_DFL)


def _keep_writing() -> None:
    """Make sure that neither names on disk that are not text nor closed streams cause an error."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # Closed by whoever started us: the lowest free number is the stream's own, and no socket's then.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole run
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
