"""Show a turn on a terminal as it goes: words, tools, changes, plans and relay's own notes."""

import errno
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from agent_relay.domain.text.plain import clean_text
from agent_relay.faces.render._event_lines import (
    Style,
    TextPainter,
    colour_diff,
    cut_line,
    describe_call,
    excerpt_output,
    find_note,
    join_line,
)
from agent_relay.faces.render._markdown import BlockSplitter, MarkdownBlock, MarkdownLayout
from agent_relay.faces.render.output import HintStyle

FRAME_S = 1 / 30
PROMPT_WRITE_CHARS = 4 << 10
"""Characters of a write above a prompt: more than a person can follow, and keys get their turn in between."""
OUTPUT_WRITE_CHARS = 32 << 10
"""Characters of a write where nobody types."""


class FrameWriter:
    """Passes whole lines to `write`, from a thread of its own; when idle, it does nothing at all.

    One write has about `most` characters, and about twice as many wait for theirs.
    """

    def __init__(self, write: Callable[[str], None], *, most: int = PROMPT_WRITE_CHARS) -> None:
        self._write = write
        self._most = most
        self._changed = threading.Condition()
        self._pending: list[str] = []
        self._size = 0
        self._painter: threading.Thread | None = None
        self._is_over = False
        self._trouble: OSError | None = None

    def add(self, line: str) -> None:
        """Queue the line, after a wait if too much is queued; raise OSError if nothing can be written."""
        with self._changed:
            self._changed.wait_for(lambda: self._size < 2 * self._most or self._trouble is not None)
            if self._trouble is not None:
                raise self._trouble
            self._pending.append(f"{line}\n")
            self._size += len(line) + 1
            if self._painter is None:
                self._is_over = False
                self._painter = threading.Thread(target=self._paint, name="painter", daemon=True)
                self._painter.start()
            self._changed.notify_all()

    def finish(self) -> None:
        """Write everything and end the thread; `add` may be called again later. Raises OSError as it does."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        painter, self._painter = self._painter, None
        if painter is not None:
            painter.join()
        if self._trouble is not None:
            raise self._trouble

    def _paint(self) -> None:
        done = False
        try:
            while piece := self._take():
                self._write(piece)
                time.sleep(FRAME_S)
            done = True
        except OSError as error:
            self._trouble = error
        finally:
            if not done:
                with self._changed:
                    self._trouble = self._trouble or OSError(errno.EIO, "nothing more can be shown")
                    self._changed.notify_all()

    def _take(self) -> str:
        """Return the text of the next frame, as soon as there is some; empty when it is over."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending) or self._is_over)
            count, size = 0, 0
            while count < len(self._pending) and (not count or size < self._most):
                size += len(self._pending[count])
                count += 1
            piece = "".join(self._pending[:count])
            del self._pending[:count]
            self._size -= size
            self._changed.notify_all()
            return piece


_MOST_STEPS = 200
_MARKS: dict[str, tuple[str, Style]] = {
    "done": ("✔", "green"),
    "doing": ("▸", "bold"),
    "dropped": ("✗", "dim"),
}
_PENDING: tuple[str, Style] = ("○", "dim")


@dataclass(frozen=True, slots=True)
class _Step:
    text: str
    status: str


class PlanChecklist:
    """The plan so far; what an event changed of it is shown."""

    def __init__(self) -> None:
        self._steps: dict[str, _Step] = {}

    def take(self, event: Mapping[str, object], ink: TextPainter, columns: int) -> list[str]:
        """Apply the event; return the lines of what is new: all of a whole plan, else the changed steps."""
        before = dict(self._steps)
        if event.get("whole") is True:
            self._steps = {}
        steps = event.get("steps")
        for number, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict) and len(self._steps) < _MOST_STEPS:
                self._set(str(step.get("id") or f"#{number}"), step)
        if event.get("whole") is True and self._steps != before:
            return [_render(step, ink, columns) for step in self._steps.values()]
        return [_render(step, ink, columns) for key, step in self._steps.items() if step != before.get(key)]

    def _set(self, key: str, step: Mapping[str, object]) -> None:
        old = self._steps.get(key, _Step("", "pending"))
        text = join_line(str(step.get("text") or "")) or old.text or join_line(key)
        self._steps[key] = _Step(text, str(step.get("status") or "") or old.status)


