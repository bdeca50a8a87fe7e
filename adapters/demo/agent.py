#!/usr/bin/env python3
"""The demo agent: a scripted coding agent with a prompt, a transcript and limits, and no provider behind it.

    agent.py [--name demo] [--session-id UUID | --resume UUID] [--brief FILE] [--model NAME]

It plays `<name>.json` of the folder in `DEMO_AGENT_SCREENPLAYS`, else `../<name>/screenplay.json`, and
keeps its transcripts in `$DEMO_AGENT_HOME/<name>/` (default `~/.demo-agent`). Keys: Enter submits,
Ctrl-C interrupts a turn or clears the prompt, Ctrl-D on an empty prompt quits, `/quit` quits, `/compact`
makes what it says of its context a tenth. Pastes are bracketed; one of several lines is one prompt.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import uuid

from stage import Ended, Interrupted, Stage, Transcript, read_rows, read_screenplay
from terminal import Terminal

VERSION = "1.0.0"


def main() -> int:
    """The exit status: what the screenplay says, 0 for a quit, 143 after SIGTERM."""
    options = parse_options()
    folder = os.path.join(
        os.environ.get("DEMO_AGENT_HOME") or os.path.expanduser("~/.demo-agent"), options.name
    )
    native_id = options.resume or options.session_id or str(uuid.uuid4())
    path = os.path.join(folder, f"{native_id}.jsonl")
    played = read_rows(path) if options.resume else []
    terminal = Terminal(options.name)
    stage = Stage(terminal, Transcript(path), read_screenplay(options.name), played)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    try:
        with terminal:
            stage.open(native_id, options)
            return serve(terminal, stage)
    except Ended as end:
        return end.status


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
    parser.add_argument("--version", action="version", version=f"demo-agent {VERSION}")
    return parser.parse_args()


def stop(_number: int, _frame: object) -> None:
    """SIGTERM and SIGHUP end the program by way of its cleanup."""
    raise Ended(143)


if __name__ == "__main__":
    sys.exit(main())
