"""`agent-relay demo`: a real handoff between two scripted agents, in a temporary folder.

The folder holds a home of relay's own, two agents in order and a small git project with a task in it. The
product's own command runs there in a PTY and is typed into as a person would; its output goes to this
terminal unchanged, or to a log as plain rows. However the demo ends, its session, daemon and folder are
removed.
"""

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, NoReturn, Self, TextIO

import pexpect
import typer

from agent_relay.client.autostart import stop_daemon
from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.client.turn_follower import SIGNALS, Interrupted, SignalTrap
from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import HOME_VARIABLE
from agent_relay.faces.render.output import is_fancy, print_json, print_lines
from agent_relay.store.packets import list_packets, read_packet
from agent_relay.store.session_index import read_live_at, read_sessions_at
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.disk.folders import get_folders
from agent_relay.system.git.run import GitMissingError, ask_git

FIRST_PROMPT = "Make greet() polite: say Good day and the name. Keep the tests green."
SECOND_PROMPT = "Now fix the greeting of nobody."
GREET = '''"""Greets."""


def greet(name):
    return "hello"
'''
TEST_GREET = '''"""Tests of the greeting."""

import unittest

from greet import greet


class Greeting(unittest.TestCase):
    def test_a_name(self):
        self.assertEqual(greet("Ada"), "Good day, Ada!")

    def test_nobody(self):
        self.assertEqual(greet(""), "Good day!")
'''
_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "USER",
    "LOGNAME",
)


def prepare_home(folder: str) -> dict[str, str]:
    """Create relay's home below `folder`; return an environment that keeps relay and its agents in there.

    From the user's environment it takes only what programs need, such as PATH, HOME and TERM.
    """
    home = os.path.join(folder, "home")
    config = os.path.join(home, "config")
    os.makedirs(config, mode=0o700)
    os.chmod(home, 0o700)
    with open(os.path.join(config, "config.toml"), "w", encoding="utf-8") as stream:
        stream.write('order = ["demo", "understudy"]\n')
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    python = os.path.dirname(os.path.abspath(sys.executable))
    return environ | {
        "PATH": f"{python}{os.pathsep}{environ.get('PATH', os.defpath)}",
        "TERM": environ.get("TERM") or "xterm-256color",
        HOME_VARIABLE: home,
        "DEMO_AGENT_HOME": os.path.join(folder, "agents"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def create_project(folder: str, environ: dict[str, str]) -> str:
    """Create a project with one commit below `folder`; return its path. Without git it is a plain folder."""
    project = os.path.join(folder, "project")
    os.makedirs(project)
    for name, text in (("greet.py", GREET), ("test_greet.py", TEST_GREET)):
        with open(os.path.join(project, name), "w", encoding="utf-8") as stream:
            stream.write(text)
    who = ("-c", "user.name=demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false")
    with contextlib.suppress(GitMissingError):
        for words in (
            ("init", "-q", "-b", "main"),
            ("add", "."),
            (*who, "commit", "-q", "-m", "A greeting."),
        ):
            ask_git(project, words, environ=environ)
    return project


_CONTROL = re.compile(
    r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[ -/]*[0-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f]"
)
_BEGIN = re.compile(r"\n|\x1b\[\d{0,5}(?:;1)?H")
"""The beginning of a row: the end of the one above, or the cursor put on its first column."""
_LONGEST_CONTROL = 4096
_RECENT = 100


class PlainLog:
    """Takes what a terminal is sent; writes its rows without control sequences.

    Empty prompts (`>`) and repeated rows are left out, also rows that are painted again in their place.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""
        self._is_painted = False
        self._recent: deque[str] = deque(maxlen=_RECENT)

    def write(self, data: str) -> int:
        """Write the complete rows to the stream, hold back an unfinished one; return the data's length."""
        self._held += data
        at = 0
        for begin in _BEGIN.finditer(self._held):
            self._write_row(self._held[at : begin.start()])
            at, self._is_painted = begin.end(), begin[0] != "\n"
        self._held = self._held[at:][-_LONGEST_CONTROL:]
        return len(data)

    def _write_row(self, row: str) -> None:
        # What stands before the last carriage return was painted over.
        text = _CONTROL.sub("", row.rstrip("\r").rsplit("\r", 1)[-1]).rstrip()
        known = self._recent if self._is_painted else list(self._recent)[-1:]
        if text.strip("> ") and text not in known:
            self._stream.write(f"  | {text}\n")
            self._recent.append(text)

    def flush(self) -> None:
        """Flush the stream; an unfinished row stays held back."""
        self._stream.flush()


_STEP_LIMIT_S = 60
_PACKET_BYTES = 4 << 20
_PLACE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); from agent_relay.__main__ import main; sys.exit(main())"
)
"""Program that runs this very package, wherever it lies; nothing of it has to be on a path."""
_KEY_S = 0.02
_READ_S = 1.2