def _render(step: _Step, ink: TextPainter, columns: int) -> str:
    mark, style = _MARKS.get(step.status, _PENDING)
    return ink.paint(style, f"  {mark} {cut_line(step.text, columns - 4)}")


class TurnUsage:
    """Sums what the agents of one turn report about their requests; unknown is not zero.

    Input tokens are left to the metrics, because agents count cached ones differently.
    """

    def __init__(self) -> None:
        self._output: int | None = None
        self._cost: float | None = None

    def add(self, event: Mapping[str, object]) -> None:
        """Add what one event of an agent reports."""
        tokens, cost = event.get("tokens"), event.get("cost")
        output = tokens.get("output") if isinstance(tokens, dict) else None
        if isinstance(output, int):
            self._output = (self._output or 0) + output
        if isinstance(cost, int | float):
            self._cost = (self._cost or 0.0) + cost

    def describe(self) -> str:
        """Return tokens and US dollars, as far as they were reported; empty if nothing was."""
        tokens = f"{self._output:,} tokens out" if self._output is not None else ""
        cost = f"${self._cost:.4f}" if self._cost is not None else ""
        return " · ".join(part for part in (tokens, cost) if part)


Work = Callable[[], list[str]]

_MOST_CALLS = 64
_PROMPT_LINES = 3
_THOUGHT_LINES = 12
_NARROWEST = 20
_RELAYS_OWN = re.compile(r"(?:\x1b\[[\d;]*m)*(?:→|agent-relay:)")


