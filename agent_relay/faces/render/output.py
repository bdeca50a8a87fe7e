"""Print lines, tables, errors and JSON; names commands as they are typed where it is read.

Every view has two forms: JSON for programs, a table for people. Text of others reaches no terminal raw.
`HintStyle.render` has texts name commands as they are typed at the place of this process: on a plain
terminal they stand as they are, unless `dispatch` or the shell sets another place.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from agent_relay.domain.errors import RelayError


def render_plain(text: str) -> str:
    """Return `text` for a plain terminal: commands as they stand, the relay key by its configured name."""
    if "the relay key" not in text:
        return text
    # Few texts name it: nobody else is to pay for what reads a configuration.
    from agent_relay.client.relay_key import read_relay_key
    from agent_relay.domain.errors import RelayError
    from agent_relay.domain.text.hints import name_key
    from agent_relay.domain.values.relay_key import name_relay_key
    from agent_relay.system.disk.folders import get_folders

    try:
        key = read_relay_key(get_folders().config)
    except RelayError:
        return text
    return name_key(text, name_relay_key(key))


class HintStyle:
    """The place of this process: `render` has texts name commands as they are typed there.

    A plain terminal, where they are typed as they stand, unless somebody who knows better sets it.
    """

    render: "Callable[[str], str]" = render_plain


_GAP = "  "
# Unicode's blanks besides the ordinary one; the last is as wide as two.
_BLANKS = dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F), " ") | {0x3000: "  "}


def print_json(view: "Mapping[str, object]") -> None:
    """`view` as JSON on standard output, ASCII so that any pipe can carry it."""
    import json

    sys.stdout.write(json.dumps(view, indent=2) + "\n")


def print_lines(*lines: str) -> None:
    """Lines on standard output, control characters shown instead of obeyed, commands as typed here."""
    print_contents(*map(HintStyle.render, lines))


def print_contents(*lines: str) -> None:
    """Print lines that are not relay's own text, leaving commands in them unchanged."""
    sys.stdout.write("".join(f"{plain(line)}\n" for line in lines))


def print_error(error: "RelayError") -> int:
    """The exit status of `error`, its sentence and its hint on standard error, a line each."""
    sys.stderr.write(f"agent-relay: {plain(HintStyle.render(error.sentence))}\n")
    if error.hint:
        sys.stderr.write(f"  {plain(HintStyle.render(error.hint))}\n")
    return int(error.code)


def warn(line: str) -> None:
    """`line` is on standard error, at once, whoever reads it; nothing where nobody can any more."""
    try:
        sys.stderr.write(f"agent-relay: {plain(HintStyle.render(line))}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def print_table(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", *, empty: str) -> None:
    """The rows below their headers: drawn by rich on a terminal, aligned columns anywhere else."""
    if not rows:
        print_lines(empty)
    elif is_fancy():
        _print_rich(headers, rows)
    else:
        sys.stdout.write(render_table(headers, rows))


def render_table(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> str:
    """Aligned columns as text, the last one as long as it is."""
    cells = [[plain(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(_count(row[column]) for row in cells) for column in range(len(headers))]
    lines = (
        _GAP.join(cell + " " * (width - _count(cell)) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _count(cell: str) -> int:
    """The columns of a cell; what counts those of other alphabets is loaded where there are some."""
    if cell.isascii():
        return len(cell)
    from agent_relay.domain.text.counts import count_columns

    return count_columns(cell)


def is_fancy() -> bool:
    """Whether colour may be used: a terminal that did not say no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain(text: str) -> str:
    r"""Return `text` on one line: control characters as `\n` or `\x1b`, undecodable bytes as `\xNN`.

    Blanks of other kinds (agents show no-break ones) are blanks. Half a surrogate pair, which only JSON of
    others can hold, is `\ud800`.
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
    """A moment of ours as people say it: the time today, else the day too; empty for none."""
    from agent_relay.domain.values.moments import render_moment as render

    return _render(iso, render)


def render_day(iso: object) -> str:
    """When something of ours was: `today 18:20`, `yesterday 09:10`, else the day; empty for none."""
    from agent_relay.domain.values.moments import render_day as render

    return _render(iso, render)


def _render(iso: object, render: "Callable[[datetime, datetime, None], str]") -> str:
    if not isinstance(iso, str) or not iso:
        return ""
    from datetime import UTC, datetime

    try:
        return render(datetime.fromisoformat(iso), datetime.now(UTC), None)
    except ValueError:
        return plain(iso)


def _print_rich(headers: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        # No string, which would be read as markup: brackets and colons of a title mean nothing to rich.
        table.add_row(*(Text(plain(cell)) for cell in row))
    Console(highlight=False).print(table)
