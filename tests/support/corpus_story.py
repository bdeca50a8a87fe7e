"""Stories of coding sessions, told once and written down in every agent's own format."""

import os
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from agent_relay.packet.freshness import Planting

CORPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "corpus")
_START = datetime(2026, 11, 20, 8, 0, 0, tzinfo=UTC)


@dataclass(slots=True)
class Event:
    """One thing that happened: `kind` is a key of `KINDS`, `text` its value in the story's file."""

    kind: str
    text: str
    more: dict[str, object] = field(default_factory=dict)
    steps: tuple[tuple[str, str], ...] = ()

    def get(self, key: str) -> str:
        """The text under `key`, empty where there is none."""
        return str(self.more.get(key, ""))

    def list_changed(self) -> list[str]:
        """The lines an edit leaves at its beginning, takes out and puts in, as a diff marks them."""
        old, new = (text.split("\n") if (text := self.get(key)) else [] for key in ("old", "new"))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        sides = ((" ", old[:same]), ("-", old[same:]), ("+", new[same:]))
        return [f"{mark}{line}" for mark, lines in sides for line in lines]

    def count_changed(self) -> tuple[int, int]:
        """Added and removed lines of an edit."""
        marks = [line[0] for line in self.list_changed()]
        return marks.count("+"), marks.count("-")


KINDS = (
    "prompt",
    "say",
    "run",
    "read",
    "edit",
    "create",
    "plan",
    "subagent",
    "compact",
    "limit",
    "fork",
    "fail",
    "interrupt",
    "clear",
    "rewind",
    "cut",
)
"""What happens in a session. `cut`: it stops amid a turn; `rewind`: the text says how many prompts back."""


@dataclass(frozen=True, slots=True)
class Story:
    """`turns` prompts in all; what no event of the file fills is ordinary work made up by `seed`."""

    agent: str
    cwd: str
    turns: int
    seed: int
    bulk: int
    events: dict[int, list[Event]]


def load_story(name: str) -> Story:
    """The story in the corpus folder `name`."""
    with open(os.path.join(CORPUS, name, "STORY.toml"), encoding="utf-8") as file:
        data = tomllib.loads(plant_secrets(file.read(), read_facts(name)))
    events: dict[int, list[Event]] = {}
    for entry in data["event"]:
        kind = next(key for key in entry if key in KINDS)
        more = {key: value for key, value in entry.items() if key not in (kind, "at")}
        event = Event(kind, str(entry[kind]), more)
        if kind == "plan":
            event = Event(kind, "", steps=tuple((text, status) for text, status in entry[kind]))
        events.setdefault(entry["at"], []).append(event)
    return Story(
        data["agent"], data["cwd"], data.get("turns", 0), data.get("seed", 1), data.get("bulk", 0), events
    )


def read_facts(name: str) -> Planting:
    """The facts planted in the story of the corpus folder `name`."""
    with open(os.path.join(CORPUS, name, "FACTS.toml"), "rb") as file:
        return Planting.parse(tomllib.load(file))


def plant_secrets(text: str, planting: Planting) -> str:
    """`text` with its secrets in their places: no file of ours holds one in one piece."""
    for number, secret in enumerate(planting.secret):
        text = text.replace(f"{{secret:{number}}}", secret.whole)
    return text


def tell(story: Story) -> Iterator[Event]:
    """The events of the whole session in order."""
    chance = random.Random(story.seed)  # noqa: S311 - the same story every time
    for turn in range(1, max(story.turns, *story.events) + 1):
        planted = story.events.get(turn)
        if planted is None:
            yield from _work(chance, turn, story)
            continue
        if planted[0].kind not in ("prompt", "compact", "fork"):
            yield Event("prompt", chance.choice(_PROMPTS).format(turn))
        yield from planted


class Clock:
    """The time of each record: a few seconds after the one before."""

    def __init__(self) -> None:
        self.now = _START

    def tick(self, seconds: float = 1.7) -> datetime:
        """The next moment."""
        self.now += timedelta(seconds=seconds)
        return self.now

    def iso(self) -> str:
        """The next moment as records write it."""
        return self.tick().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def ms(self) -> int:
        """The next moment in milliseconds."""
        return int(self.tick().timestamp() * 1000)