class TurnView:
    """Receives a turn's events from its beginning to its end, all of them from one thread.

    It passes text to `write`: whole lines, one call a frame, from its own thread. While the terminal is
    slower than the agent, `show` waits; it raises the OSError that `write` raised. Files in `folder` are
    named by their path below it. `most` is about how many characters one call has. `work` runs a job that
    takes some milliseconds where nothing waits for it.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        columns: Callable[[], int],
        is_colour: bool,
        folder: str = "",
        most: int = PROMPT_WRITE_CHARS,
        work: Callable[[Work], list[str]] = lambda job: job(),
    ) -> None:
        self._frames = FrameWriter(write, most=most)
        self._ink = TextPainter(is_colour=is_colour)
        self._prose = MarkdownLayout(columns, is_colour=is_colour)
        self._work = work
        self._terminal_columns = columns
        self._blocks = BlockSplitter()
        self._folder = folder
        self._before = ""
        self._forget()

    def _forget(self) -> None:
        """Reset the state of the earlier turn; only the kind of the last lines on the screen is kept."""
        self._calls: dict[str, str] = {}
        self._shown_call = ""
        self._silent: set[str] = set()
        self._plan = PlanChecklist()
        self._usage = TurnUsage()
        self._thought = 0
        self._thought_more = 0

    def begin(self, agent: str, prompt: str) -> None:
        """Begin a turn."""
        self._forget()
        name = join_line(agent)
        first, *rest = clean_text(prompt).strip().split("\n")
        room = _PROMPT_LINES * self._columns
        shown = [cut_line(line, room) for line in (first, *rest[: _PROMPT_LINES - 1])]
        lines = [f"{self._ink.paint('bold', f'{name} >')} {shown[0]}".rstrip(), *shown[1:]]
        more = len(rest) - _PROMPT_LINES + 1
        self._put("begin", [*lines, *([self._ink.paint("dim", f"  … {more} more")] if more > 0 else [])])

    def show(self, event: Mapping[str, object]) -> None:
        """Show one event, in the form that following a turn yields."""
        kind = event.get("type")
        if kind != "thought":
            self._end_thought()
        if kind == "text":
            self._say(self._blocks.feed(_text(event, "text")))
            if event.get("more") is not True:
                self._say(self._blocks.close())
            return
        self._say(self._blocks.close())
        match kind:
            case "thought":
                self._think(event)
            case "tool":
                self._call(event)
            case "result":
                self._answer(event)
            case "edit":
                self._edit(event)
            case "plan":
                self._put("plan", self._plan.take(event, self._ink, self._columns))
            case "usage":
                self._usage.add(event)
            case _:
                self._note(event)

    def end(self) -> None:
        """Paint everything that is held back."""
        self._end_thought()
        self._say(self._blocks.close())
        self._frames.finish()

    @property
    def _columns(self) -> int:
        return max(_NARROWEST, self._terminal_columns())

    def _say(self, blocks: Iterable[MarkdownBlock]) -> None:
        for block in blocks:
            lines = self._work(partial(self._prose.lay, block))
            self._put("text", [_unforge(line) for line in lines], is_rest=block.is_rest)

    def _think(self, event: Mapping[str, object]) -> None:
        lines = [line for line in clean_text(_text(event, "text")).split("\n") if line.strip()]
        room = max(0, _THOUGHT_LINES - self._thought)
        shown = [cut_line(line.strip().strip("*"), self._columns - 2) for line in lines[:room]]
        self._put("thought", [self._ink.paint("thought", f"~ {line}") for line in shown])
        self._thought += len(shown)
        self._thought_more += len(lines) - len(shown)
        if event.get("more") is not True:
            self._end_thought()

    def _end_thought(self) -> None:
        if self._thought_more:
            self._put("thought", [self._ink.paint("dim", f"~ … {self._thought_more:,} lines more")])
        self._thought = self._thought_more = 0

    def _call(self, event: Mapping[str, object]) -> None:
        call = _text(event, "call")
        if event.get("about") == "plan":
            self._silence(call)
            return
        given = _text(event, "input")
        line = describe_call(_text(event, "name"), given, self._columns - 2, folder=self._folder)
        self._put_call(call, line)
        if call:
            self._calls[call] = line
            while len(self._calls) > _MOST_CALLS:
                del self._calls[next(iter(self._calls))]

    def _put_call(self, call: str, line: str, mark: str = "●", style: Style = "cyan") -> None:
        self._put("tool", [f"{self._ink.paint(style, mark)} {line}"])
        self._shown_call = call

    def _answer(self, event: Mapping[str, object]) -> None:
        call, is_error = _text(event, "call"), event.get("is_error") is True
        line = self._calls.pop(call, "")
        if call in self._silent:
            self._silent.discard(call)
            if not is_error:
                return
        output = excerpt_output(_text(event, "output"), self._ink, self._columns, is_error=is_error)
        if line and call != self._shown_call and output:
            # Several run at once: whose this is.
            self._put_call(call, line, "↳")
        self._put("tool", output)

    def _edit(self, event: Mapping[str, object]) -> None:
        self._silence(_text(event, "call") or self._shown_call)
        self._put("tool", colour_diff(_text(event, "diff"), self._ink, self._columns))

    def _silence(self, call: str) -> None:
        """Hide the call's result, because it is shown in another form."""
        if call and len(self._silent) < _MOST_CALLS:
            self._silent.add(call)

    def _note(self, event: Mapping[str, object]) -> None:
        note = HintStyle.render(find_note(event))
        if note:
            self._put("note", [self._ink.paint("yellow", note)])
        usage = self._usage.describe()
        if event.get("type") == "end" and usage:
            self._put("usage", [self._ink.paint("dim", usage)])

    def _put(self, kind: str, lines: list[str], *, is_rest: bool = False) -> None:
        """Queue the lines, below an empty one if another kind of lines begins."""
        if not lines:
            return
        if self._before and not is_rest and (kind != self._before or kind in {"text", "begin"}):
            self._frames.add("")
        self._before = kind
        for line in lines:
            self._frames.add(line)


def _unforge(line: str) -> str:
    """Return `line` as an agent's: one that looks like relay's own is indented."""
    return f"  {line}" if _RELAYS_OWN.match(line) else line


def _text(event: Mapping[str, object], name: str) -> str:
    found = event.get(name)
    return found if isinstance(found, str) else ""
