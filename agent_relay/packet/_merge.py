"""Merge what a predecessor's packet says with what was found since: statements, plan and files.

Duplicates are left out. Files are those of the predecessors, of the agent and of git; where they differ,
git's state counts.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TypeVar

import msgspec

from agent_relay.domain.documents.packet import Decision, Exchange, PlanStep, Provenance, Quote, TouchedFile
from agent_relay.domain.facts import Facts, FileChange, Message
from agent_relay.domain.names import FOLDER
from agent_relay.domain.values import Tree, TreeFile, render_path
from agent_relay.packet.extract.later_changes import (
    LaterWords,
    LiftedRule,
    find_corrections,
    find_later_words,
    find_lifted_rules,
)
from agent_relay.packet.extract.ledger import cut_ending
from agent_relay.packet.extract.provenance import get_turn, tell_source
from agent_relay.packet.extract.requests import Quotation, is_rule, weigh_rule
from agent_relay.packet.extract.sentences import is_alike, normalise, split_sentences

_EntryT = TypeVar("_EntryT")

_CONSTRAINTS = 40
_EXCHANGES = 60
_MARKS = ("ended_in", "ended_how", "ended_by", "revisited_in", "revisited_by")
_DECISIONS = 30
TASK_LENGTH = 12_000
"""The maximum length of a task, in characters."""
_TEXT: Callable[[Quotation | Quote], str] = attrgetter("text")


def merge_constraints(before: Iterable[Quote], found: Iterable[Quotation], agent: str) -> tuple[Quote, ...]:
    """Merge the rules so far with the new ones.

    Of too many, those that hold throughout are kept, then the oldest and the newest.
    """
    quotes = list(before)
    fresh = _leave_known(found, list(map(_TEXT, quotes)), _TEXT)
    quotes += [Quote(text=spoken.text, source=tell_source(agent, spoken.said)) for spoken in fresh]
    last = len(quotes) - 1
    ranks = [(-weigh_rule(quote.text), min(at, last - at)) for at, quote in enumerate(quotes)]
    return _keep(quotes, ranks, _CONSTRAINTS)


def find_lifted(before: Iterable[Quote], prompts: Sequence[Message]) -> list[LiftedRule]:
    """Find the rules, of earlier legs and of `prompts`, that a prompt takes back."""
    carried = [Message("user", rule.text, -1 - at) for at, rule in enumerate(before) if not rule.ended_in]
    return find_lifted_rules([*carried, *prompts])


def mark_ended(
    quotes: Iterable[Quote],
    exchanges: Iterable[Exchange],
    prompts: Sequence[Message],
    lifted: Sequence[LiftedRule],
    agent: str,
) -> tuple[Quote, ...]:
    """Mark the rules from prompts that a later prompt took back, corrected or seems to change.

    `prompts` are those of `agent`'s leg; not all of them are among the exchanges. A prompt that takes one of
    several rules back leaves the others as they are.
    """
    sources = {said.turn: get_turn(tell_source(agent, said)) for said in prompts}
    marks: dict[tuple[str, str, int] | None, dict[str, object]] = {
        sources[one.earlier]: {"revisited_in": one.later, "revisited_by": cut_ending(one.words)}
        for one in find_later_words(prompts)
    }
    for one in exchanges:
        if (one.ended_in and one.ended_how != "replaced") or one.revisited_in:
            marks[get_turn(one.source)] = {name: getattr(one, name) for name in _MARKS}
    marks.pop(None, None)
    narrow = {(sources.get(one.earlier), one.later) for one in lifted}

    def mark(quote: Quote) -> dict[str, object]:
        turn = get_turn(quote.source)
        for one in lifted:
            if normalise(one.rule) in normalise(quote.text) and turn != sources.get(one.later):
                is_whole = normalise(one.rule) == normalise(quote.text)
                how = one.how if is_whole else "corrected"
                return {"ended_in": one.later, "ended_how": how, "ended_by": cut_ending(one.words)}
        found = marks.get(turn, {})
        later = found.get("ended_in") or found.get("revisited_in")
        return {} if (turn, later) in narrow else found

    return tuple(quote.model_copy(update=mark(quote)) for quote in quotes)


def _leave_known(
    found: Iterable[_EntryT], known: Iterable[str], read: Callable[[_EntryT], str]
) -> Iterator[_EntryT]:
    """Yield the entries whose text by `read` is neither among `known` nor that of an earlier one."""
    seen = set(map(normalise, known))
    for entry in found:
        key = normalise(read(entry))
        if key not in seen:
            seen.add(key)
            yield entry


def _keep(entries: Sequence[_EntryT], ranks: Sequence[tuple[int, int]], limit: int) -> tuple[_EntryT, ...]:
    """Keep the `limit` entries of the lowest ranks, in their order."""
    chosen = sorted(range(len(entries)), key=ranks.__getitem__)[:limit]
    return tuple(entries[at] for at in sorted(chosen))


def merge_exchanges(before: Sequence[Exchange], found: Iterable[Exchange]) -> tuple[Exchange, ...]:
    """Merge the ledger so far with that of the leg, which may correct it; of too many keep the weightiest.

    An exchange that the leg's record repeats from an earlier leg is kept once.
    """
    fresh = list(found)
    known = {_get_moment(one.source) for one in fresh if one.source}
    before = [one for one in before if one.source is None or _get_moment(one.source) not in known]
    carried = [Message("user", one.said, -1 - at) for at, one in enumerate(before)]
    prompts = [Message("user", one.said, one.source.turn or 0) for one in fresh if one.source]
    changes = {one.earlier: one.later for one in find_corrections([*carried, *prompts]) if one.later > 0}
    revisits = {one.earlier: one for one in find_later_words([*carried, *prompts]) if one.later > 0}
    words = {said.turn: said.text for said in prompts}
    exchanges = [
        _mark_corrected(one, changes[place], words[changes[place]])
        if place in changes
        else _mark_revisited(one, revisits.get(place))
        for place, one in zip((said.turn for said in carried), before, strict=True)
    ]
    exchanges += fresh
    ranks = [(-one.weight, -at) for at, one in enumerate(exchanges)]
    return _keep(exchanges, ranks, _EXCHANGES)


def _get_moment(source: Provenance) -> tuple[object, ...]:
    return (source.agent, source.transcript, source.turn, source.at)


def _mark_corrected(exchange: Exchange, turn: int, words: str) -> Exchange:
    ended = {"ended_in": turn, "ended_how": "corrected", "ended_by": cut_ending(words), "is_settled": False}
    return exchange.model_copy(update=ended)


def _mark_revisited(exchange: Exchange, later: LaterWords | None) -> Exchange:
    if later is None or exchange.ended_in or not any(map(is_rule, split_sentences(exchange.said))):
        return exchange
    update = {"revisited_in": later.later, "revisited_by": cut_ending(later.words)}
    return exchange.model_copy(update=update)


def merge_decisions(
    before: Iterable[Decision], exchanges: Sequence[Exchange], task: str, asked: Provenance | None
) -> tuple[Decision, ...]:
    """Merge the decisions so far, with their ids, with what is settled in the merged ledger.

    A decision that the ledger shows as corrected since is dropped, and so is the `task` itself, `asked` at
    that place; of too many the last ones are kept.
    """
    ended = {turn for one in exchanges if one.ended_in and (turn := get_turn(one.source))}
    ended |= {turn for turn in (get_turn(asked),) if turn}
    exchanges = [one for one in exchanges if get_turn(one.source) not in ended]
    decisions = [one for one in before if not (one.in_ledger and get_turn(one.source) in ended)]
    number = max((_number(decision.id) for decision in decisions), default=0)
    known = [task, *(decision.summary for decision in decisions)]
    for one in _leave_known((one for one in exchanges if one.is_settled), known, attrgetter("said")):
        number += 1
        told = {"id": f"D{number}", "summary": one.said, "why": one.on, "source": one.source}
        decisions.append(Decision.model_validate({**told, "in_ledger": True}))
    return tuple(decisions[-_DECISIONS:])


def _number(name: str) -> int:
    return int(name[1:]) if name[1:].isascii() and name[1:].isdigit() else 0


def merge_plan(before: Sequence[PlanStep], facts: Facts, agent: str) -> tuple[PlanStep, ...]:
    """Merge the agent's own plan with its predecessor's open steps that it does not name."""
    if not facts.plan:
        return tuple(before)
    steps = [
        PlanStep(
            text=step.text,
            status=step.status,
            source=Provenance(agent=agent, transcript=facts.transcript, turn=step.turn or None),
        )
        for step in facts.plan
    ]
    left = [
        step
        for step in before
        if step.status in ("pending", "in_progress")
        and not any(is_alike(step.text, one.text) for one in steps)
    ]
    return (*steps, *left)


_READ_FILES = 30
_OTHER_FILES = 200


class Places(msgspec.Struct, frozen=True):
    """The folders that paths are relative to: `root`, and below it `cwd`, the agent's own folder.

    `prefix` is `cwd` relative to `root`; it is given where a symlink hides that one lies in the other.
    """

    root: str
    cwd: str
    prefix: str = ""

    def shorten(self, path: str) -> str:
        """Return `path` relative to the root, or absolute if it lies elsewhere."""
        whole = posixpath.normpath(posixpath.join(self.cwd or self.root or "/", path))
        for folder, prefix in ((self.root, ""), (self.cwd, self.prefix)):
            if folder and whole.startswith(folder.rstrip("/") + "/"):
                inner = whole[len(folder.rstrip("/")) + 1 :]
                return render_path(posixpath.normpath(posixpath.join(prefix, inner)))
        return render_path(whole)


def merge_files(
    facts: Facts, tree: Tree | None, before: Iterable[TouchedFile], *, places: Places, agent: str
) -> tuple[TouchedFile, ...]:
    """Merge the files worked on: the predecessors', the agent's, then others that git reports.

    Where they differ, git decides: files that match HEAD or no longer exist are left out, and lines are
    counted by git or not at all, since adding up edits does not give the difference between two states.
    Files that were only read come last, the latest thirty.
    """
    found: dict[str, TouchedFile] = {file.path: _forget_counts(file) for file in before}
    for change in facts.files:
        _apply(found, change, places, agent)
    seen = {render_path(file.path): file for file in tree.files} if tree else {}
    for path in map(render_path, (*tree.clean, *tree.gone)) if tree else ():
        if path in found and found[path].status != "read":
            del found[path]
    for path, file in seen.items():
        known = found.get(path)
        if known is not None:
            found[path] = _agree(known, file)
    others = [_adopt(path, file) for path, file in seen.items() if path not in found]
    files = [file for file in found.values() if not is_own(file.path)]
    changed = [file for file in files if file.status != "read"]
    read = [file for file in files if file.status == "read"]
    others = [file for file in others if not is_own(file.path)]
    return (*changed, *others[:_OTHER_FILES], *read[-_READ_FILES:])


def _forget_counts(file: TouchedFile) -> TouchedFile:
    return file.model_copy(update={"added": None, "removed": None})


def is_own(path: str) -> bool:
    """Check whether the file is one that relay itself maintains."""
    return path == FOLDER or path.startswith(f"{FOLDER}/")


def _apply(found: dict[str, TouchedFile], change: FileChange, places: Places, agent: str) -> None:
    path = places.shorten(change.path)
    source = tell_source(agent, change)
    known = found.pop(path, None)
    if change.action == "read":
        found[path] = known or TouchedFile(path=path, status="read", source=source)
        return
    previous = places.shorten(change.previous_path) if change.previous_path else None
    if previous is not None:
        known = found.pop(previous, None) or known
    if known is not None and known.status == "created" and change.action == "deleted":
        return
    found[path] = TouchedFile(
        path=path,
        status="created" if known is not None and known.status == "created" else change.action,
        previous_path=previous or (known.previous_path if known else None),
        source=source,
    )


def _agree(known: TouchedFile, file: TreeFile) -> TouchedFile:
    """Return the agent's file with git's state; an untracked file the agent made stays created."""
    status = "created" if file.status == "untracked" and known.status == "created" else file.status
    return known.model_copy(
        update={
            "status": status,
            "added": file.added,
            "removed": file.removed,
            "previous_path": render_path(file.previous_path) if file.previous_path else known.previous_path,
        }
    )


def _adopt(path: str, file: TreeFile) -> TouchedFile:
    return TouchedFile(
        path=path,
        status=file.status,
        added=file.added,
        removed=file.removed,
        previous_path=render_path(file.previous_path) if file.previous_path else None,
    )
