"""Render a packet for its reader through the adapter's template.

Everything quoted is made harmless, and an agent that resumes a conversation of its own is not told again
what it said there itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from jinja2 import ChainableUndefined, DictLoader, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from agent_relay.domain.documents.packet import Provenance, ResumePacket
from agent_relay.domain.documents.packet_json import render_document
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.text.plain import clean_text, quote_text


def leave_out_own(packet: ResumePacket) -> ResumePacket:
    """The packet without what its target decided, tried and said in the conversation it resumes.

    The user's rules stay: they are short, and an agent may have forgotten a part of a long conversation.
    """
    own = packet.resumes
    if not own:
        return packet
    # Readers add the line or the message's id to the transcript's path.
    inside = (f"{own}:", f"{own}#")

    def is_new(source: Provenance | None) -> bool:
        return source is None or not (source.transcript == own or source.transcript.startswith(inside))

    return packet.model_copy(
        update={
            "decisions": tuple(one for one in packet.decisions if is_new(one.source)),
            "attempts": tuple(one for one in packet.attempts if is_new(one.source)),
            "recent_turns": tuple(one for one in packet.recent_turns if is_new(one.source)),
        }
    )


SHARED = "shared/resume.md.j2"
"""The name under which an adapter's template extends the one all agents share."""
_OWN = "resume.md.j2"
_OPEN, _CLOSE = "<handoff-context>", "</handoff-context>"
_BLANKS = re.compile(r"\n{3,}")
_TICKS = re.compile(r"`{3,}")
_DEEPEST = 60
# Stands for a line feed of the packet's own while the template's blank lines are tidied. No packet text
# can hold it: it is a control character.
_LINE = "\x00"


def compile_template(templates: Mapping[str, str], *, title: str) -> Template:
    """The template packets for the agent called `title` are rendered with.

    `templates` holds the adapter's own, or nothing, under `resume.md.j2`, and the shared one under
    `SHARED`. Raises ConfigurationError where it cannot be used.
    """
    environment = SandboxedEnvironment(
        loader=DictLoader(dict(templates)),
        autoescape=False,
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        fence=_over_lines(fence_text),
        quoted=_over_lines(prefix_lines),
        line=_over_lines(join_lines),
        item=_over_lines(indent_item),
    )
    try:
        return environment.get_template(_OWN if _OWN in templates else SHARED)
    except (TemplateError, RecursionError) as problem:
        raise ConfigurationError(f"the packet template of {title} cannot be used: {problem}") from problem


def render_packet(packet: ResumePacket, *, template: Template, title: str, folder: str = "") -> str:
    """The text of `packet` for the agent called `title`, wrapped in `<handoff-context>`; one newline ends it.

    What stands in the packet is data to the template and never evaluated; it can neither close the
    wrapping nor carry a control character, and its own blank lines stay as they are. `folder` is where
    earlier packets of the session lie. The same packet gives the same text. Raises ConfigurationError
    where the template fails.
    """
    values = {
        "packet": _view(render_document(leave_out_own(packet)), 0),
        "title": quote_text(title),
        "folder": quote_text(folder),
    }
    try:
        body = template.render(values)
    except (TemplateError, RecursionError, TypeError, ValueError, ArithmeticError) as problem:
        raise ConfigurationError(f"the packet template of {title} cannot be used: {problem}") from problem
    body = clean_text(_BLANKS.sub("\n\n", body).strip("\n").replace(_LINE, "\n"))
    return f"{_OPEN}\n{body}\n{_CLOSE}\n"


def mark_stale(text: str, notes: Sequence[str]) -> str:
    """`text` with what changed since it was written, at its end; unchanged without `notes`."""
    if not notes:
        return text
    said = "\n".join(["Since this was written:", *(f"- {quote_text(join_lines(note))}" for note in notes)])
    before, close, after = text.rpartition(_CLOSE)
    return f"{before.rstrip()}\n\n{said}\n{close}{after}" if close else f"{text.rstrip()}\n\n{said}\n"


def fence_text(text: str) -> str:
    """`text` as it is, between fences longer than any it holds."""
    longest = max(map(len, _TICKS.findall(text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}text\n{text.strip(chr(10))}\n{mark}"


def prefix_lines(text: str, mark: str = "> ") -> str:
    """`text` with `mark` before every line, as mail quotes."""
    return "\n".join((mark + line).rstrip() for line in text.strip("\n").split("\n"))


def join_lines(text: str) -> str:
    r"""`text` in one line, its line feeds written `\n`."""
    return text.strip().replace("\n", "\\n")


def indent_item(text: str) -> str:
    """`text` as the inside of a list item: every line but the first indented below it."""
    return "\n".join(
        ("  " + line).rstrip() if at else line for at, line in enumerate(text.strip().split("\n"))
    )


def _over_lines(change: Callable[..., str]) -> Callable[..., str]:
    """`change` for texts whose line feeds are stood in for."""

    def changed(text: object, *more: str) -> str:
        return change(str(text).replace(_LINE, "\n"), *more).replace("\n", _LINE)

    return changed


def _view(value: object, depth: int) -> object:
    """The document's values with every string made harmless; absurdly deep ones are left out."""
    if isinstance(value, str):
        return quote_text(value).replace("\n", _LINE)
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return [_view(one, depth + 1) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {quote_text(key): _view(one, depth + 1) for key, one in entries.items()}
    return value
