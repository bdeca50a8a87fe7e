"""Scripts of sessions, independent of any agent's format, and the events they describe.

Markers stand at the start of a line; what follows up to the next marker is the body:

  @META key=value …
  @U text                 the user
  @A text, @a text        the agent: it ends its turn, it goes on
  @$ [exit] command       with its output
  @E path                 an edit: its - and + lines
  @W path, @R path        a new file, a file that is read: its content
  @T                      the plan: [x] done, [>] doing, [ ] open
  @S title                a subagent and its report
  @C summary              the conversation is compacted
  @INT, @CLEAR, @LIMIT    interrupted, cleared, stopped at a limit
  @BRANCH … @REWIND [n]   what is taken back: n prompts, by default those since the branch
  @F path path …          routine work on each: read, edit, check
  @HOLD                   no ordinary talk before the next prompt

Keys of @META: agent; check and ok, what routine work runs and prints; noise, how many exchanges of ordinary
talk; todos=todo or tasks, Claude's two ways to plan; format=wire, Codex without items; aside, a pattern of
paths that ordinary talk does not touch; seed, by default the case's name. `_` in `check` and `ok` is a space.
"""

import os
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.fidelity.truths import Truth, load_truth
from tests.support.corpus_story import Event

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
_MARK = re.compile(r"^@(U|A|a|\$|E|W|R|T|S|C|INT|CLEAR|BRANCH|REWIND|F|LIMIT|META|HOLD)(?: (.*))?$")
_STATUS = {"x": "completed", ">": "in_progress", " ": "pending"}
_KINDS = {
    "U": "prompt",
    "A": "say",
    "a": "say",
    "C": "compact",
    "$": "run",
    "E": "edit",
    "W": "create",
    "R": "read",
    "T": "plan",
    "S": "subagent",
    "INT": "interrupt",
    "CLEAR": "clear",
    "LIMIT": "limit",
}
_LIMITS = {
    "claude": "You've hit your session limit · resets 3:40pm (UTC)",
    "codex": "You’ve hit your usage limit. Try again at 3:40 PM.",  # noqa: RUF001 - its own apostrophe
    "gemini": "[API Error: You have exhausted your daily quota on this model.]",
    "opencode": "Free usage exceeded, subscribe to Zen",
}
_ROUTINE = (
    "Reading {f} first.",
    "Next is {f}.",
    "{f} needs the same treatment.",
    "Now {f}.",
    "Let me check how {f} does it.",
    "Small change in {f}.",
    "Moving on to {f}.",
    "{f} imports the old name, updating.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One session as scripted, without ordinary talk, and the truth about it."""

    name: str
    meta: Mapping[str, str]
    events: tuple[Event, ...]
    truth: Truth

    @property
    def agent(self) -> str:
        """The agent whose session it is."""
        return self.meta["agent"]

    @property
    def seed(self) -> str:
        """The seed that decides where ordinary talk is inserted."""
        return self.meta.get("seed", self.name)


def list_cases(folder: str = CASES) -> list[str]:
    """The names of the cases in the folder."""
    return sorted(name.removesuffix(".case") for name in os.listdir(folder) if name.endswith(".case"))


def load_case(name: str, folder: str = CASES) -> Case:
    """The case `name` with its truth; secrets are put into the script where it says `{secret:0}`."""
    truth = load_truth(os.path.join(folder, f"{name}.truth"))
    with open(os.path.join(folder, f"{name}.case"), encoding="utf-8") as file:
        text = file.read()
    for number, secret in enumerate(truth.secrets):
        text = text.replace(f"{{secret:{number}}}", secret)
    return parse_case(name, text, truth)


def parse_case(name: str, text: str, truth: Truth) -> Case:
    """The case in a script; raises ValueError if it names no agent or rewinds more than there is."""
    steps = list(split_steps(text))
    meta: dict[str, str] = {}
    for kind, head, _ in steps:
        if kind == "META":
            meta |= dict(pair.split("=", 1) for pair in head.split())
    if meta.get("agent") not in _LIMITS:
        raise ValueError(f"{name}: @META names no agent of {', '.join(_LIMITS)}")
    return Case(name, meta, tuple(_read_steps(steps, meta, seed=meta.get("seed", name))), truth)


def split_steps(text: str) -> Iterator[tuple[str, str, str]]:
    """Marker, the rest of its line, and the body below it."""
    steps: list[tuple[str, str, list[str]]] = []
    for line in text.split("\n"):
        found = _MARK.match(line)
        if found:
            steps.append((found[1], found[2] or "", []))
        elif steps:
            steps[-1][2].append(line)
    for kind, head, body in steps:
        yield kind, head, "\n".join(body).strip("\n")


def _read_steps(steps: list[tuple[str, str, str]], meta: Mapping[str, str], *, seed: str) -> Iterator[Event]:
    """The events of all steps: routine work is spelled out, and a rewind says how many prompts it takes."""
    chance = random.Random(f"{seed}.case")  # noqa: S311 - the same words every time
    prompts, held = 0, False
    branch: int | None = None
    for kind, head, body in steps:
        match kind:
            case "META":
                continue
            case "HOLD":
                held = True
            case "BRANCH":
                branch = prompts
            case "REWIND":
                back = int(head or (1 if branch is None else prompts - branch))
                branch = None
                prompts -= back
                if prompts < 0:
                    raise ValueError(f"@REWIND {back} takes back more prompts than there are")
                yield Event("rewind", str(back))
            case "F":
                yield from _work(head.split(), meta, chance)
            case "U":
                prompts += 1
                yield Event("prompt", f"{head}\n{body}".strip("\n"), {"held": held})
                held = False
            case _:
                yield read_step(kind, head or (_LIMITS[meta["agent"]] if kind == "LIMIT" else ""), body)


def _work(paths: list[str], meta: Mapping[str, str], chance: random.Random) -> Iterator[Event]:
    check = meta.get("check", "make lint").replace("_", " ")
    printed = meta.get("ok", "All checks passed!").replace("_", " ")
    for path in paths:
        yield Event("say", chance.choice(_ROUTINE).format(f=path))
        yield Event("read", path, {"content": "1\t# …"})
        yield Event("edit", path, {"old": "    value = old(x)", "new": "    value = new(x)"})
        yield Event("run", f"{check} {path}", {"output": printed, "exit": 0})


def read_step(kind: str, head: str, body: str) -> Event:
    """The event of one marker that needs nothing of the others."""
    text = head
    more: dict[str, object] = {}
    steps: tuple[tuple[str, str], ...] = ()
    match kind:
        case "U" | "A" | "a" | "C":
            text, more = f"{head}\n{body}".strip("\n"), {"ends": kind == "A"}
        case "$":
            found = re.match(r"\[(\d+)\] (.*)", head)
            text, code = (found[2], int(found[1])) if found else (head, 0)
            more = {"output": body, "exit": code}
        case "E":
            sides = {mark: [line[1:] for line in body.split("\n") if line[:1] == mark] for mark in "-+"}
            more = {"old": "\n".join(sides["-"]), "new": "\n".join(sides["+"])}
        case "W" | "R":
            more = {"content": body or ("…" if kind == "R" else "")}
        case "T":
            rows = [row for row in body.split("\n") if row[:1] == "["]
            steps = tuple((row[4:], _STATUS[row[1]]) for row in rows)
        case "S":
            more = {"says": body, "finished": True}
        case _:
            pass
    return Event(_KINDS[kind], text, more, steps)
