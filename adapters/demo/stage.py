"""The demo agent's part: plays screenplay steps, edits and runs for real, and writes its transcript."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import datetime

from terminal import Ended, Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from terminal import Silence, Terminal

Row = dict[str, object]
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUN_LIMIT_S = 60
SHOWN_LINES = 3


class Transcript:
    """One JSON object a line, appended and flushed as it happens; with `is_told` on standard output too."""

    def __init__(self, path: str, *, is_told: bool = False) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._path = path
        self._is_told = is_told

    def write(self, kind: str, **values: object) -> None:
        """One more row, with its kind and time."""
        row = {"type": kind, "at": datetime.now().astimezone().isoformat(), **values}
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, json.dumps(row).encode() + b"\n")
        finally:
            os.close(handle)
        if self._is_told:
            print(json.dumps(row), flush=True)  # noqa: T201 - what a headless turn is for


class Stage:
    """Plays the screenplay. `played` are the rows of the transcript that is resumed."""

    def __init__(
        self, terminal: Terminal | Silence, transcript: Transcript, scenes: list[Row], played: list[Row]
    ) -> None:
        self._terminal = terminal
        self._transcript = transcript
        self._scenes = scenes
        self._played = played
        self._limit: Row = {}
        self._words = ""
        self._context: Row = {}

    def open(self, native_id: str, options: argparse.Namespace) -> None:
        """The banner, and on a resume everything that was said before, as agents repaint it."""
        self._terminal.say(f"{options.name} agent - a scripted agent, no account needed", "bold")
        self._transcript.write("session", id=native_id, agent=options.name, cwd=os.getcwd())
        for row in self._played:
            mark = {"prompt": "> ", "say": "* ", "limit": "! ", "warning": "! "}.get(str(row.get("type")))
            if mark:
                self._terminal.say(mark + str(row.get("text", "")), "red" if mark == "! " else "")
        if options.brief:
            with open(options.brief, encoding="utf-8", errors="replace") as stream:
                self._words = stream.read()
            self._transcript.write("brief", text=self._words)
            self._terminal.say(f"* read {len(self._words.splitlines())} lines of briefing", "dim")

    def play(self, prompt: str) -> bool:
        """One turn: the first scene left whose `when` is found in the prompt, or that has none.

        Whether it was done; a limit ends it before.
        """
        self._transcript.write("prompt", text=prompt)
        self._words = f"{self._words}\n{prompt}"
        lines = prompt.splitlines()
        shown = prompt if len(lines) <= SHOWN_LINES else f"{lines[0]} [+{len(lines) - 1} lines]"
        self._terminal.say(f"> {shown}")
        self._terminal.show_state("busy")
        if self._limit and time.time() < float(str(self._limit["resets_at"])):
            self._hit(self._limit)
            return False
        self._limit = {}
        for step in self._find_steps(prompt):
            self._perform(step)
            if self._limit:
                return False
        self._transcript.write("done")
        return True

    def compact(self) -> None:
        """The conversation is shorter: what its record says of it is a tenth of before."""
        self._transcript.write("compacted")
        self._fill(max(1, int(str(self._context.get("used", 0))) // 10))
        self._terminal.say("* compacted", "dim")

    def note_interrupt(self) -> None:
        """The turn was given up."""
        self._transcript.write("interrupted")
        self._terminal.say("* interrupted", "dim")

    def _find_steps(self, prompt: str) -> list[Row]:
        for scene in self._scenes:
            if re.search(str(scene.get("when", "")), prompt, re.IGNORECASE):
                if not scene.get("again"):
                    self._scenes.remove(scene)
                steps = scene["do"]
                assert isinstance(steps, list)  # noqa: S101 - a screenplay is ours
                return steps
        return [{"say": "My screenplay has nothing for this prompt."}]

    def _perform(self, step: Row) -> None:  # noqa: C901, PLR0912 - one arm a step
        if "wait_s" in step:
            self._terminal.wait(float(str(step["wait_s"])))
        if "think" in step:
            self._transcript.write("thought", text=step["think"])
            self._terminal.say(f"* {step['think']}", "dim")
        if "say" in step:
            self._say(str(step["say"]))
        if "quote" in step:
            found = re.search(str(step["quote"]), self._words, re.MULTILINE)
            self._say(str(step.get("as", "{}")).replace("{}", found[0].strip() if found else "(not told)"))
        if "edit" in step:
            self._edit(str(step["edit"]), step)
        if "run" in step:
            self._run(str(step["run"]))
        if "plan" in step:
            self._transcript.write("plan", steps=step["plan"])
        if "ask" in step and not self._terminal.ask(f"? {step['ask']} [y/n]"):
            raise Interrupted
        if "warn" in step:
            self._transcript.write("warning", text=step["warn"])
            self._terminal.say(f"! {step['warn']}", "red")
        if "context" in step:
            self._context |= {"window": step.get("window", 1000), "model": step.get("model", "scripted")}
            self._fill(step["context"])
        if "used" in step:
            self._transcript.write("window", **build_window(step))
        if "use" in step:
            self._transcript.write("usage", **step["use"])  # type: ignore[arg-type]  # a table in the screenplay
        if "retry" in step:
            self._retry(step)
        if "print" in step:
            self._terminal.say(str(step["print"]))
        if "limit" in step:
            self._hit(build_limit(step))
        if "linger_s" in step:
            # As agents do that wait for something they began: the turn is over, and the program is not.
            self._transcript.write("done")
            self._terminal.wait(float(str(step["linger_s"])))
        if "exit" in step:
            raise Ended(int(str(step["exit"])))

    def _fill(self, used: object) -> None:
        self._context["used"] = used
        self._transcript.write("context", **self._context)

    def _say(self, text: str) -> None:
        self._transcript.write("say", text=text)
        self._terminal.say(f"* {text}")

    def _edit(self, path: str, step: Row) -> None:
        try:
            with open(path, encoding="utf-8") as stream:
                before = stream.read()
            action = "modified"
        except FileNotFoundError:
            before, action = "", "created"
        after = str(step.get("text", before))
        for old, new in step.get("replace", {}).items():  # type: ignore[attr-defined]  # a table in the screenplay
            after = after.replace(old, new)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(after)
        import difflib  # dear to load, and not every play has it; the same below

        lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]
        marks = [line[0] for line in lines]
        added, removed = marks.count("+"), marks.count("-")
        told = {"path": path, "action": action, "added": added, "removed": removed}
        self._transcript.write("edit", **told, diff="\n".join(lines))
        self._terminal.say(f"* edit {path} +{added} -{removed}", "green")

    def _run(self, command: str) -> None:
        import subprocess

        try:
            done = subprocess.run(  # noqa: S602 - a screenplay's command line is the point
                command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=RUN_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._transcript.write("error", tool="run", text=f"{command}: no end after {RUN_LIMIT_S} s")
            return
        output = done.stdout.decode(errors="replace")
        self._transcript.write("run", command=command, exit_code=done.returncode, output=output)
        self._terminal.say(f"* run {command}", "green")
        self._terminal.say("\n".join(f"    {line}" for line in output.splitlines()[-8:]), "dim")

    def _retry(self, step: Row) -> None:
        """A provider's hiccup, or a wait nobody is told about: only the record says how long."""
        seconds = float(str(step["retry"]))
        self._transcript.write("retry", text="provider is busy", wait_s=seconds)
        self._terminal.wait(seconds)
        self._transcript.write("healed")

    def _hit(self, limit: Row) -> None:
        self._limit = limit
        self._transcript.write("limit", **limit)
        at = datetime.fromtimestamp(float(str(limit["resets_at"]))).astimezone()
        self._terminal.say(f"! {limit['text']} - resets {at:%H:%M}", "red")


def build_window(step: Row) -> Row:
    """How much of a usage window a step says is used, with its length and the moment it begins anew."""
    ends = float(str(step.get("resets_in_s", 3600))) + time.time()
    return {"used": step["used"], "minutes": step.get("minutes", 300), "resets_at": ends}


def build_limit(step: Row) -> Row:
    """The limit a step sets, with the moment of its end."""
    span = float(str(step.get("resets_in_s", 3600)))
    scope = step.get("scope", "account")
    return {"text": step["limit"], "scope": scope, "resets_at": span + time.time()}


def read_screenplay(name: str) -> list[Row]:
    """The scenes of the agent called `name`; none where it has no screenplay."""
    folder = os.environ.get("DEMO_AGENT_SCREENPLAYS", "")
    path = os.path.join(folder, f"{name}.json") if folder else os.path.join(HERE, name, "screenplay.json")
    try:
        with open(path, encoding="utf-8") as stream:
            return list(json.load(stream)["scenes"])
    except FileNotFoundError:
        return []


def read_rows(path: str) -> list[Row]:
    """The rows of an earlier transcript."""
    try:
        with open(path, encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]
    except FileNotFoundError:
        return []