class Names:
    """Ids that look like the agents' own and are the same in every run."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - the same ids every time

    def hex(self, length: int) -> str:
        """Random hexadecimal digits."""
        return f"{self._chance.getrandbits(4 * length):0{length}x}"

    def uuid(self) -> str:
        """A version 4 UUID."""
        digits = self.hex(32)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


_PROMPTS = (
    "what does the scheduler do with an empty queue?",
    "continue",
    "looks good, go on",
    "and the next one",
    "can you explain how the cache key is built?",
    "rename the variable in the loop, it reads badly",
    "run it once more",
    "where is the timeout read?",
    "add a line about this to the changelog",
    "is there a test for the empty case?",
    "why is the second call slower?",
    "add a docstring to the new function",
    "ok",
    "show me the diff",
    "split that function in two",
    "make sure case {} is covered too",
    "don't forget the log line in step {}",
    "only run group {} this time",
    "use the shorter name in line {}",
    "does test {} need the network?",
)
_REMARKS = (
    "The loop stops early because the index is advanced twice.",
    "Looking at the scheduler now.",
    "The key is built from the path and the modification time.",
    "It subtracts instead of adding.",
    "The second call is slower since the cache is filled by then.",
    "I'll read the file first.",
    "Done: the function is split, and both halves have a docstring.",
    "The timeout is read in `settings.load`, at most once per process.",
    "That branch is never reached, so the warning does not appear.",
    "All tests pass.",
    "The first attempt failed with a timeout, the second one went through.",
    "Renamed it in three places.",
    "The diff is 12 lines; nothing else changed.",
    "I'm using the existing helper for this.",
    "There are two callers, both in the worker.",
    "The value cannot be negative, the parser rejects it.",
    "Line {} is reached twice because the loop starts at one.",
    "I'm reading part {} first since the others depend on it.",
    "Test {} failed because the fixture was missing, so I added it.",
    "I tried case {} again and it passes now.",
    "I'll use the limit of {} here too.",
)
_FILES = tuple(
    f"src/{name}.py" for name in ("queue", "worker", "settings", "parser", "cache", "report", "retry")
)
_COMMANDS = (
    ("git status --short", " M src/worker.py\n", 0),
    ("python -m pytest -q", "....................\n20 passed in 1.42s\n", 0),
    ("python -m pytest -q tests/test_queue.py", "....\n4 passed in 0.12s\n", 0),
    ("grep -rn 'timeout' src", "src/settings.py:14:timeout = 30\n", 0),
    ("grep -rn 'deadline' src", "", 1),
    ("python -m pytest -q tests/test_cache.py", "E   KeyError: 'path'\n1 failed, 3 passed in 0.20s\n", 1),
    ("ls -la build", "total 0\n", 0),
)


def _work(chance: random.Random, turn: int, story: Story) -> Iterator[Event]:
    """An ordinary turn: a question or a small wish, some reading, an edit or a command, an answer."""
    yield Event("prompt", chance.choice(_PROMPTS).format(turn))
    yield Event("say", chance.choice(_REMARKS).format(turn))
    for _ in range(chance.randrange(1, 4)):
        path = f"{story.cwd}/{chance.choice(_FILES)}"
        match chance.randrange(3):
            case 0:
                yield Event("read", path, {"content": fill(chance, story.bulk or 600)})
            case 1:
                yield Event("edit", path, {"old": f"limit = {turn}", "new": f"limit = {turn + 1}  # lines"})
            case _:
                command, output, code = chance.choice(_COMMANDS)
                output += fill(chance, story.bulk) if story.bulk else ""
                yield Event("run", command, {"output": output, "exit": code})
    if turn % 40 == 0:
        steps = ((f"Clean up module {turn // 40}", "completed"), ("Look at the next module", "in_progress"))
        yield Event("plan", "", steps=steps)
    yield Event("say", f"{chance.choice(_REMARKS)} {chance.choice(_REMARKS)}".format(turn, turn))


def fill(chance: random.Random, size: int) -> str:
    """About `size` characters of source text."""
    number = chance.randrange(1000)
    line = f"    value_{number} = compute(rows[{number}], limit=limit, strict=False)  # line\n"
    return line * max(1, size // len(line))
