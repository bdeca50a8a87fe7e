"""Define what a reader of facts is given and returns, and the collector it adds facts to."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from agent_relay.domain.facts import (
    EDITED_LINE_LENGTH,
    MOST_EDITED_LINES,
    CommandRun,
    Facts,
    FileChange,
    Message,
    TodoItem,
    Tokens,
    ToolError,
)
from agent_relay.domain.values import replace
from agent_relay.transcripts.lenient_json import LineCounter, clip, find_replaced, list_body
from agent_relay.transcripts.usage_records import TokenCounts


class ForkPoint(msgspec.Struct, frozen=True):
    """The point where a transcript continues another: `before` is the first ordinal not taken over."""

    native_id: str
    before: int | None = None


class Ancestor(msgspec.Struct, frozen=True):
    """The lines of a transcript this one was forked from, up to the ordinal `before` (exclusive)."""

    lines: Iterable[bytes]
    place: str = ""
    before: int | None = None


class TranscriptSource(msgspec.Struct, frozen=True):
    """One native transcript, already read.

    JSON-lines formats fill `lines`; table formats fill `session`, `messages`, `parts` and `todos`
    with rows in the order the agent sees them. `prompts` are entries of the agent's separate log of
    prompts, for sessions whose own file is gone. `place` names the file for provenance. With `is_part`
    the lines are not the first of the transcript, and `plan` is what was planned before them.
    """

    place: str = ""
    native_id: str = ""
    cwd: str = ""
    lines: Iterable[bytes] = ()
    ancestors: tuple[Ancestor, ...] = ()
    prompts: tuple[Mapping[str, object], ...] = ()
    session: Mapping[str, object] | None = None
    messages: tuple[Mapping[str, object], ...] = ()
    parts: tuple[Mapping[str, object], ...] = ()
    todos: tuple[Mapping[str, object], ...] = ()
    plan: tuple[TodoItem, ...] = ()
    is_part: bool = False


class Peek(msgspec.Struct, frozen=True):
    """A transcript as its first lines describe it; what they do not say is empty."""

    native_id: str = ""
    cwd: str = ""
    title: str = ""
    started_at: datetime | None = None
    is_main: bool = True
    fork: ForkPoint | None = None


class Tables(msgspec.Struct, frozen=True):
    """The queries that read a session from a database.

    Each but `newest` takes the session's id. Those of the `later` messages and their parts also take a
    message's id, from which on the rows are wanted; `oldest` gives the first message's id. `columns` names
    the session row's columns that hold `native_id`, `cwd`, `title`, `started` and `updated` (epoch in seconds
    or milliseconds).
    """

    session: str
    newest: str
    messages: str
    parts: str
    todos: str
    oldest: str
    later_messages: str
    later_parts: str
    columns: Mapping[str, str]


class TranscriptReader(msgspec.Struct, frozen=True):
    """One native format: how it is stored, and the functions that read it.

    Formats with `tables` are databases; `unpack` reads their exported JSON. All others are files of lines.
    `root_mark` is a file in the grandparent folder of a session's file that holds the working folder, for
    formats whose records may not; `prompt_log` is a file there that outlives sessions. `patterns` are the
    file names, below any folder, of sessions of this format.
    """

    agent: str
    read: Callable[[TranscriptSource], Facts]
    peek: Callable[[Iterable[bytes]], Peek]
    patterns: tuple[str, ...]
    tables: Tables | None = None
    unpack: Callable[[object], TranscriptSource] | None = None
    root_mark: str = ""
    prompt_log: str = ""


Status = Literal["pending", "in_progress", "completed", "cancelled"]
Action = Literal["created", "modified", "deleted", "renamed", "read"]

_STATUSES: dict[str, Status] = {
    "pending": "pending",
    "todo": "pending",
    "open": "pending",
    "blocked": "pending",
    "in_progress": "in_progress",
    "in-progress": "in_progress",
    "active": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "deleted": "cancelled",
}


def parse_status(text: str) -> Status:
    """Parse an agent's word for a status; unknown words mean pending, so that no step is lost."""
    return _STATUSES.get(text.lower(), "pending")