def demo(
    *,
    fast: Annotated[bool, typer.Option("--fast", help="Without pauses for reading.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder, to look around in it.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON at the end: the agents, how fast, the packet.")
    ] = False,
) -> None:
    """Watch a session change hands: a limit, a packet, a successor that goes on. No account, no network."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="agent-relay-demo-"))
    environ = prepare_home(folder)
    project = create_project(folder, environ)
    show = DemoRun(environ, project, pause_s=0.0 if fast or as_json else 1.0)
    seen = contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext()
    view: dict[str, object] = {}
    with SignalTrap() as signals:
        # The show's end ignores Unix signals, and that lasts to the end of this block: until all is removed.
        try:
            ended = end_though_killed(partial(_clear, environ, project, "" if keep else folder))
            with ended, show, contextlib.suppress(Interrupted), signals.breaking(), seen:
                show.play()
                view = show.print_packet()
        except (pexpect.EOF, pexpect.TIMEOUT) as error:
            keep = True
            log = get_folders(environ).daemon_log
            raise RelayError(
                f"the demo timed out waiting for {show.waiting_for!r}",
                hint=f"Everything is in {folder}, the daemon's log is {log}",
            ) from error
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
    if signals.number:
        raise SystemExit(128 + signals.number)
    if as_json:
        print_json({**view, "kept": folder if keep else None})
    elif keep:
        print_lines(
            "", f"Kept: {folder}", f"Look around: AGENT_RELAY_HOME={folder}/home agent-relay sessions"
        )


def _clear(environ: dict[str, str], project: str, folder: str) -> None:
    """End the session and its daemon, and remove `folder`, if one is named.

    Both have to be ended: a session outlives its terminal, and an agent outlives the daemon.
    """
    folders = get_folders(environ)
    living = read_live_at(project, folders.sessions)
    with contextlib.suppress(NobodyListensError), Connection.open(folders) as connection:
        for view in living:
            connection.request("session.stop", session=view["session"])
    stop_daemon(folders)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def end_though_killed(end: Callable[[], None]) -> Iterator[None]:
    """Call `end` from another process if this one is killed within the block."""
    reader, writer = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        os.close(writer)
        _wait_and_end(reader, end)
    os.close(reader)
    try:
        yield
    finally:
        # The other one may have been killed itself.
        with contextlib.suppress(BrokenPipeError):
            os.write(writer, b".")
        os.close(writer)
        os.waitpid(watcher, 0)


def _wait_and_end(reader: int, end: Callable[[], None]) -> NoReturn:
    try:
        # Out of reach of whoever kills the process group, and of the terminal that is closed with it.
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if not os.read(reader, 1):
            end()
    finally:
        os._exit(0)


class DemoRun:
    """One run of the demo: the product's own command in a PTY, typed into as a person would.

    When its block is left, in whatever way, nothing of it runs any more.
    """

    def __init__(self, environ: dict[str, str], project: str, *, pause_s: float) -> None:
        self.waiting_for = ""
        self._environ = environ
        self._project = project
        self._pause_s = pause_s
        self._seconds = 0.0
        self._child: pexpect.spawn[str] | None = None

    def play(self) -> None:
        """Play the demo: a task, a limit in the middle of it, and a successor that finishes it."""
        self._comment(
            "Two scripted agents; the holder, the daemon, the PTY, the limit and the packet are real.",
            "A session under the first one:",
        )
        self._start()
        self._expect("ready | demo")
        self._type(FIRST_PROMPT)
        self._expect("One test still fails")
        self._expect("ready | demo")
        self._read()
        self._type(SECOND_PROMPT)
        self._expect("hit your session limit")
        limit_at = time.monotonic()
        self._expect("→ understudy")
        self._expect("understudy agent")
        self._seconds = time.monotonic() - limit_at
        self._expect("The task is done.")
        self._expect("ready | understudy")
        self._read()
        self._type("/quit")
        self._expect_end()

    def print_packet(self) -> dict[str, object]:
        """Print the successor's packet and how long the handoff took; return both as JSON values."""
        (view, *_) = read_sessions_at(self._project, get_folders(self._environ).sessions)
        packets = list_packets(str(view["folder"]))
        document = read_packet(packets[-1][2])
        text = read_bounded(f"{packets[-1][2].removesuffix('.json')}.md", limit_bytes=_PACKET_BYTES)
        packet = text.decode("utf-8", "replace")
        self._comment("The packet the understudy was given, built from the demo agent's transcript and git:")
        print_lines("", *(f"    {line}" for line in packet.splitlines()))
        self._comment(
            f"From the limit on the screen to the successor: {self._seconds:.1f} s.",
            "With your own agents: agent-relay doctor, then agent-relay <agent>",
        )
        return {
            "from": document.previous_agent,
            "to": document.target_agent,
            "limit_to_successor_s": round(self._seconds, 3),
            "packet": document.model_dump(mode="json", by_alias=True, exclude_none=True),
            "text": packet,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in SIGNALS:
            # Whoever is impatient would leave the agent at work; those around us put back what was.
            signal.signal(number, signal.SIG_IGN)
        if self._child is not None:
            self._child.close(force=True)
        _clear(self._environ, self._project, "")

    def _start(self) -> None:
        columns, rows = shutil.get_terminal_size((100, 30))
        self._child = pexpect.spawn(
            sys.executable,
            ["-c", _START, _PLACE, "agent", "demo"],
            cwd=self._project,
            env=self._environ,
            encoding="utf-8",
            codec_errors="replace",
            timeout=_STEP_LIMIT_S,
            dimensions=(rows, columns),
        )
        self._child.delaybeforesend = None
        self._child.logfile_read = sys.stdout if sys.stdout.isatty() else PlainLog(sys.stdout)

    def _expect(self, text: str) -> None:
        self.waiting_for = text
        assert self._child is not None  # noqa: S101 - started before anything is expected
        self._child.expect_exact(text)

    def _type(self, text: str) -> None:
        assert self._child is not None  # noqa: S101 - same
        for part in text if sys.stdout.isatty() else [text]:
            self._child.send(part)
            self._drain(_KEY_S * self._pause_s)
        self._child.send("\r")

    def _read(self) -> None:
        """Give a person time to read, while the screen goes on being shown."""
        self._drain(_READ_S * self._pause_s)

    def _drain(self, seconds: float) -> None:
        if seconds > 0 and self._child is not None:
            self._child.expect(pexpect.TIMEOUT, timeout=seconds)

    def _expect_end(self) -> None:
        self.waiting_for = "the end of the session"
        assert self._child is not None  # noqa: S101 - same
        self._child.expect(pexpect.EOF)

    def _comment(self, *lines: str) -> None:
        begin, end = ("\x1b[1;36m", "\x1b[0m") if is_fancy() else ("", "")
        sys.stdout.write(f"\n{begin}" + "\n".join(f"# {line}" for line in lines) + f"{end}\n\n")
        sys.stdout.flush()
