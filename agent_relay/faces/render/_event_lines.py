"""Render events of a turn as lines that fit the terminal: tool calls, diffs, relay's own notes.

Colours are the terminal's own sixteen, or none.
"""

import json
import re
from collections.abc import Mapping
from typing import Literal

from agent_relay.domain.names import BY_HAND
from agent_relay.domain.text.plain import LONGEST_RESULT, clean_text, count_columns, quote_reason

Style = Literal["bold", "dim", "thought", "red", "green", "yellow", "cyan"]
_CODES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "thought": "2;3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


class TextPainter:
    """Paints text in a style; without colour, text stays as it is."""

    def __init__(self, *, is_colour: bool) -> None:
        self.is_colour = is_colour

    def paint(self, style: Style, text: str) -> str:
        """Return `text` in that style, which is reset behind it."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.is_colour and text else text


def join_line(text: str) -> str:
    """Return `text` on one line, safe to print."""
    return " ".join(clean_text(text).split())


def cut_line(text: str, columns: int) -> str:
    """Return `text` in at most `columns` columns, with an ellipsis if it was cut."""
    if count_columns(text) <= columns:
        return text
    kept, room = [], columns - 1
    for sign in text[: max(columns, 0)]:
        room -= count_columns(sign)
        if room < 0:
            break
        kept.append(sign)
    return "".join(kept) + "…" if columns > 0 else ""


def find_note(event: Mapping[str, object]) -> str:  # noqa: PLR0911 - one arm an event
    """Return relay's own sentence about the event; empty if it has none.

    It has none about an agent's words and work, nor about a turn that is done, unless tools were refused.
    """
    match event.get("type"):
        case "handoff" | "budget" | "waiting":
            return join_line(str(event.get("message", "")))
        case "leg" if event.get("asked"):
            reason = f"{event['asked']} is not available ({event.get('why', '')})"
            return join_line(f"→ {reason}; {event.get('agent', '')} takes this turn.")
        case "handoff-failed":
            return join_line(f"→ {event.get('why', '')}")
        case "signal" if event.get("scope") == "warning":
            return join_line(f"→ {event.get('agent', '')}: {quote_reason(str(event.get('text', '')))}")
        case "left-out":
            line = (
                f"a line of {event.get('agent', '')}'s output is longer than {_show_size(event)} and left out"
            )
            return join_line(f"→ {line}")
        case "end":
            return join_line(_describe_end(event))
        case _:
            return ""


def _show_size(event: Mapping[str, object]) -> str:
    longest = event.get("longest")
    return f"{longest >> 20} MiB" if isinstance(longest, int) else "we read"


def _describe_end(event: Mapping[str, object]) -> str:
    outcome, agent = event.get("outcome"), event.get("agent")
    why = event.get("why") or "it gave no reason"
    if outcome == "done":
        return _describe_refused(event)
    if outcome == "resting":
        return str(event.get("message") or f"→ {why}")
    line = f"→ {agent} {'failed' if outcome == 'failed' else 'was stopped'}: {why}"
    if why == BY_HAND:
        line = f"→ {agent} was {why}"
    return f"{line.rstrip('.')}. {event['hint']}" if event.get("hint") else line


def _describe_refused(event: Mapping[str, object]) -> str:
    """Name the tools the agent was refused: its answer may rest on work it could not do."""
    refused = event.get("refused")
    if not isinstance(refused, list | tuple) or not refused:
        return ""
    names = ", ".join(str(name) for name in refused)
    agent = event.get("agent")
    return f"→ {agent} was not allowed to use: {names}. To allow more, pass {agent}'s own options after --"


SHOWN_LINES = 5
SHOWN_DIFF_LINES = 40
_TELLING = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "subject",
    "prompt",
)
"""Keys of a call's input whose values say most of it."""
_CUT_TEXT = re.compile(r'"(\w+)":"((?:[^"\\]|\\.)*)')
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|z|da)?sh -l?c (['\"])?(.*)(?(1)\1)")
"""A command as the shell that runs it was given it."""
_HEADS = ("--- ", "+++ ", "diff ", "Index:", "index ", "=====", "\\ No newline")


def describe_call(name: str, given: str, columns: int, *, folder: str = "") -> str:
    """Return the call on one line: the tool, and the most telling part of its input, without `folder`."""
    what = join_line(_find_telling(given))
    if folder:
        what = what.replace(f"{folder}/", "")
    wrapped = _SHELL.fullmatch(what)
    what = wrapped[2] if wrapped else what
    return cut_line(f"{join_line(name)} {what}".strip(), columns)


def excerpt_output(text: str, ink: TextPainter, columns: int, *, is_error: bool) -> list[str]:
    """Return the first lines of a tool's output, and how many more there were."""
    lines = [line.expandtabs(4).rstrip() for line in clean_text(text).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    style: Style = "red" if is_error else "dim"
    shown = [ink.paint(style, f"  │ {cut_line(line, columns - 4)}".rstrip()) for line in lines[:SHOWN_LINES]]
    return [*shown, *_count_more(len(lines) - SHOWN_LINES, ink, is_truncated=len(text) >= LONGEST_RESULT)]


def colour_diff(diff: str, ink: TextPainter, columns: int) -> list[str]:
    """Return a unified diff's changes in colour, without the names of the files."""
    lines = [line for line in clean_text(diff).split("\n") if not line.startswith(_HEADS)]
    while lines and not lines[-1]:
        lines.pop()
    shown = []
    for line in lines[:SHOWN_DIFF_LINES]:
        text = f"  {cut_line(line.expandtabs(4), columns - 2)}"
        match line[:1]:
            case "+":
                shown.append(ink.paint("green", text))
            case "-":
                shown.append(ink.paint("red", text))
            case "@":
                shown.append(ink.paint("cyan", text))
            case _:
                shown.append(ink.paint("dim", text))
    return [*shown, *_count_more(len(lines) - SHOWN_DIFF_LINES, ink, is_truncated=False)]


def _count_more(more: int, ink: TextPainter, *, is_truncated: bool) -> list[str]:
    if more <= 0:
        return [ink.paint("dim", "  … and more")] if is_truncated else []
    at_least = "at least " if is_truncated else ""
    return [ink.paint("dim", f"  … {at_least}{more:,} {'line' if more == 1 else 'lines'} more")]


def _find_telling(given: str) -> str:
    if not given.lstrip().startswith("{"):
        return given
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        # It was cut in its middle.
        found = {name: text.replace("\\n", " ") for name, text in _CUT_TEXT.findall(given)}
    return _read_telling(found) if isinstance(found, dict) else ""


def _read_telling(given: Mapping[str, object]) -> str:
    for name in _TELLING:
        if isinstance(given.get(name), str):
            return str(given[name])
    changes = given.get("changes")
    if isinstance(changes, list):
        return ", ".join(str(change.get("path", "")) for change in changes if isinstance(change, dict))
    texts = [text for text in given.values() if isinstance(text, str)]
    return texts[0] if texts else ""
