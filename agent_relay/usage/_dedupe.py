"""Merge the records of all of an agent's transcripts, so that what several of them report counts once."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

import msgspec

from agent_relay.transcripts.usage_records import (
    Answers,
    AnswerUsage,
    LinesChanged,
    PackedAnswers,
    PromptSent,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    unpack_answers,
)

_DEPTH = 64
_OTHERS = PromptSent, TurnFailed, LinesChanged
_get_moment, _get_session = attrgetter("at"), attrgetter("session")


class Native(msgspec.Struct):
    """One native session of an agent with its subagents; each record once, in order of time."""

    agent: str
    session: str
    cwd: str = ""
    parent: str = ""
    used: Answers = msgspec.field(default_factory=list)
    prompts: list[PromptSent] = msgspec.field(default_factory=list)
    failures: list[TurnFailed] = msgspec.field(default_factory=list)
    changes: list[LinesChanged] = msgspec.field(default_factory=list)


def dedupe_marks(agent: str, transcripts: Iterable[Sequence[UsageRecord]]) -> list[Native]:
    """Return the native sessions the transcripts report, oldest first.

    A record in two transcripts belongs to the one that was there first: to that of the other's parent, else
    to the one that begins, then ends, earlier. Sessions of subagents are part of those they work for.
    """
    files = [_Transcript(marks) for marks in transcripts if marks]
    told = [mark for file in files for mark in file.opened]
    # The first word counts: a subagent's file may name its session, too, and lies behind the session's own.
    opened = {mark.session: mark for mark in reversed(told)}
    if any(file.packed for file in files):
        files = _unpack_shared(files, opened)
    ranks = [file.find_rank(opened) for file in files]
    shared = {rank for rank, times in Counter(ranks).items() if times > 1}
    # When it ended takes a look at all it tells, and sets those apart only that began at one time.
    order = {
        file: (*rank, file.find_last() if rank in shared else 0, file.session)
        for file, rank in zip(files, ranks, strict=True)
    }
    files.sort(key=order.__getitem__)
    pool = _Pool(opened)
    for file in files:
        pool.take(file)
    return sorted(pool.build(agent), key=_first_moment)


def _first_moment(native: Native) -> tuple[int, str]:
    used = [native.used] if isinstance(native.used, PackedAnswers) else native.used
    marks = (used, native.prompts, native.failures, native.changes)
    return min((listed[0].at for listed in marks if listed), default=0), native.session


def _unpack_shared(
    files: Sequence["_Transcript"], opened: Mapping[str, SessionOpened]
) -> list["_Transcript"]:
    """Return the files, with packed answers unpacked if several files report on a session or it is related.

    Related are sessions with a parent, those of subagents, and their parents.
    """
    tellers = Counter(session for file in files for session in file.list_sessions())
    shared = {session for session, times in tellers.items() if times > 1}
    for known in opened.values():
        if known.parent or known.is_side:
            shared |= {known.session, known.parent}
    return [
        _Transcript(unpack_answers(file.marks)) if any(one.session in shared for one in file.packed) else file
        for file in files
    ]


def _list_ancestors(session: str, opened: Mapping[str, SessionOpened]) -> list[str]:
    """Return the ancestors of `session`, nearest first; stop at a circle, which only a forged file has."""
    found: list[str] = []
    known = opened.get(session)
    while known is not None and known.parent and known.parent not in found and len(found) < _DEPTH:
        found.append(known.parent)
        known = opened.get(known.parent)
    return found


class _Transcript:
    """The records of one transcript by kind, sorted as each is read, while others are still being read."""

    __slots__ = ("_first", "marks", "named", "opened", "others", "packed", "session", "unnamed")

    def __init__(self, marks: Sequence[UsageRecord]) -> None:
        self.marks = marks
        used = [mark for mark in marks if isinstance(mark, AnswerUsage)]
        rest = [mark for mark in marks if not isinstance(mark, AnswerUsage)]
        self.named = [mark for mark in used if mark.key]
        self.unnamed = [mark for mark in used if not mark.key] if len(self.named) < len(used) else []
        self.opened = [mark for mark in rest if isinstance(mark, SessionOpened)]
        self.packed = [mark for mark in rest if isinstance(mark, PackedAnswers)]
        self.others = [mark for mark in rest if isinstance(mark, _OTHERS)]
        self._first = next((mark for mark in marks if not isinstance(mark, SessionOpened)), None)
        self.session = self._first.session if self._first is not None else ""

    def find_rank(self, opened: Mapping[str, SessionOpened]) -> tuple[int, int]:
        """Return the transcript's rank (number of ancestors, begin); the lowest claims shared records."""
        return (len(_list_ancestors(self.session, opened)), self._first.at) if self._first else (0, 0)

    def find_last(self) -> int:
        """Return when it ended, epoch in ms."""
        lasts = [packed.last for packed in self.packed]
        lasts += [mark.at for mark in (*self.named, *self.unnamed, *self.others)]
        return max(lasts, default=0)

    def list_sessions(self) -> list[str]:
        """Return the sessions whose answers it holds; a session is repeated for each of its packs."""
        return [one.session for one in self.packed] + [*set(map(_get_session, self.named + self.unnamed))]


