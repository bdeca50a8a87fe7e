"""Split an agent's words, as they stream in, into Markdown blocks, and lay out each with rich."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from agent_relay.domain.text.plain import clean_text

MOST_LINES = 60
"""Most lines of one block; a longer one goes on line by line, as it comes."""
_MOST_SIGNS = 4_000
_LONGEST_LINE = 4_000
_FENCE = re.compile(r"^(\s*)(`{3,}(?!`)|~{3,}(?!~))([^`]*)$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s")
_DEEPER = re.compile(r"^(?: {2,}|\t)\S")

Kind = Literal["prose", "code"]


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """Whole lines of one kind.

    `is_rest` marks more lines of a block that is too long to be laid out; `language` is that of code.
    """

    kind: Kind
    lines: tuple[str, ...]
    language: str = ""
    is_rest: bool = False


class BlockSplitter:
    """Splits one message at a time; never holds back more than one block."""

    def __init__(self) -> None:
        self._tail = ""
        self._begin()

    def feed(self, text: str) -> Iterator[MarkdownBlock]:
        """Yield the blocks that `text` completed, and every whole line of one that is too long."""
        *whole, self._tail = (self._tail + text).split("\n")
        for line in whole:
            for part in _cut(line):
                yield from self._take_raw(part)
        *parts, self._tail = _cut(self._tail)
        for part in parts:
            yield from self._take_raw(part)
        yield from self._give_rest()

    def close(self) -> Iterator[MarkdownBlock]:
        """End the message; yield all that was held back."""
        tail, self._tail = self._tail, ""
        if tail:
            yield from self._take_raw(tail)
        yield from self._give_rest()
        yield from self._give()
        self._begin()

    def _begin(self) -> None:
        self._held: list[str] = []
        self._size = 0
        self._fence = ""
        self._indent = 0
        self._language = ""
        self._is_long = False

    def _take_raw(self, line: str) -> Iterator[MarkdownBlock]:
        for part in clean_text(line).expandtabs(4).split("\n"):
            yield from self._take(part.rstrip())

    def _take(self, line: str) -> Iterator[MarkdownBlock]:
        if self._fence:
            yield from self._take_code(line)
            return
        opening = _FENCE.match(line)
        if opening is not None:
            yield from self._give_rest()
            yield from self._give()
            self._begin()
            self._indent, self._fence = len(opening[1]), opening[2]
            self._language = opening[3].split()[0][:40] if opening[3].strip() else ""
        elif line:
            if self._is_over(line):
                yield from self._give()
                self._begin()
            yield from self._hold(line)
        elif self._is_long:
            yield from self._give_rest()
            self._begin()
        elif self._held and _ITEM.match(self._held[0]):
            # The next line tells whether the list goes on.
            yield from self._hold("")
        else:
            yield from self._give()
            self._begin()

    def _is_over(self, line: str) -> bool:
        """Check whether the empty line before ended a list."""
        return bool(self._held) and not self._held[-1] and not (_ITEM.match(line) or _DEEPER.match(line))

    def _take_code(self, line: str) -> Iterator[MarkdownBlock]:
        bare = line.strip()
        if len(bare) >= len(self._fence) and set(bare) == {self._fence[0]}:
            yield from self._give_rest()
            yield from self._give()
            self._begin()
            return
        indent = len(line) - len(line.lstrip())
        yield from self._hold(line[min(indent, self._indent) :])

    def _hold(self, line: str) -> Iterator[MarkdownBlock]:
        self._held.append(line)
        self._size += len(line)
        if not self._is_long and (len(self._held) > MOST_LINES or self._size > _MOST_SIGNS):
            yield from self._give()
            self._is_long = True

    def _give_rest(self) -> Iterator[MarkdownBlock]:
        if self._is_long and self._held:
            yield self._pack()

    def _give(self) -> Iterator[MarkdownBlock]:
        while self._held and not self._held[-1] and not self._fence:
            self._held.pop()
        if self._held:
            yield self._pack()

    def _pack(self) -> MarkdownBlock:
        kind: Kind = "code" if self._fence else "prose"
        block = MarkdownBlock(kind, tuple(self._held), self._language, is_rest=self._is_long)
        self._held, self._size = [], 0
        return block


def _cut(line: str) -> Iterator[str]:
    """Yield `line` in parts that are not too long, cut between words if there are any."""
    begin = 0
    while len(line) - begin > _LONGEST_LINE:
        at = line.rfind(" ", begin + _LONGEST_LINE // 2, begin + _LONGEST_LINE) + 1 or begin + _LONGEST_LINE
        yield line[begin:at]
        begin = at
    yield line[begin:]


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
