"""The table of `make newest`: what pytest noted of the scenes, as Markdown and on its page."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass

SCENES = {
    "limit": "limit",
    "silent_limit": "silent limit",
    "near_limit": "near limit",
    "decoy": "decoy",
    "retry": "retry",
    "handoff_out": "handoff out",
    "handoff_in": "handoff in",
    "resume": "resume",
    "quit": "quit",
    "reset": "reset",
}
"""The scenes by the names of their tests, with the heads of their columns."""

_BEGIN, _END = "<!-- table: written by `make newest WRITE=yes` -->", "<!-- end of the table -->"
_MOST = 200  # characters of what went wrong: the rest is in the run's own output


@dataclass(frozen=True)
class Result:
    """How a scene ended: right, wrong with `why`, or left out because of `why`."""

    is_right: bool
    why: str = ""


def read_results(xml: str) -> dict[tuple[str, str], Result]:
    """The results by scene and agent, from the XML that pytest wrote."""
    found = {}
    for case in ET.fromstring(xml).iter("testcase"):  # noqa: S314 - pytest wrote it, a moment ago
        named = re.fullmatch(r"test_(\w+)\[(\w+)\]", case.get("name", ""))
        if named is None:
            continue
        skipped = case.find("skipped")
        wrong = next((part for kind in ("failure", "error") if (part := case.find(kind)) is not None), None)
        if skipped is not None:
            result = Result(is_right=True, why=skipped.get("message", ""))
        elif wrong is not None:
            result = Result(is_right=False, why=shorten(wrong.get("message", "")))
        else:
            result = Result(is_right=True)
        found[named[1], named[2]] = result
    return found


def shorten(message: str) -> str:
    """What went wrong in one line without screens, paths and the names of exceptions."""
    line = (message.splitlines() or [""])[0].partition("; the screen")[0]
    line = re.sub(r"^(?:[\w.]+Error|Failed): ", "", line)
    line = re.sub(r"(?<!\w)/(?:[\w.-]+/)+[\w.-]*", "…", line)
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"


def render_table(versions: Mapping[str, str], results: Mapping[tuple[str, str], Result]) -> str:
    """A row for each agent, a column for each scene; under it why something is not `ok`."""
    heads = ["agent", "version", *SCENES.values()]
    rows, reasons = [], []
    for agent, version in versions.items():
        cells = []
        for scene, head in SCENES.items():
            result = results.get((scene, agent))
            if result is not None and result.why:
                reasons.append(f"{agent}, {head}: {result.why}")
            cells.append(_render_cell(result, len(reasons)))
        rows.append([agent, version, *cells])
    lines = [" | ".join(row) for row in (heads, ["---"] * len(heads), *rows)]
    table = "".join(f"| {line} |\n" for line in lines)
    listed = "".join(f"{number}. {reason}\n" for number, reason in enumerate(reasons, start=1))
    return f"{table}\n{listed}" if listed else table


def _render_cell(result: Result | None, number: int) -> str:
    if result is None:
        return "not played"
    if not result.why:
        return "ok" if result.is_right else "wrong"
    return f"none ({number})" if result.is_right else f"wrong ({number})"


def write_page(path: str, table: str, *, day: str) -> None:
    """Put the table, and the day it was made, between the marks of the page at `path`."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    before, _, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not end:
        raise ValueError(f"{path} has no place for the table: {_BEGIN} … {_END}")
    with open(path, "w", encoding="utf-8") as file:
        told = f"Played on {day} with the newest version of each agent:"
        file.write(f"{before}{_BEGIN}\n{told}\n\n{table}{_END}{after}")
