"""What the provider plays and what it heard: the script file a test writes, the log file it reads."""

import json
import os
import threading
import time
from collections import Counter
from typing import Any

from tests.support.provider.steps import FOREVER, Step, say

NOTHING_LEFT = "(the script has nothing more)"


def flatten(value: object) -> str:
    """Every string inside `value`, one a line: a request's words without its wire format."""
    match value:
        case str():
            return value
        case dict():
            return "\n".join(part for each in value.values() if (part := flatten(each)))
        case list():
            return "\n".join(part for each in value if (part := flatten(each)))
        case _:
            return ""


def asks_for_document(request: object) -> bool:
    """Whether it is relay that asks, in a fork of the conversation: such a request brings no tools."""
    return "Write a handoff document for another coding agent" in flatten(request)


class Script:
    """The steps of each agent, read anew from `path` at every request, with our place in them.

    The file is `{agent: {"take": n, "steps": [...]}}`; a new take starts from its first step.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._takes: dict[str, int] = {}
        self._place: Counter[str] = Counter()
        self._played: Counter[str] = Counter()

    def take_step(self, agent: str) -> Step:
        """The step that answers this request of `agent`."""
        with self._lock:
            with open(self._path, encoding="utf-8") as file:
                part = json.load(file).get(agent, {"take": 0, "steps": []})
            if self._takes.get(agent) != part["take"]:
                self._takes[agent] = part["take"]
                self._place[agent] = self._played[agent] = 0
            steps: list[Step] = part["steps"]
            if self._place[agent] >= len(steps):
                return say(NOTHING_LEFT)
            step = steps[self._place[agent]]
            self._played[agent] += 1
            times = step.get("times", 1)
            if times != FOREVER and self._played[agent] >= times:
                self._place[agent] += 1
                self._played[agent] = 0
            return step


class Log:
    """One JSON line for every request, written before it is answered."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, row: dict[str, Any]) -> None:
        """Append `row` with the time."""
        line = json.dumps({"at": time.time(), **row}, ensure_ascii=False)
        with self._lock, open(self._path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


class Part:
    """What is played and heard in one world, by the world's folder."""

    def __init__(self, folder: str) -> None:
        self.script = Script(f"{folder}/script.json")
        self.log = Log(f"{folder}/requests.jsonl")


def write_script(path: str, script: dict[str, Any]) -> None:
    """Publish `script` so that no request reads half of it."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(script, file)
    os.replace(path + ".new", path)
