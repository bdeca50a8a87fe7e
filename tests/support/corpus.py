"""The corpus of transcripts with planted facts: written out from its stories, or read as it was stored."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from agent_relay.packet.freshness import Planting
from tests.support.corpus_claude import ClaudeWriter
from tests.support.corpus_codex import CodexWireWriter, CodexWriter
from tests.support.corpus_gemini import GeminiWriter
from tests.support.corpus_opencode import OpencodeWriter
from tests.support.corpus_story import CORPUS, Event, Story, load_story, plant_secrets, read_facts, tell


class _Writer(Protocol):
    """Writes one session in an agent's own format."""

    def __init__(self, folder: str, cwd: str) -> None: ...

    def write(self, events: Iterable[Event]) -> str: ...


_WRITERS: dict[str, type[_Writer]] = {
    "claude": ClaudeWriter,
    "codex": CodexWriter,
    "gemini": GeminiWriter,
    "opencode": OpencodeWriter,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One transcript of the corpus on disk, and what was planted in it."""

    name: str
    agent: str
    path: str
    planting: Planting


def list_names(group: Literal["told", "hard", "unseen"] = "told") -> list[str]:
    """The corpus folders of one group.

    `told` says by its words what it is, `hard` only by where it stands; the rules of extraction were made
    looking at both. `unseen` was written before those rules and not shown to them.
    """
    names = sorted(name for name in os.listdir(CORPUS) if os.path.isdir(os.path.join(CORPUS, name)))
    groups = {"hard": "hard-", "unseen": "unseen-"}
    if group == "told":
        return [name for name in names if not name.startswith(tuple(groups.values()))]
    return [name for name in names if name.startswith(groups[group])]


def lay_out(name: str, folder: str) -> Sample:
    """The transcript of the corpus folder `name`, written below `folder`."""
    planting = read_facts(name)
    folder = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    stored = os.path.join(CORPUS, name, planting.transcript)
    if planting.transcript and os.path.exists(stored):
        path = os.path.join(folder, planting.transcript)
        with open(stored, encoding="utf-8") as file:
            text = plant_secrets(file.read(), planting)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        story = load_story(name)
        path = _WRITERS[story.agent](folder, story.cwd).write(tell(story))
    return Sample(name, planting.agent, path, planting)


def lay_out_bulk(agent: str, folder: str, *, turns: int, bulk: int) -> str:
    """The path of a made-up transcript of `turns` turns, whose tools print about `bulk` characters each."""
    first = [Event("prompt", "Build the reports. Never touch vendor/."), Event("say", "I'll begin.")]
    last = [Event("prompt", "go on with the next report"), Event("limit", "Usage limit reached.")]
    story = Story(agent, "/home/user/bulk", turns, 5, bulk, {1: first, turns: last})
    return _WRITERS[agent](folder, story.cwd).write(tell(story))


def write_events(agent: str, events: Iterable[Event], folder: str, *, cwd: str, wire: bool = False) -> str:
    """The path of `agent`'s transcript of `events` below `folder`; `wire`: as Codex wrote it before items."""
    writer = CodexWireWriter if wire else _WRITERS[agent]
    return writer(folder, cwd).write(events)
