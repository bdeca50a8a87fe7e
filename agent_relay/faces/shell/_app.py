"""The running relay shell: a prompt that is always shown, and beside it the turns of what was typed."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.history import History
from prompt_toolkit.output import Output

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import RelayError
from agent_relay.domain.text.hints import render_in_shell
from agent_relay.domain.text.plain import render_count
from agent_relay.faces.cli.commands import SHELL_COMMANDS
from agent_relay.faces.cli.dispatch import run as run_command
from agent_relay.faces.render.output import HintStyle, plain, render_plain
from agent_relay.faces.render.turn_view import TurnView
from agent_relay.faces.shell._actions import Act
from agent_relay.faces.shell._agent_switch import PreferredReturn, free_session
from agent_relay.faces.shell._commands import ShellCompleter, is_command, run_line
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._message_queue import MessageQueue
from agent_relay.faces.shell._prompt import PastingInput, PromptSuspendedError, ShellPrompt
from agent_relay.faces.shell._status_line import Windows, render_status
from agent_relay.faces.shell._terminal import Modes, Scrollback
from agent_relay.faces.shell._turns import Turns
from agent_relay.store.session_index import find_ledger_trouble, read_resting
from agent_relay.system.config_file import ReloadingConfig
from agent_relay.system.disk.folders import Folders

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_WITH_KEYS = (("attach",), ("watch",), ("packet", "edit"), ("handoff", "retry"))
_TICK_S = 1.0
_STOP_LIMIT_S = 10.0
_HINT_S = 5.0
"""Seconds after one Ctrl-C within which a second one leaves."""


@dataclass(frozen=True, slots=True)
class ShellTerminal:
    """The shell's terminal: `scrollback` prints on it, `modes` sets how it takes keys."""

    scrollback: Scrollback
    modes: Modes
    source: PastingInput
    output: Output


