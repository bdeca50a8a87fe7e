"""A case laid out on disk: the agent's own transcript, the repository beside it, and a plain digest."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tests.fidelity.script import Case
from tests.fidelity.talk import weave
from tests.support.corpus import write_events
from tests.support.corpus_story import Event
from tests.support.handoffs import git

_ANCHOR = "line 29"
_LINES = "".join(f"line {number}\n" for number in range(30))
_DIGEST_OUTPUT, _DIGEST_FILE = 1500, 600


@dataclass(frozen=True, slots=True)
class LaidOut:
    """One case on disk. `shown` is what the user sees of it: without what they took back."""

    case: Case
    transcript: str
    repository: str
    shown: tuple[Event, ...]

    @property
    def digest(self) -> str:
        """The whole session in plain words, its outputs and new files cut."""
        return "\n\n".join(f"#{number} {text}" for number, text in enumerate(_digest(self.shown)))


def lay_out(case: Case, folder: str, *, talk: bool = True) -> LaidOut:
    """Write the transcript and the repository of `case` below `folder`; without `talk` only what matters."""
    root = os.path.join(folder, case.name)
    repository = os.path.join(root, "repo")
    told = [_anchor(event) for event in (weave(case) if talk else case.events)]
    shown = tuple(_list_shown(told))
    make_repository(shown, repository, created=find_created(case.events))
    path = write_events(
        case.agent,
        _list_native(told, case, repository),
        os.path.join(root, "transcript"),
        cwd=repository,
        wire=case.meta.get("format") == "wire",
    )
    return LaidOut(case, path, repository, shown)


def find_created(events: Iterable[Event]) -> frozenset[str]:
    """The files that `events` name first where they are created: there were none before."""
    first: dict[str, str] = {}
    for event in events:
        if event.kind in ("create", "read", "edit"):
            first.setdefault(event.text, event.kind)
    return frozenset(path for path, kind in first.items() if kind == "create")


def make_repository(events: Iterable[Event], folder: str, *, created: frozenset[str]) -> None:
    """A repository in the state before `events`, with the work tree in the state after them."""
    before: dict[str, str] = {"README.md": "x\n"}
    after: dict[str, str] = dict(before)
    for event in events:
        if event.kind == "create":
            after[event.text] = f"{event.get('content')}\n"
        elif event.kind in ("read", "edit"):
            _change(event, before, after, created=created)
    _write(before, folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    _write(after, folder)


def _change(event: Event, before: dict[str, str], after: dict[str, str], *, created: frozenset[str]) -> None:
    """Follow an edit; what it replaces and nobody wrote was in the file from the beginning."""
    path = event.text
    if path not in after:
        after[path] = _LINES
        if path not in created:
            before[path] = _LINES
    if event.kind == "read":
        return
    old = event.get("old")
    if old not in after[path]:
        after[path] += f"{old}\n"
        if path in before:
            before[path] += f"{old}\n"
    after[path] = after[path].replace(old, event.get("new"), 1)


def _write(files: dict[str, str], folder: str) -> None:
    for path, text in files.items():
        whole = os.path.join(folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)


def _anchor(event: Event) -> Event:
    """An edit that only adds names the line it adds to, as the agents' tools want it."""
    if event.kind != "edit" or event.get("old"):
        return event
    return replace(event, more={"old": _ANCHOR, "new": f"{_ANCHOR}\n{event.get('new')}"})


def _list_shown(events: Iterable[Event]) -> list[Event]:
    shown: list[Event] = []
    for event in events:
        if event.kind == "rewind":
            prompts = [place for place, one in enumerate(shown) if one.kind == "prompt"]
            del shown[prompts[-int(event.text)] :]
        else:
            shown.append(event)
    return shown


def _list_native(events: list[Event], case: Case, cwd: str) -> Iterator[Event]:
    """The events as the writers take them: with whole paths, and an end amid a turn where there is one."""
    cleared = max((place for place, event in enumerate(events) if event.kind == "clear"), default=-1)
    if case.agent != "claude":  # a cleared conversation is a file of its own
        events = events[cleared + 1 :]
    for event in events:
        match event.kind:
            case "read" | "edit" | "create":
                yield replace(event, text=os.path.join(cwd, event.text))
            case "plan" if case.meta.get("todos") != "tasks":
                yield replace(event, more={"tool": "TodoWrite"})
            case _:
                yield event
    if not events[-1].more.get("ends") and events[-1].kind != "limit":
        yield Event("cut", "")


def _digest(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        match event.kind:
            case "prompt":
                yield f"USER: {event.text}"
            case "say":
                yield f"AGENT: {event.text}"
            case "run":
                output = event.get("output")[:_DIGEST_OUTPUT]
                yield f"RUN (exit {event.get('exit')}): {event.text}\n{output}"
            case "edit":
                yield f"EDIT {event.text}\n" + "\n".join(event.list_changed())
            case "create":
                yield f"WRITE {event.text}\n{event.get('content')[:_DIGEST_FILE]}"
            case "plan":
                yield "PLAN " + "; ".join(f"[{status}] {text}" for text, status in event.steps)
            case "subagent":
                yield f"SUBAGENT {event.text}\n{event.get('says')}"
            case "compact":
                yield f"COMPACTION SUMMARY\n{event.text}"
            case _:
                pass
