"""Print lines, tables, errors and JSON, with commands as they are typed where the output is read.

Every view has two forms: JSON for programs, a table for people. Foreign text never reaches a terminal raw.
`render_tables` cuts no number: columns that do not fit go into another table below.
`HintStyle.render` renders the commands in a text as they are typed where this process's output is read: on a
plain terminal unchanged, unless `dispatch` or the shell sets another function.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from rich.table import Table

    from agent_relay.domain.errors import RelayError


def render_plain(text: str) -> str:
    """Return `text` for a plain terminal: commands unchanged, the relay key by its configured name."""
    if "the relay key" not in text:
        return text
    # Few texts name it: nobody else is to pay for what reads a configuration.
    from agent_relay.client.attach.prompt import read_relay_key
    from agent_relay.domain.errors import RelayError
    from agent_relay.domain.names import name_relay_key
    from agent_relay.domain.text.hints import name_key
    from agent_relay.system.disk.folders import get_folders

    try:
        key = read_relay_key(get_folders().config)
    except RelayError:
        return text
    return name_key(text, name_relay_key(key))


class HintStyle:
    """The way this process renders commands in texts: `render` gives them as they are typed at its place.

    By default that is a plain terminal, where they are unchanged; `dispatch` or the shell sets another one.
    """

    render: "Callable[[str], str]" = render_plain


_GAP = "  "
# Unicode's blanks besides the ordinary one; the last is as wide as two.
_BLANKS = dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F), " ") | {0x3000: "  "}


def print_json(view: "Mapping[str, object]") -> None:
    """Print `view` as JSON on standard output, in ASCII so that any pipe can carry it."""
    import json

    sys.stdout.write(json.dumps(view, indent=2) + "\n")


def get_contents(answer: "Mapping[str, object]") -> dict[str, object]:
    """Return an answer of the daemon without what only its protocol needs."""
    return {key: value for key, value in answer.items() if key not in {"id", "ok"}}


def get_rows(view: "Mapping[str, object]", name: str) -> "list[dict[str, object]]":
    """Return a view's rows of that name; none if there is no list of that name."""
    found = view.get(name)
    return found if isinstance(found, list) else []


def get_table(view: "Mapping[str, object]", name: str) -> dict[str, object]:
    """Return a view's table of that name; an empty one if there is none."""
    found = view.get(name)
    return found if isinstance(found, dict) else {}


def print_either(view: "Mapping[str, object]", *lines: str, as_json: bool) -> None:
    """Print `view` for a program if that was asked for, else the lines for people."""
    if as_json:
        print_json(view)
    else:
        print_lines(*lines)


def print_lines(*lines: str) -> None:
    """Print lines on standard output, with control characters escaped and commands as typed here."""
    print_contents(*map(HintStyle.render, lines))


def print_contents(*lines: str) -> None:
    """Print lines that are not relay's own text, leaving commands in them unchanged."""
    sys.stdout.write("".join(f"{plain(line)}\n" for line in lines))


def print_error(error: "RelayError", *, command: str = "") -> int:
    """Print the sentence and the hint of `error` on standard error, a line each; return its exit status.

    If `command` is named, it was typed wrongly.
    """
    program = " ".join(filter(None, ("agent-relay", command)))
    sys.stderr.write(f"{program}: {plain(HintStyle.render(error.sentence))}\n")
    if error.hint:
        sys.stderr.write(f"  {plain(HintStyle.render(error.hint))}\n")
    return int(error.code)


def ask(question: str) -> str:
    """Ask on the terminal and return the answer, stripped and in lower case; empty if there is no input."""
    sys.stdout.write(question)
    sys.stdout.flush()
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        # Only an Enter that was echoed has ended the question's row.
        if not (answer.endswith("\n") and sys.stdin.isatty()):
            sys.stdout.write("\n")
    return answer.strip().lower()


def warn(line: str) -> None:
    """Print `line` on standard error at once; do nothing if standard error is closed."""
    try:
        sys.stderr.write(f"agent-relay: {plain(HintStyle.render(line))}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def print_table(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", *, empty: str) -> None:
    """Print the rows below their headers: drawn by rich on a terminal, in aligned columns elsewhere.

    If there are no rows, `empty` is printed.
    """
    if not rows:
        print_lines(empty)
    elif is_fancy():
        from rich.console import Console

        Console(highlight=False).print(build_rich_table(headers, rows))
    else:
        sys.stdout.write(render_table(headers, rows))


