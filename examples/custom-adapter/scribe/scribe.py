#!/usr/bin/env python3
"""Scribe: the smallest agent relay can work with. It writes each prompt into NOTES.md, without a provider.

    scribe.py [--session-id UUID | --resume UUID] [--model NAME] [--headless]

Put your own agent in its place, or let yours leave the same evidence. It takes `SCRIBE_ALLOWANCE` prompts a
day (default 100), then it is at its limit until midnight. Each conversation has a transcript in
`~/.scribe/sessions` (`SCRIBE_HOME` in place of `~/.scribe`). Enter sends, Ctrl-C clears, Ctrl-D leaves.
Headless, standard input is the one prompt, and every row of the transcript is also a line of standard output.
"""

import argparse
import codecs
import glob
import json
import os
import re
import sys
import termios
import tty
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

INPUT = re.compile(
    r"\x1b\[200~(?P<pasted>.*?)\x1b\[201~"  # a bracketed paste, once all of it is there
    r"|\x1b\[(?!200~)[0-9;?]*[A-Za-z~]|\x1bO.|\x1b[^\[O]"  # keys that type nothing
    r"|(?P<key>[^\x1b])",
    re.DOTALL,
)
NOTES = "NOTES.md"
FOLDER = os.path.join(os.environ.get("SCRIBE_HOME") or os.path.expanduser("~/.scribe"), "sessions")


class Scribe:
    """One conversation: what is said is shown, or told as rows where there is no screen."""

    def __init__(self, native_id: str, *, headless: bool) -> None:
        self._path = os.path.join(FOLDER, f"{native_id}.jsonl")
        self._headless = headless
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        self._tell("session", id=native_id, agent="scribe", cwd=os.getcwd())

    def take(self, prompt: str) -> bool:
        """Whether the prompt was written down; not at the limit."""
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0) + timedelta(days=1)
        is_used_up = count_today() >= int(os.environ.get("SCRIBE_ALLOWANCE", "100"))
        self._tell("prompt", text=prompt)
        self._show("scribe is writing ...")
        if is_used_up:
            text = "Your daily allowance is used up."
            self._tell("limit", text=text, scope="account", resets_at=midnight.timestamp())
            self._show(text)
            return False
        action = "modified" if os.path.exists(NOTES) else "created"
        lines = prompt.splitlines()
        with open(NOTES, "a", encoding="utf-8") as notes:
            notes.writelines(f"{line}\n" for line in lines)
        self._tell("edit", path=NOTES, action=action, added=len(lines), removed=0)
        answer = f"I wrote it into {NOTES}."
        self._tell("say", text=answer)
        self._show(answer)
        self._tell("done")
        return True

    def _tell(self, kind: str, **values: object) -> None:
        """Write one more row of the transcript."""
        row = json.dumps({"type": kind, "at": datetime.now().astimezone().isoformat(), **values})
        with open(self._path, "a", encoding="utf-8") as transcript:
            transcript.write(f"{row}\n")
        if self._headless:
            print(row, flush=True)

    def _show(self, text: str) -> None:
        if not self._headless:
            print(text, end="\r\n", flush=True)


def count_today() -> int:
    """How many prompts were written down today, in all conversations."""
    today, count = datetime.now().astimezone().date(), 0
    for path in glob.glob(os.path.join(glob.escape(FOLDER), "*.jsonl")):
        with open(path, encoding="utf-8") as transcript:
            rows = [json.loads(line) for line in transcript]
        count += sum(
            row["type"] == "done" and datetime.fromisoformat(row["at"]).date() == today for row in rows
        )
    return count


def read_prompts() -> Iterator[str]:
    """Each prompt that is typed or pasted in the terminal, until Ctrl-D or its end."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    keys, typed = "", ""
    show_typed(typed)
    while data := os.read(0, 65536):
        keys += decode(data)
        while found := INPUT.match(keys):
            keys, key = keys[found.end() :], found["key"] or ""
            if key == "\x04" and not typed:
                return
            if key in {"\r", "\n"} and typed.strip():
                show_typed(typed)
                print(end="\r\n")
                yield typed
                typed = ""
            else:
                typed = edit_typed(typed, key) + (found["pasted"] or "")
        show_typed(typed)


def edit_typed(typed: str, key: str) -> str:
    """What stands in the row people type into after `key`."""
    if key in {"\x03", "\x15", "\r", "\n"}:
        return ""
    if key in {"\x7f", "\x08"}:
        return typed[:-1]
    return typed + key if key.isprintable() else typed


def show_typed(typed: str) -> None:
    """Draw the row people type into; of a text of several lines only how many they are."""
    lines = typed.splitlines()
    shown = typed if len(lines) < 2 else f"[{len(lines)} lines]"  # noqa: PLR2004 - one line is shown
    print(f"\r\x1b[Kscribe> {shown}", end="", flush=True)


def main() -> int:
    """The exit status: 0; headless, 1 for a prompt that was not written down."""
    parser = argparse.ArgumentParser()
    for name in ("--session-id", "--resume", "--model"):
        parser.add_argument(name, default="")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--version", action="version", version="scribe 1.0.0")
    asked = parser.parse_args()
    scribe = Scribe(asked.resume or asked.session_id or str(uuid.uuid4()), headless=asked.headless)
    if asked.headless:
        return 0 if scribe.take(sys.stdin.read()) else 1
    modes = termios.tcgetattr(0)
    tty.setraw(0)
    print("\x1b[?2004h", end="")
    try:
        for prompt in read_prompts():
            scribe.take(prompt)
    finally:
        print("\x1b[?2004l", end="\r\n", flush=True)
        termios.tcsetattr(0, termios.TCSADRAIN, modes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
