"""Facts read from a native transcript, in one shape for every agent; packets are built from them."""

from datetime import datetime
from typing import Literal

import msgspec


class Message(msgspec.Struct, frozen=True):
    """One message of the conversation, quoted. `turn` counts the user's prompts from 1."""

    role: Literal["user", "assistant"]
    text: str
    turn: int
    at: datetime | None = None
    place: str = ""


class CommandRun(msgspec.Struct, frozen=True):
    """One command the agent ran. `exit_code` is `None` where the transcript does not say."""

    command: str
    output: str
    exit_code: int | None
    turn: int
    at: datetime | None = None
    place: str = ""


MOST_EDITED_LINES = 40
"""The most lines kept of those an edit removed, and of those it added: the first ones."""
EDITED_LINE_LENGTH = 160
"""The most characters kept of an edited line; a longer one ends with a whole word."""


class FileChange(msgspec.Struct, frozen=True):
    """One file operation of the agent; `path` as the transcript has it, absolute or relative to cwd.

    `removed_lines` and `added_lines` are the lines of an edit, without blank ones and without surrounding
    white space, at most `MOST_EDITED_LINES` of `EDITED_LINE_LENGTH` characters; of a created file, the first
    ones. They are empty if the transcript does not have them, so they must not be counted.
    """

    path: str
    action: Literal["created", "modified", "deleted", "renamed", "read"]
    turn: int
    added: int | None = None
    removed: int | None = None
    previous_path: str | None = None
    at: datetime | None = None
    place: str = ""
    removed_lines: tuple[str, ...] = ()
    added_lines: tuple[str, ...] = ()


class TodoItem(msgspec.Struct, frozen=True):
    """One step of the agent's plan or todo list, in its last known status."""

    text: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    turn: int = 0


class ToolError(msgspec.Struct, frozen=True):
    """A tool call that failed other than by an exit code."""

    tool: str
    text: str
    turn: int
    at: datetime | None = None
    place: str = ""


class Tokens(msgspec.Struct, frozen=True):
    """Usage summed over the transcript, repeated records counted once.

    The same for every agent: `input` is without `cached` and `cache_write`, `output` with `reasoning`.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class Facts(msgspec.Struct, frozen=True):
    """Everything read from one native transcript.

    `unprocessed_prompt` is the user's last message if no assistant answer followed it; an answer
    that is only a limit or API error is no answer. `limit_text` is the agent's own words about the
    limit that ended it, newest first record only. Of the transcript's `lines`, `skipped_lines` were left
    out; of these the `strange_lines` were not understood, and `last_lines` quotes the last of them (or, of a
    transcript that holds no conversation, its last lines). `unread` is why there are no facts although a
    transcript exists: it cannot be read. `restored` is why and until when they are from relay's checkpoints,
    because the transcript has lost them. `summary` is what the agent wrote when its context was last
    compacted, after the prompt `summary_turn` (0: before the first) and at `summary_at`, if known.
    `interrupted_turns` are those that the user interrupted.
    """

    agent: str
    native_id: str = ""
    cwd: str = ""
    transcript: str = ""
    model: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    conversation: tuple[Message, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    files: tuple[FileChange, ...] = ()
    plan: tuple[TodoItem, ...] = ()
    errors: tuple[ToolError, ...] = ()
    interrupted_turns: tuple[int, ...] = ()
    unprocessed_prompt: Message | None = None
    limit_text: str = ""
    summary: str = ""
    summary_turn: int | None = None
    summary_at: datetime | None = None
    background: tuple[str, ...] = ()
    tokens: Tokens = msgspec.field(default_factory=Tokens)
    context_window: int | None = None
    lines: int = 0
    skipped_lines: int = 0
    strange_lines: int = 0
    last_lines: tuple[str, ...] = ()
    unread: str = ""
    restored: str = ""


class RecordCursor(msgspec.Struct, frozen=True):
    """The end of what was read of an agent's record: `offset` in a file, the message `newest` in a database.

    `seal` is a check sum of what surrounds the read part: another file at that path has another one. `oldest`
    is the first message read of a database. `lines` were read in all. `is_other` once the record was found to
    be another one than before: it may lack what an earlier one held.
    """

    path: str
    offset: int = 0
    seal: str = ""
    oldest: str = ""
    newest: str = ""
    lines: int = 0
    is_other: bool = False


class CheckpointFacts(msgspec.Struct, frozen=True):
    """The facts that one checkpoint keeps: what the conversation gained since the one before, redacted.

    `turns` are the user's prompts in the conversation so far. The plan is always the whole one.
    """

    leg: str
    agent: str
    native_id: str
    at: datetime
    cursor: RecordCursor
    turns: int
    facts: Facts


class TurnFacts(msgspec.Struct):
    """The prompt, answers, commands, files and errors of one turn, each kind in the transcript's order.

    `number` counts the user's prompts from 1; turn 0 precedes the first. `prompt` is `None` for unprompted
    work. `files` includes those that were only read; `edits` does not.
    """

    number: int
    prompt: Message | None = None
    answers: list[Message] = msgspec.field(default_factory=list)
    commands: list[CommandRun] = msgspec.field(default_factory=list)
    files: list[FileChange] = msgspec.field(default_factory=list)
    errors: list[ToolError] = msgspec.field(default_factory=list)

    @property
    def edits(self) -> list[FileChange]:
        """The changes of files."""
        return [change for change in self.files if change.action != "read"]


def group_by_turn(facts: Facts) -> list[TurnFacts]:
    """Group what was said and done by turn, in the order of the turns."""
    turns: dict[int, TurnFacts] = {}

    def get(number: int) -> TurnFacts:
        return turns.setdefault(number, TurnFacts(number))

    for said in facts.conversation:
        turn = get(said.turn)
        if said.role == "assistant":
            turn.answers.append(said)
        elif turn.prompt is None:
            turn.prompt = said
    for run in facts.commands:
        get(run.turn).commands.append(run)
    for change in facts.files:
        get(change.turn).files.append(change)
    for error in facts.errors:
        get(error.turn).errors.append(error)
    return [turns[number] for number in sorted(turns)]


class NativeSession(msgspec.Struct, frozen=True):
    """A session an agent keeps itself, as adoption lists it.

    `path` is the file to read it from (a database may hold many: `native_id` tells them apart). `title`
    is the user's first prompt or the agent's own title, `changed_at` the file's or row's last change.
    """

    path: str
    native_id: str
    cwd: str
    title: str
    changed_at: datetime
    started_at: datetime | None = None
