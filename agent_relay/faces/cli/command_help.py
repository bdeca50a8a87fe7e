"""Render the help of the table of commands, as a whole and of one command, for every place they are typed."""

from agent_relay.faces.cli.commands import AGENT_USAGE, COMMANDS, KEY_COMMANDS, Form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WIDEST = 80
_NARROWEST = 44
_TYPED_WIDTH = 24
"""The columns of `--help` for what is typed, left of what it does."""
_KEY_WIDTH = 21


def render_help() -> str:
    """Return what `agent-relay --help` prints, for a terminal of 80 columns."""
    first, *options = AGENT_USAGE.split(" [")
    usage = _wrap([first, *(f"[{one}" for one in options)], " " * len("usage: agent-relay AGENT "))
    return "\n".join(
        [
            "A coding agent hits its limit; the work goes on in another one, from exactly",
            "the same point.",
            "",
            "usage: agent-relay " + usage[0].lstrip(),
            *usage[1:],
            "           a session here under that agent: attach, hand over or start,",
            "           whichever fits",
            "       agent-relay COMMAND …",
            "",
            *(row for one in COMMANDS.values() for row in _list_rows(f"{one.name} {one.usage}", one.about)),
            "",
            "Every command answers --help. Files: docs/cli.md, docs/architecture.md.",
            "",
        ]
    )


def _list_rows(typed: str, about: str) -> "Iterator[str]":
    """Yield what is typed, and what it does beside it; below it if it is long."""
    indent = " " * (_TYPED_WIDTH + 4)
    lines = _wrap(about.split(" "), indent)
    if len(typed.rstrip()) > _TYPED_WIDTH:
        yield f"  {typed}"
    else:
        lines[0] = f"  {typed:{_TYPED_WIDTH}}  {lines[0][len(indent) :]}"
    yield from lines


def _wrap(pieces: "Sequence[str]", indent: str) -> list[str]:
    """Return lines of `pieces`, each indented; `textwrap` would double the time of `--help`."""
    lines = [f"{indent}{pieces[0]}"]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(piece) + 1 < _WIDEST:
            lines[-1] += f" {piece}"
        else:
            lines.append(f"{indent}{piece}")
    return lines


def render_key_help() -> tuple[str, ...]:
    """Return the lines of `/help` behind the relay key."""
    lines: list[str] = []
    same: list[str] = []
    for command in KEY_COMMANDS.values():
        form = command.key or Form()
        if form.about != command.about:
            lines += [f"{f'/{command.name} {form.usage}':{_KEY_WIDTH}}{form.about}", *form.more]
        else:
            same.append(f"/{command.name} {command.usage}" if command.name == "order" else f"/{command.name}")
    return (*lines[:-1], f"{'  '.join(same)}   as on the command line", lines[-1])


def render_form_help(name: str, form: Form, *, columns: int = _WIDEST) -> tuple[str, ...]:
    """Return the help of one command as it is typed in one place, no wider than `columns` if words allow."""
    return tuple(_render_lines(name, form, get_room(columns)))


def get_room(columns: int) -> int:
    """Return how wide lines of help may be."""
    return max(_NARROWEST, min(columns, _WIDEST) - 1)


def _render_lines(name: str, form: Form, room: int) -> "Iterator[str]":
    from textwrap import wrap

    yield f"usage: /{name} {form.usage}".rstrip()
    yield ""
    for sentence in (f"{form.about[0].upper()}{form.about[1:]}.", *form.more):
        yield from wrap(sentence, room)
    if form.outside:
        yield f"On the command line: {form.outside}"