class _Pool:
    """The records taken so far, by their keys."""

    def __init__(self, opened: Mapping[str, SessionOpened]) -> None:
        self._opened = opened
        self._used: dict[str, AnswerUsage] = {}
        self._unnamed: list[AnswerUsage] = []
        self._packed: list[PackedAnswers] = []
        self._chains: dict[str, set[str]] = {}
        self._others: dict[tuple[type, str], PromptSent | TurnFailed | LinesChanged] = {}

    def take(self, transcript: _Transcript) -> None:
        """Add one transcript's records."""
        used, chains = self._used, self._chains
        self._unnamed += transcript.unnamed
        self._packed += transcript.packed
        for mark in transcript.named:
            key = mark.key
            known = used.setdefault(key, mark)
            if mark.output > known.output:
                used[key] = msgspec.structs.replace(mark, at=known.at, session=known.session)
            if mark.chain:
                chains.setdefault(mark.session, set()).add(mark.chain)
        for other in transcript.others:
            self._take_other(other)

    def _take_other(self, mark: PromptSent | TurnFailed | LinesChanged) -> None:
        known = self._others.setdefault((type(mark), mark.key), mark)
        if not isinstance(mark, LinesChanged) or not isinstance(known, LinesChanged):
            return
        # Written again as a turn goes on; the most is the last.
        if mark.added + mark.removed > known.added + known.removed:
            self._others[type(mark), mark.key] = msgspec.structs.replace(mark, session=known.session)

    def build(self, agent: str) -> list[Native]:
        """Return the native sessions."""
        natives: dict[str, Native] = {}
        places: dict[str, Native] = {}

        def find(session: str) -> Native:
            native = places.get(session)
            if native is None:
                native = places[session] = self._get(natives, agent, session)
            return native

        listed: dict[str, list[AnswerUsage]] = {}
        named = itertools.groupby(self._used.values(), _get_session)
        for session, answers in itertools.chain(named, self._keep_unnamed()):
            listed.setdefault(find(session).session, []).extend(answers)
        for session, some in listed.items():
            natives[session].used = sorted(some, key=_get_moment)
        for packed in self._packed:
            find(packed.session).used = packed
        for mark in self._others.values():
            self._add_other(find(mark.session), mark)
        for native in natives.values():
            for marks in (native.prompts, native.failures, native.changes):
                marks.sort(key=_get_moment)
        return list(natives.values())

    def _add_other(self, native: Native, mark: PromptSent | TurnFailed | LinesChanged) -> None:
        match mark:
            case PromptSent():
                if not self._is_side(mark.session):
                    native.prompts.append(mark)
            case TurnFailed():
                native.failures.append(mark)
            case _:
                native.changes.append(mark)

    def _keep_unnamed(self) -> Iterator[tuple[str, Iterable[AnswerUsage]]]:
        """Yield, by session, the answers without keys that none of its ancestors has reported.

        Such answers are known by their running total alone.
        """
        chains = self._chains
        for session, group in itertools.groupby(self._unnamed, _get_session):
            ancestors = _list_ancestors(session, self._opened)
            own = chains.setdefault(session, set())
            # Siblings of a parent that is gone would each tell its history.
            is_lost = bool(ancestors) and ancestors[-1] not in self._opened
            answers: dict[str, AnswerUsage] = {}
            for used in group:
                # Of those with one total the first counts.
                answers.setdefault(used.chain, used)
            for told in (own, *(chains[one] for one in ancestors if one in chains)):
                for chain in told & answers.keys():
                    del answers[chain]
            own.update(answers)
            if is_lost:
                chains.setdefault(ancestors[-1], set()).update(answers)
            yield session, answers.values()

    def _is_side(self, session: str) -> bool:
        known = self._opened.get(session)
        return known is not None and known.is_side

    def _get(self, natives: dict[str, Native], agent: str, session: str) -> Native:
        """Return the entry of the session a record belongs to: for a subagent's, the one it works for."""
        ancestors = iter(_list_ancestors(session, self._opened))
        while self._is_side(session):
            above = next(ancestors, None)
            if above is None:
                break
            session = above
        native = natives.get(session)
        if native is None:
            known = self._opened.get(session) or SessionOpened(session)
            native = natives[session] = Native(agent, session, known.cwd, known.parent)
        return native
