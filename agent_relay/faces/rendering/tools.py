"""A tool's call on one line, and the first lines of what came of it."""

import json
import re
from collections.abc import Mapping

from agent_relay.faces.rendering.ink import Ink, Style, cut_line, join_line
from agent_relay.logic.lengths import LONGEST_RESULT
from agent_relay.logic.plain import clean_text

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
"""What a call's input is called where it says most of it."""
_CUT_TEXT = re.compile(r'"(\w+)":"((?:[^"\\]|\\.)*)')
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|z|da)?sh -l?c (['\"])?(.*)(?(1)\1)")
"""A command as the shell that runs it was given it."""
_HEADS = ("--- ", "+++ ", "diff ", "Index:", "index ", "=====", "\\ No newline")


def describe_call(name: str, given: str, columns: int, *, folder: str = "") -> str:
    """The call on one line: the tool, and the part of its input that says most, without `folder`."""
    what = join_line(_find_telling(given))
    if folder:
        what = what.replace(f"{folder}/", "")
    wrapped = _SHELL.fullmatch(what)
    what = wrapped[2] if wrapped else what
    return cut_line(f"{join_line(name)} {what}".strip(), columns)


def excerpt_output(text: str, ink: Ink, columns: int, *, is_error: bool) -> list[str]:
    """The first lines of a tool's output, and how many more there were."""
    lines = [line.expandtabs(4).rstrip() for line in clean_text(text).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    style: Style = "red" if is_error else "dim"
    shown = [ink.paint(style, f"  │ {cut_line(line, columns - 4)}".rstrip()) for line in lines[:SHOWN_LINES]]
    return [*shown, *_count_more(len(lines) - SHOWN_LINES, ink, is_cut=len(text) >= LONGEST_RESULT)]


def colour_diff(diff: str, ink: Ink, columns: int) -> list[str]:
    """A unified diff's changes in colour, without the files' names."""
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
    return [*shown, *_count_more(len(lines) - SHOWN_DIFF_LINES, ink, is_cut=False)]


def _count_more(more: int, ink: Ink, *, is_cut: bool) -> list[str]:
    if more <= 0:
        return [ink.paint("dim", "  … and more")] if is_cut else []
    at_least = "at least " if is_cut else ""
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