class Shell:
    """One shell on one terminal; `status` is its exit status. Waiting messages are kept at `queue_path`."""

    def __init__(
        self,
        folders: Folders,
        conversation: Conversation,
        terminal: ShellTerminal,
        *,
        history: History,
        queue_path: str,
        view: TurnView,
    ) -> None:
        self._folders = folders
        self._queue = MessageQueue(queue_path, self.changed)
        self._scrollback = terminal.scrollback
        self._modes = terminal.modes
        self._source = terminal.source
        self._prompt = ShellPrompt(
            self,
            history=history,
            completer=ShellCompleter(folders, conversation.cwd),
            output=terminal.output,
            source=terminal.source,
        )
        self._resting: list[dict[str, object]] | None = []
        self._ticking: asyncio.Task[None] | None = None
        self._stop_tasks: list[asyncio.Future[None]] = []
        self._hint = ""
        self._is_leaving = False
        self._soon: list[Act] = []
        self._offered = ""
        self.conversation = conversation
        connect = partial(connect_or_start, folders)
        self.turns = Turns(
            conversation,
            self._queue,
            connect=connect,
            view=view,
            scrollback=terminal.scrollback,
            changed=self.changed,
            prepare=partial(free_session, conversation, connect),
            preferred=PreferredReturn(conversation, ReloadingConfig(folders.config).get, folders.ledger),
        )
        self.status = 0

    def take_over_messages(self, folder: str) -> int:
        """Hold the messages that ended shells have left in `folder` until they are sent; return how many."""
        left = self._queue.take_over(folder)
        if left:
            self.turns.queue_state.hold("left over")
        return left

    def offer(self, session: str) -> None:
        """Let Enter on an empty first line resume `session`; anything else that is typed ends the offer."""
        self._offered = session

    async def run(self, first: str = "") -> int:
        """Run the line `first`, then the prompt; return the exit status.

        Ends when the person leaves or the terminal is gone.
        """
        self._resting = self._read_resting()
        HintStyle.render = self._render_hints
        worker = asyncio.create_task(self.turns.run(), name="turns")
        worker.add_done_callback(self._worker_over)
        try:
            with self._handle_signals():
                self._modes.quieten()
                if first:
                    await self._try(run_line(self, first))
                while not self._is_leaving:
                    await self._read_line()
        finally:
            # What is read from here on is read at the prompt of the user's own shell.
            HintStyle.render = render_plain
            self._say_farewell()
            worker.cancel()
            # A terminal that is gone is no bug of ours; anything else is, and is raised.
            with suppress(asyncio.CancelledError, OSError):
                await worker
            self._queue.close()
            if self.conversation.lock is not None:
                self.conversation.lock.leave()
            await self._finish_stop_tasks()
        return self.status

    def _render_hints(self, text: str) -> str:
        """Return `text` with commands named as they are typed here."""
        return render_in_shell(text, self.conversation.session, SHELL_COMMANDS)

    def _say_farewell(self) -> None:
        """Print what goes on without the shell, and what it keeps."""
        lines = []
        session = self.conversation.session
        if self.turns.is_working and session and not self.turns.is_stopping:
            lines.append(f"→ The turn goes on. To return: agent-relay resume {session}")
        elif left := self.conversation.find_at_screen():
            back = f"To return: agent-relay attach {session}. To end it: agent-relay stop {session}"
            lines.append(f"→ {left} keeps working in its own screen. {back}")
        if waiting := len(self.list_waiting()):
            lines.append(f"→ {render_count(waiting, 'message')} not sent; kept for the next shell here.")
        with suppress(OSError):
            self.say(*lines)

    async def _finish_stop_tasks(self) -> None:
        """Finish the requests to stop, so that no task of this shell is left in its loop."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._stop_tasks:
            await asyncio.wait(self._stop_tasks, timeout=_STOP_LIMIT_S)

    async def _read_line(self) -> None:
        if self._soon:
            await self._try(self._soon.pop(0)(self, ""))
            return
        try:
            line = await self._prompt.ask()
        except PromptSuspendedError:
            return
        except EOFError:
            self._is_leaving = True
            return
        self._hint = ""
        offered, self._offered = self._offered, ""
        if not line.strip():
            if self.turns.queue_state.why:
                self.turns.go_on()
            elif offered:
                await self._try(run_line(self, f"/resume {offered}"))
            return
        if is_command(line):
            self._scrollback.paint(f"> {plain(line)}\n")
        await self._try(run_line(self, line))

    async def _try(self, doing: Awaitable[None]) -> None:
        try:
            await doing
        except RelayError as error:
            self.say(f"agent-relay: {error.sentence}", *([f"  {error.hint}"] if error.hint else []))
        except KeyboardInterrupt:
            # Ctrl-C while another program had the terminal ends that one, not the shell.
            self.say("→ Interrupted.")
        finally:
            # A command may have ended an agent's rest.
            self._resting = self._read_resting()

    def say(self, *lines: str) -> None:
        """Print the lines on the terminal, with commands as they are typed here."""
        self.show(*map(HintStyle.render, lines))

    def show(self, *lines: str) -> None:
        """Print the lines on the terminal, the commands in them unchanged."""
        # A terminal that is gone ends the shell in its own way.
        with suppress(OSError):
            self._scrollback.paint("".join(f"{plain(line)}\n" for line in lines))

    def run_plain(self, words: Sequence[str]) -> int:
        """Run a plain command on this terminal and return its exit status."""
        with self.lend_terminal() if _needs_keys(words) else self._modes.interruptible():
            return run_command([*words])

    @contextmanager
    def lend_terminal(self) -> Iterator[None]:
        """Give the terminal to another program in this context; the prompt gets what that leaves unread."""
        try:
            with self._modes.given_away():
                yield
        finally:
            self._source.ahead = self._modes.count_waiting()

    def do_soon(self, act: Act) -> None:
        """Run `act` in place of the prompt, which comes back with what is half typed."""
        self._soon.append(act)
        self._prompt.give_way()

    def leave(self, status: int = 0) -> None:
        """End the shell with `status` after what it does now."""
        self.status = status
        self._is_leaving = True
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(exception=EOFError)

    def take_windows(self, windows: Windows) -> None:
        """Show `windows`, what agents last said of their usage windows."""
        self.conversation.windows = windows
        self._redraw()

    def changed(self) -> None:
        """Redraw what is around the prompt, because the turns have changed."""
        if self.turns.label and self._ticking is None:
            self._ticking = asyncio.create_task(self._tick(), name="tick")
        if not self.turns.is_working:
            self._hint = ""
            self._resting = self._read_resting()
        self._redraw()

    async def _tick(self) -> None:
        """Count the seconds while something other than a turn is done."""
        while self.turns.label:
            self._redraw()
            await asyncio.sleep(_TICK_S)
        self._ticking = None

    def _read_resting(self) -> list[dict[str, object]] | None:
        ledger = self._folders.ledger
        return None if find_ledger_trouble(ledger) else read_resting(ledger)

    def _redraw(self) -> None:
        if self._prompt.app.is_running:
            self._prompt.app.invalidate()

    def interrupt(self) -> None:
        """Stop the turn the first time, leave the shell the second time."""
        if self._hint:
            self.leave()
            return
        is_busy = self.turns.is_busy
        if is_busy:
            self._stop_tasks.append(asyncio.create_task(self.turns.stop(), name="stop"))
        self._hint = "stopping; Ctrl-C leaves" if is_busy else "Ctrl-C once more leaves"
        # A key pressed in thought must not make the next one, minutes later, the end of the shell.
        asyncio.get_running_loop().call_later(_HINT_S, self._drop_hint, self._hint)
        self._redraw()

    def _drop_hint(self, hint: str) -> None:
        if self._hint == hint:
            self._hint = ""
            self._redraw()

    def take_back(self) -> str:
        """Return the newest waiting message and remove it from the queue."""
        return self._queue.take_last() if len(self.list_waiting()) else ""

    def is_working(self) -> bool:
        """Return whether an agent works."""
        return self.turns.is_working

    def list_waiting(self) -> list[str]:
        """Return the messages that no agent has been given."""
        return self.turns.list_waiting()

    def render_status(self, width: int) -> str:
        """Return the line above the prompt."""
        state = "working" if self.turns.is_working else ""
        if self.turns.pending_switch.agent:
            state = f"then {self.turns.pending_switch.agent}"
        if self.turns.label:
            state = f"{self.turns.label}, {time.monotonic() - self.turns.since:.0f} s; Esc cancels"
        if self.turns.queue_state.why:
            state = f"{len(self._queue)} not sent ({self.turns.queue_state.why}): Enter sends on, Up edits"
        return render_status(self.conversation, self._resting, state=self._hint or state, width=width)

    def _worker_over(self, worker: asyncio.Task[None]) -> None:
        if not worker.cancelled() and worker.exception() is not None:
            self.leave(1)

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        """Handle SIGTERM, SIGHUP, SIGQUIT and SIGTSTP within this context, so that nothing typed is lost."""
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (*_ENDING, signal.SIGTSTP)}
        handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
        for number in handled:
            if number == signal.SIGTSTP:
                loop.add_signal_handler(number, self._stop)
            else:
                loop.add_signal_handler(number, self.leave, 128 + number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def _stop(self) -> None:
        """Stop the shell; the program that started it has the terminal until the shell is continued."""
        if self._prompt.app.is_running:
            self._stop_tasks.append(asyncio.ensure_future(run_in_terminal(self._modes.suspend)))
        else:
            self._modes.suspend()


def _needs_keys(words: Sequence[str]) -> bool:
    """Return whether the plain command reads the terminal itself."""
    return any(tuple(words[: len(start)]) == start for start in _WITH_KEYS)
