"""Lay out one Markdown block with rich: prose as text, code in colour."""

import re
from collections.abc import Callable
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from agent_relay.domain.text.plain import clean_text
from agent_relay.faces.render._markdown_blocks import MarkdownBlock

_THEME = "ansi_dark"
"""Its colours are the terminal's own."""
_STYLES = {
    "markdown.code": "cyan",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.item.number": "bold",
    "markdown.block_quote": "dim",
    "markdown.hr": "dim",
}
"""No backgrounds: a terminal may be light."""
_PLAIN = re.compile(r"(?!\d+[.)])[A-Za-z0-9][A-Za-z0-9 ,.;:'\"()!?/%=+-]*")
"""A line in which Markdown means nothing: most of a long output, and a twentieth of the work."""
_LONGEST_CODE = 300
"""Columns of a line of code in colour: no person wrote a longer one, and lexers take their time with it."""
_NARROWEST = 20
_WIDEST = 110


class _LeftHeading(Heading):
    """A heading at the left, as the text is."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Words(Markdown):
    """Markdown as agents write it: the end of a line is a line break."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _LeftHeading}

    def __init__(self) -> None:
        super().__init__("", hyperlinks=False, code_theme=_THEME)
        # Kept: making a parser takes longer than parsing a paragraph.
        self._parser = MarkdownIt().enable(["strikethrough", "table"])

    def take(self, text: str) -> "_Words":
        """Parse `text` into this object; return the object."""
        self.parsed = self._parser.parse(text)
        for token in self.parsed:
            for child in token.children or ():
                # An entity may spell what was cleaned away.
                child.content = clean_text(child.content)
                if child.type == "softbreak":
                    child.type = "hardbreak"
        return self


class MarkdownLayout:
    """Lays blocks out in the columns the terminal has at that moment."""

    def __init__(self, columns: Callable[[], int], *, is_colour: bool) -> None:
        self._columns = columns
        self._words = _Words()
        self._console = Console(
            force_terminal=is_colour,
            color_system="standard" if is_colour else None,
            no_color=not is_colour,
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
            theme=Theme(_STYLES),
        )

    def lay(self, block: MarkdownBlock) -> list[str]:
        """Return the lines of the block; more lines of one that is too long are not laid out."""
        if block.is_rest:
            return [f"  {line}" for line in block.lines] if block.kind == "code" else list(block.lines)
        width = max(_NARROWEST, min(self._columns(), _WIDEST))
        if block.kind == "prose" and all(
            len(line) <= width and _PLAIN.fullmatch(line) for line in block.lines
        ):
            return list(block.lines)
        text = "\n".join(block.lines)
        with self._console.capture() as captured:
            self._console.print(
                self._words.take(text) if block.kind == "prose" else _lay_code(block), width=width
            )
        lines = [line.rstrip() for line in captured.get().split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        return lines


def _lay_code(block: MarkdownBlock) -> Padding:
    text = "\n".join(block.lines)
    if not block.language or max(map(len, block.lines)) > _LONGEST_CODE:
        return Padding(Text(text), (0, 0, 0, 2))
    code = Syntax(text, block.language, theme=_THEME, background_color="default", word_wrap=True)
    return Padding(code, (0, 0, 0, 2))
