"""Define the dated records that usage is summed from, one by one or in columns, and a reader's state."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from agent_relay.transcripts.lenient_json import LINE_BYTES, Record, decode_mended, parse_moment

MOST_TOKENS = 10**12
"""Most tokens of a request; a record with more is damaged, and would not fit the usage index's integers."""


class TokenCounts(NamedTuple):
    """The tokens of one answer, each counted once but for what is said here.

    `input` excludes what was `cached` or written to the cache, `output` includes `reasoning`, and
    `cache_write` includes `cache_write_long` (for an hour).
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cache_write_long: int = 0


def get_tokens(value: Mapping[str, object], key: str) -> int:
    """Return the number of tokens under `key`: 0 if there is none, or one below 0 or above `MOST_TOKENS`."""
    found = value.get(key)
    return found if type(found) is int and 0 <= found <= MOST_TOKENS else 0


# The year 2286; days far beyond it cannot be named.
_LATEST_MS = 10**13
_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AnswerUsage(msgspec.Struct, frozen=True, array_like=True, tag="u", gc=False):
    """One answer of a model, billed to the native session `session`.

    Several with one `key` are one answer, recorded several times: the one with the most output counts.
    `chain` is the running total, after the answer, of the session and those it was forked from, empty if the
    format has none: it identifies an answer without a key. `input` excludes what was `cached` or written to
    the cache, `output` includes `reasoning`, `cache_write` includes `cache_write_long` (for an hour). `at` is
    the epoch in ms, 0 if nothing dates the answer.
    """

    key: str
    at: int
    session: str
    model: str = ""
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cache_write_long: int = 0
    chain: str = ""

    @property
    def tokens(self) -> int:
        """All tokens of the answer, each counted once."""
        return self.input + self.cached + self.cache_write + self.output


class PackedAnswers(msgspec.Struct, frozen=True, array_like=True, tag="a", gc=False):
    """Answers without keys of one session, in order of time, each with a total of its own.

    `at` is the time of the first, `last` of the last. `models` are their models in order, each with its
    number of consecutive answers; `chains` their totals, a line each. `counts` are six columns as
    MessagePack: `at`, `input`, `cached`, `cache_write`, `output` and `reasoning`.
    """

    session: str
    at: int
    last: int
    models: tuple[tuple[str, int], ...]
    chains: str
    counts: bytes


class PromptSent(msgspec.Struct, frozen=True, array_like=True, tag="p", gc=False):
    """The user sent a prompt: a turn begins."""

    key: str
    at: int
    session: str


class TurnFailed(msgspec.Struct, frozen=True, array_like=True, tag="f", gc=False):
    """The turn ended in an error of the provider: a limit, most often."""

    key: str
    at: int
    session: str


class LinesChanged(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False):
    """The agent changed lines of a file."""

    key: str
    at: int
    session: str
    added: int
    removed: int


class SessionOpened(msgspec.Struct, frozen=True, array_like=True, tag="o", gc=False):
    """A transcript's statement about one of its sessions.

    `parent` is the session it was forked from or works for; `is_side` marks the latter, a subagent, whose
    work belongs to its parent.
    """

    session: str
    cwd: str = ""
    parent: str = ""
    is_side: bool = False


UsageRecord = AnswerUsage | PackedAnswers | PromptSent | TurnFailed | LinesChanged | SessionOpened


class ReaderState(msgspec.Struct):
    """A reader's state between two reads of a growing file, without any text of a conversation.

    `total` is the running total last seen, `model` the present one, `at` the last moment in epoch ms. Until
    `replays_until` (epoch ms) the file repeats records of another one. `is_told` is whether the file has
    named its session, `has_items` whether it lists finished items. `skipped` counts lines that could not be
    read.
    """

    session: str = ""
    cwd: str = ""
    parent: str = ""
    is_side: bool = False
    model: str = ""
    at: int = 0
    total: str = ""
    skipped: int = 0
    replays_until: int = 0
    is_told: bool = False
    has_items: bool = False


def note_moment(memory: ReaderState, value: object) -> int:
    """Store the record's moment and return it in epoch ms.

    Without a usable one, from 1970 to 2286, return the last stored.
    """
    moment = parse_moment(value)
    if moment is not None:
        since = moment - _EPOCH
        at = (since.days * _DAY_S + since.seconds) * 1000 + since.microseconds // 1000
        if 0 < at < _LATEST_MS:
            memory.at = at
    return memory.at


def decode_lines(data: bytes, decoder: msgspec.json.Decoder[Record], memory: ReaderState) -> Iterator[Record]:
    """Yield the record of each line; those that cannot be read are counted in `memory`.

    A line too long to be a record is left out.
    """
    view, start = memoryview(data), 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = end if end >= 0 else len(data)
        line, start = view[start:end], end + 1
        if not 0 < len(line) <= LINE_BYTES:
            continue
        try:
            yield decode_mended(line, decoder.decode)
        except (msgspec.DecodeError, RecursionError):
            memory.skipped += 1


Answers = Sequence[AnswerUsage] | PackedAnswers
"""Answers of one session, in order of time."""
_columns = msgspec.msgpack.Decoder(list[list[int]])


class Columns(msgspec.Struct, frozen=True, gc=False):
    """Answers with the fields of `AnswerUsage`, each at one index of all columns.

    `counts` are `input`, `cached`, `cache_write`, `output`, `reasoning` and `cache_write_long`.
    """

    at: Sequence[int]
    models: Sequence[str]
    counts: Sequence[Sequence[int]]


def list_columns(answers: Answers) -> Columns:
    """Return the answers as columns."""
    if isinstance(answers, PackedAnswers):
        times, *columns = _split(answers)
        names = [model for name, count in answers.models for model in (name,) * count]
        return Columns(times, names, [*columns, [0] * len(times)])
    _, at, _, models, *counts, _ = _transpose(answers)
    return Columns(at, models, counts)


def list_answers(answers: Answers) -> Sequence[AnswerUsage]:
    """Return the answers one by one."""
    return [*_unpack(answers)] if isinstance(answers, PackedAnswers) else answers


def pack_answers(marks: list[UsageRecord]) -> list[UsageRecord]:
    """Return the marks with all answers without keys packed, at the place of the first, if possible."""
    unnamed = [mark for mark in marks if isinstance(mark, AnswerUsage) and not mark.key]
    packed = _pack(unnamed) if unnamed else None
    if packed is None:
        return marks
    place = marks.index(unnamed[0])
    rest = [mark for mark in marks[place:] if not isinstance(mark, AnswerUsage) or mark.key]
    return [*marks[:place], packed, *rest]


def unpack_answers(marks: Sequence[UsageRecord]) -> list[UsageRecord]:
    """Return the marks with each answer by itself."""
    return [one for mark in marks for one in (_unpack(mark) if isinstance(mark, PackedAnswers) else (mark,))]


def _pack(unnamed: list[AnswerUsage]) -> PackedAnswers | None:
    """Pack the answers; return `None` if columns cannot hold them, or if one may repeat another."""
    _, at, sessions, models, *counts, long, chains = _transpose(unnamed)
    is_one = len(set(sessions)) == 1 and not any(long) and list(at) == sorted(at)
    if not is_one or len(set(chains)) < len(chains) or "" in chains:
        return None
    runs = tuple((model, len([*group])) for model, group in groupby(models))
    return PackedAnswers(
        sessions[0], at[0], at[-1], runs, "\n".join(chains), msgspec.msgpack.encode([at, *counts])
    )


def _transpose(answers: Sequence[AnswerUsage]) -> Sequence[Sequence[Any]]:
    """Return all fields of the answers, as columns."""
    return [*zip(*map(astuple, answers), strict=True)] or [()] * len(AnswerUsage.__struct_fields__)


def _split(packed: PackedAnswers) -> list[list[int]]:
    return _columns.decode(packed.counts)


def _unpack(packed: PackedAnswers) -> Iterator[AnswerUsage]:
    columns = list_columns(packed)
    told = zip(columns.at, columns.models, *columns.counts, packed.chains.split("\n"), strict=True)
    for at, model, new, cached, written, output, reasoning, long, chain in told:
        yield AnswerUsage("", at, packed.session, model, new, cached, written, output, reasoning, long, chain)