def render_table(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> str:
    """Return aligned columns as text; the last one is not padded."""
    cells = [[plain(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(_count(row[column]) for row in cells) for column in range(len(headers))]
    lines = (
        _GAP.join(cell + " " * (width - _count(cell)) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _count(cell: str) -> int:
    """Return the columns of a cell; what measures other alphabets is loaded only if there are some."""
    if cell.isascii():
        return len(cell)
    from agent_relay.domain.text.plain import count_columns

    return count_columns(cell)


def is_fancy() -> bool:
    """Check whether colour may be used: on a terminal, unless NO_COLOR or TERM=dumb forbids it."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain(text: str) -> str:
    r"""Return `text` on one line: control characters as `\n` or `\x1b`, undecodable bytes as `\xNN`.

    Other kinds of spaces (agents print no-break ones) become ordinary spaces. Half a surrogate pair, which
    only foreign JSON can hold, becomes `\ud800`.
    """
    if text.isprintable():
        return text
    return "".join(_show(character) for character in text.translate(_BLANKS))


def _show(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # how Python writes a byte of a name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def render_moment(iso: object) -> str:
    """Return a moment as people say it: the time today, else the day too; empty for none."""
    from agent_relay.domain.moments import render_moment as render

    return _render(iso, render)


def render_rest_end(rest: "Mapping[str, object]") -> str:
    """Return when the rest of this row ends: a moment, or `you say otherwise`."""
    return render_reset(rest["until"], assumed=rest["assumed"] is True) or "you say otherwise"


def render_reset(iso: object, *, assumed: bool) -> str:
    """Return a reset as `render_moment` does, marked as assumed if no agent named it."""
    from agent_relay.domain.moments import render_reset as render

    return _render(iso, lambda at, now, zone: render(at, now, zone, assumed=assumed))


def render_day(iso: object) -> str:
    """Return when something was: `today 18:20`, `yesterday 09:10`, else the day; empty for none."""
    from agent_relay.domain.moments import render_day as render

    return _render(iso, render)


def _render(iso: object, render: "Callable[[datetime, datetime, None], str]") -> str:
    if not isinstance(iso, str) or not iso:
        return ""
    from datetime import UTC, datetime

    try:
        return render(datetime.fromisoformat(iso), datetime.now(UTC), None)
    except ValueError:
        return plain(iso)


def build_rich_table(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> "Table":
    """Return the rows as a table of rich's, below their headers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        # No string, which would be read as markup: brackets and colons of a title mean nothing to rich.
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


_WIDTH = 80
_LEAST_LABEL = 12
EMPTY_CELL = "-"
"""The cell for what nothing tells, or what does not apply."""


def get_width() -> int:
    """Return the columns of the terminal, 80 if there is none."""
    import shutil

    return shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH


def is_plain_output() -> bool:
    """Check whether the output's encoding lacks block characters."""
    return "utf" not in (sys.stdout.encoding or "").lower()


def render_tables(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", *, width: int) -> str:
    """Return tables below each other, each led by the first column; figures are right-aligned and whole.

    The first column is shortened, with a mark where it was cut, only if no other column
    fits beside it in full, and never below 12 characters.
    """
    cells = [[plain(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    widest = len(_GAP) + max(widths[1:], default=0)
    label = min(widths[0], max(_LEAST_LABEL, width - widest))
    groups: list[list[int]] = [[]]
    for column in range(1, len(headers)):
        taken = label + sum(len(_GAP) + widths[one] for one in (*groups[-1], column))
        if groups[-1] and taken > width:
            groups.append([])
        groups[-1].append(column)
    return "\n".join(_render_part(cells, widths, label, columns) for columns in groups)


def drop_empty(
    headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", total: "Sequence[str]"
) -> tuple[list[str], list[list[str]]]:
    """Return the headers and rows without columns that are empty in all rows; the total is the last row.

    The total is left out if it equals the only row. It also counts what belongs to no row: by model, time
    and handoffs.
    """
    kept = [column for column in range(len(headers)) if any(row[column] != EMPTY_CELL for row in rows)]
    is_other = len(rows) > 1 or any(row[column] != total[column] for row in rows for column in kept[1:])
    shown = [*rows, total] if is_other else rows
    return [headers[column] for column in kept], [[row[column] for column in kept] for row in shown]


def _render_part(
    cells: "Sequence[Sequence[str]]", widths: "Sequence[int]", label: int, columns: "Sequence[int]"
) -> str:
    lines = []
    for row in cells:
        first = row[0] if len(row[0]) <= label else f"{row[0][: label - 1]}…"
        rest = (row[column].rjust(widths[column]) for column in columns)
        lines.append(_GAP.join([first.ljust(label), *rest]).rstrip())
    return "".join(f"{line}\n" for line in lines)