class EditedLines(NamedTuple):
    """The lines that an edit removed and added, as `FileChange` keeps them."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


NO_LINES = EditedLines()

# No more lines of an edit are examined, since blank ones are rare.
_LOOKED_AT = 4 * MOST_EDITED_LINES


def list_hunk_lines(lines: Iterable[object]) -> EditedLines:
    """List the lines that a diff's body removes and adds."""
    removed: list[str] = []
    added: list[str] = []
    for line in lines:
        if isinstance(line, str) and line.startswith(("+", "-")):
            (added if line.startswith("+") else removed).append(line[1:])
    return EditedLines(_keep_lines(removed), _keep_lines(added))


def list_unified_lines(diff: str) -> EditedLines:
    """List the lines that one file's unified diff removes and adds."""
    return list_hunk_lines(list_body(diff))


def list_replaced_lines(old: str, new: str) -> EditedLines:
    """List the lines that differ when `new` replaces `old`."""
    removed, added = find_replaced(old, new)
    return EditedLines(_keep_lines(removed), _keep_lines(added))


def list_first_lines(text: str) -> EditedLines:
    """List the first lines of a file that was written as a whole."""
    return EditedLines(added=_keep_lines(text.split("\n", _LOOKED_AT)[:_LOOKED_AT]))


def join_edits(edits: Iterable[EditedLines]) -> EditedLines:
    """Join the lines that several edits of one file removed and added."""
    found = list(edits)
    removed = [line for edit in found for line in edit.removed]
    added = [line for edit in found for line in edit.added]
    return EditedLines(tuple(removed[:MOST_EDITED_LINES]), tuple(added[:MOST_EDITED_LINES]))


def _keep_lines(lines: list[str]) -> tuple[str, ...]:
    kept = [_shorten(line) for line in lines[:_LOOKED_AT] if line and not line.isspace()]
    return tuple([line for line in kept if line][:MOST_EDITED_LINES])


def _shorten(line: str) -> str:
    """Return the line, cut after a word if it is long: half a key would not be recognised as one.

    A line that is one long word becomes empty.
    """
    line = line.strip()
    if len(line) <= EDITED_LINE_LENGTH:
        return line
    for at in range(EDITED_LINE_LENGTH, 0, -1):
        # Keys are ASCII only, and languages with other letters may be written without spaces.
        if line[at] in " \t,;" or line[at] > "\x7f":
            return line[:at].rstrip()
    return ""


