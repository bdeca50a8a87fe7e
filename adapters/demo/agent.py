#!/usr/bin/env python3
"""The demo agent: a scripted coding agent with a prompt, a transcript and limits, and no provider behind it.

    agent.py [--name demo] [--session-id UUID | --resume UUID] [--brief FILE] [--model NAME] [--headless]

It plays `<name>.json` of the folder in `DEMO_AGENT_SCREENPLAYS`, else `../<name>/screenplay.json`, and
keeps its transcripts in `$DEMO_AGENT_HOME/<name>/` (default `~/.demo-agent`). Keys: Enter submits,
Ctrl-C interrupts a turn or clears the prompt, Ctrl-D on an empty prompt quits, `/quit` quits, `/compact`
makes what it says of its context a tenth. Pastes are bracketed; one of several lines is one prompt. Headless,
standard input is the one prompt, and every row of the transcript is also a line of standard output; the
status is 0 for a turn that was done, else 1.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from stage import Stage, Transcript, read_rows, read_screenplay
from terminal import Ended, Interrupted, Silence, Terminal

VERSION = "1.0.0"


def main() -> int:
    """The exit status: what the screenplay says, 0 for a quit, 143 after SIGTERM."""
    options = parse_options()
    folder = os.path.join(
        os.environ.get("DEMO_AGENT_HOME") or os.path.expanduser("~/.demo-agent"), options.name
    )
    native_id = options.resume or options.session_id or make_id()
    path = os.path.join(folder, f"{native_id}.jsonl")
    played = read_rows(path) if options.resume else []
    terminal = Silence() if options.headless else Terminal(options.name)
    transcript = Transcript(path, is_told=options.headless)
    stage = Stage(terminal, transcript, read_screenplay(options.name), played)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    try:
        with terminal:
            stage.open(native_id, options)
            if options.headless:
                return 0 if stage.play(sys.stdin.read()) else 1
            return serve(terminal, stage)
    except Ended as end:
        return end.status
    except (Interrupted, KeyboardInterrupt):
        stage.note_interrupt()
        return 130


def serve(terminal: Terminal, stage: Stage) -> int:
    """Plays one turn for each prompt until the user quits or the terminal is gone."""
    while True:
        terminal.show_state("ready")
        prompt = terminal.read_prompt()
        if prompt is None or prompt.strip() in {"/quit", "/exit"}:
            return 0
        if not prompt.strip():
            continue
        if prompt.strip() == "/compact":
            stage.compact()
            continue
        try:
            stage.play(prompt)
        except Interrupted:
            stage.note_interrupt()


def parse_options() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(description="A scripted agent.")
    parser.add_argument("--name", default="demo")
    parser.add_argument("--session-id", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--brief", default="", help="a file read before the first prompt")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--headless", action="store_true", help="one turn, without a screen")
    parser.add_argument("--version", action="version", version=f"demo-agent {VERSION}")
    return parser.parse_args()


def make_id() -> str:
    """A new conversation's."""
    import uuid  # dear to load, and relay gives an id

    return str(uuid.uuid4())


def stop(_number: int, _frame: object) -> None:
    """SIGTERM and SIGHUP end the program by way of its cleanup."""
    raise Ended(143)


if __name__ == "__main__":
    sys.exit(main())
