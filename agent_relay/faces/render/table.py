"""Render tables without cutting numbers: columns that do not fit go into another table below."""

import sys
from collections.abc import Sequence

from agent_relay.faces.render.output import plain

_GAP = "  "
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


def render_tables(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> str:
    """Return tables below each other, each led by the first column; figures are right-aligned and whole.

    The first column is shortened first, with a mark where it was cut, and never below 12 characters.
    """
    cells = [[plain(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    all_columns = sum(len(_GAP) + one for one in widths[1:])
    widest = len(_GAP) + max(widths[1:], default=0)
    room = width - (all_columns if all_columns + _LEAST_LABEL <= width else widest)
    label = min(widths[0], max(_LEAST_LABEL, room))
    groups: list[list[int]] = [[]]
    for column in range(1, len(headers)):
        taken = label + sum(len(_GAP) + widths[one] for one in (*groups[-1], column))
        if groups[-1] and taken > width:
            groups.append([])
        groups[-1].append(column)
    return "\n".join(_render(cells, widths, label, columns) for columns in groups)


def drop_empty(
    headers: Sequence[str], rows: Sequence[Sequence[str]], total: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the headers and rows without columns that are empty in all rows; the total is the last row.

    The total is left out if it equals the only row. It also counts what belongs to no row: by model, a
    failed turn without an answer.
    """
    kept = [column for column in range(len(headers)) if any(row[column] != EMPTY_CELL for row in rows)]
    is_other = len(rows) > 1 or any(row[column] != total[column] for row in rows for column in kept[1:])
    shown = [*rows, total] if is_other else rows
    return [headers[column] for column in kept], [[row[column] for column in kept] for row in shown]


def _render(cells: Sequence[Sequence[str]], widths: Sequence[int], label: int, columns: Sequence[int]) -> str:
    lines = []
    for row in cells:
        first = row[0] if len(row[0]) <= label else f"{row[0][: label - 1]}…"
        rest = (row[column].rjust(widths[column]) for column in columns)
        lines.append(_GAP.join([first.ljust(label), *rest]).rstrip())
    return "".join(f"{line}\n" for line in lines)
