#!/usr/bin/env python3
"""Counts on the screen and keeps every byte it wrote: `agent.py NATIVE_ID`.

Keys: `g` goes, `s` stops, `L` hits the limit, Ctrl-D ends; any other is shown as it came.
"""

import json
import os
import select
import sys
import termios
import time
import tty
from datetime import datetime

EVERY_S = 0.002


def main() -> None:
    """Runs until Ctrl-D or the terminal's end."""
    place = f"{os.environ['HOME']}/.counter/{sys.argv[1]}"
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    transcript = os.open(f"{place}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kept = os.open(f"{place}.bytes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(kind: str, **values: object) -> None:
        row = {"type": kind, "at": datetime.now().astimezone().isoformat(), **values}
        os.write(transcript, json.dumps(row).encode() + b"\n")

    def say(text: str) -> None:
        data = text.encode()
        os.write(kept, data)
        while data:
            data = data[os.write(1, data) :]

    note("session", id=sys.argv[1], agent="counter", cwd=os.getcwd())
    modes = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        count(say, note)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, modes)


def count(say: object, note: object) -> None:
    """One line every two milliseconds while it goes."""
    assert callable(say)
    assert callable(note)
    number, goes = 0, False
    say("ready")
    while True:
        if select.select([0], [], [], EVERY_S if goes else None)[0]:
            for key in os.read(0, 4096).decode("utf-8", "replace"):
                if key == "\x04":
                    return
                if key == "g":
                    goes = True
                    note("prompt", text="count")
                    say("\r\nBEGIN\r\n")
                elif key == "s":
                    goes = False
                    say("END\r\nready")
                elif key == "L":
                    text = "You've hit your session limit"
                    note("limit", text=text, scope="account", resets_at=time.time() + 600)
                    say(f"\x1b[31m! {text}\x1b[0m\r\n")
                else:
                    say(f"key {ord(key):02x}\r\n")
        elif goes:
            say(f"line {number:06} \x1b[3{number % 8}mñ→語\x1b[0m {'.' * (number % 40)}\r\n")
            number += 1


if __name__ == "__main__":
    main()