class Collector(msgspec.Struct):
    """Facts so far. `turn` counts the user's prompts; `answered` is whether the last one was answered.

    `waiting` holds the prompts since the last answer; `interrupted` is whether the user broke the turn off.
    """

    agent: str
    place: str = ""
    turn: int = 0
    answered: bool = True
    interrupted: bool = False
    interrupted_turns: list[int] = msgspec.field(default_factory=list)
    at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    conversation: list[Message] = msgspec.field(default_factory=list)
    commands: list[CommandRun] = msgspec.field(default_factory=list)
    files: list[FileChange] = msgspec.field(default_factory=list)
    plan: list[TodoItem] = msgspec.field(default_factory=list)
    errors: list[ToolError] = msgspec.field(default_factory=list)
    background: list[str] = msgspec.field(default_factory=list)
    tokens: dict[str, TokenCounts] = msgspec.field(default_factory=dict)
    waiting: list[Message] = msgspec.field(default_factory=list)
    limit_text: str = ""
    summary: str = ""
    summary_turn: int | None = None
    summary_at: datetime | None = None

    def see(self, at: datetime | None) -> None:
        """Note a record's time."""
        if at is None:
            return
        self.at = at
        self.started_at = min(at, self.started_at or at)
        self.ended_at = max(at, self.ended_at or at)

    def hear_user(self, text: str, place: str) -> None:
        """Add the user's words, if there are any, as a new turn; this makes an earlier limit history."""
        if not text:
            return
        if self.answered or self.interrupted:
            self.waiting.clear()
        self._note_interruption()
        self.turn += 1
        self.answered = self.interrupted = False
        self.limit_text = ""
        said = Message(role="user", text=text, turn=self.turn, at=self.at, place=place)
        self.conversation.append(said)
        if all(one.text != text for one in self.waiting):
            self.waiting.append(said)

    def _note_interruption(self) -> None:
        if self.interrupted and self.turn and self.turn not in self.interrupted_turns:
            self.interrupted_turns.append(self.turn)

    def hear_agent(self, text: str, place: str) -> None:
        """Add the agent's words; the reader decides whether they answer the prompt."""
        self.conversation.append(
            Message(role="assistant", text=text, turn=self.turn, at=self.at, place=place)
        )

    def run(self, command: str, output: str, exit_code: int | None, place: str) -> None:
        """Add a command the agent ran."""
        self.commands.append(
            CommandRun(
                command=command,
                output=clip(output),
                exit_code=exit_code,
                turn=self.turn,
                at=self.at,
                place=place,
            )
        )

    def touch(
        self,
        path: str,
        action: Action,
        place: str,
        *,
        counts: tuple[int, int] | None = None,
        lines: EditedLines = NO_LINES,
        previous_path: str | None = None,
    ) -> None:
        """Add a file operation; `counts` are the numbers of added and removed lines."""
        if not path:
            return
        added, removed = counts or (None, None)
        self.files.append(
            FileChange(
                path=path,
                action=action,
                turn=self.turn,
                added=added,
                removed=removed,
                previous_path=previous_path,
                at=self.at,
                place=place,
                removed_lines=lines.removed,
                added_lines=lines.added,
            )
        )

    def fail(self, tool: str, text: str, place: str) -> None:
        """Add a tool call that failed."""
        self.errors.append(
            ToolError(tool=tool, text=clip(text, limit=2000), turn=self.turn, at=self.at, place=place)
        )

    def replace_plan(self, steps: list[tuple[str, str]]) -> None:
        """Replace the plan; `steps` are texts, each with the agent's word for its status."""
        self.plan = [
            TodoItem(text, parse_status(status), self.turn) for text, status in steps if text.strip()
        ]

    def summarize(self, text: str) -> None:
        """Note the summary that the agent wrote when its context was compacted.

        Some agents keep no readable summary: an earlier one is then all there is.
        """
        if text:
            self.summary, self.summary_turn, self.summary_at = text, self.turn, self.at

    def sum_tokens(self) -> Tokens:
        """Sum the usage of all records, each counted once."""
        columns = zip(*self.tokens.values(), strict=True)
        counts = TokenCounts(*map(sum, columns))
        return Tokens(counts.input, counts.cached, counts.cache_write, counts.output, counts.reasoning)

    def _join_waiting(self) -> Message | None:
        """Join the unanswered prompts, so that "continue", typed at a limit, does not hide the task."""
        if not self.waiting:
            return None
        return replace(self.waiting[-1], text="\n\n".join(one.text for one in self.waiting))

    def build(
        self,
        *,
        native_id: str,
        cwd: str,
        model: str = "",
        counter: LineCounter | None = None,
        context_window: int | None = None,
    ) -> Facts:
        """Build the facts."""
        counter = counter or LineCounter()
        self._note_interruption()
        return Facts(
            agent=self.agent,
            native_id=native_id,
            cwd=cwd,
            transcript=self.place,
            model=model,
            started_at=self.started_at,
            ended_at=self.ended_at,
            conversation=tuple(self.conversation),
            commands=tuple(self.commands),
            files=tuple(self.files),
            plan=tuple(self.plan),
            errors=tuple(self.errors),
            interrupted_turns=tuple(self.interrupted_turns),
            unprocessed_prompt=None if self.answered else self._join_waiting(),
            limit_text=self.limit_text,
            summary=self.summary,
            summary_turn=self.summary_turn,
            summary_at=self.summary_at,
            background=tuple(self.background),
            tokens=self.sum_tokens(),
            context_window=context_window,
            lines=counter.seen,
            skipped_lines=counter.skipped,
            strange_lines=counter.strange,
            last_lines=counter.list_last(is_understood=bool(self.conversation)),
        )
