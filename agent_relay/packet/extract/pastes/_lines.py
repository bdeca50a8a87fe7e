"""Hold a prompt's lines while the pasted ones are being determined."""

from collections.abc import Iterator

from agent_relay.domain.text.plain import compile_late

_ENDING = compile_late(r"\r\n?")
# Characters that look like those of fences and quotations, with the plain ones to replace them.
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\uff40\u02cb\u00b4\u02b9\u2035\u1fef", "`"),
        "\uff1e": ">",
        "\ufe65": ">",
        "\uff5e": "~",
    }
    | dict.fromkeys("\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", " ")
    | dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", " ")
)
_WRITTEN_OUT = compile_late(r"\\u(?:202[a-e]|206[6-9])")
_LONGEST = 400
"""The most characters of a line that are examined: its beginning shows what it is."""


class PromptLines:
    """The lines of a prompt, each either the user's own or part of a pasted run."""

    def __init__(self, text: str) -> None:
        self.lines = _ENDING.sub("\n", text).split("\n")
        self.heads = [_make_plain(line[:_LONGEST]).rstrip() for line in self.lines]
        self.runs = [0] * len(self.lines)
        """The run that each line belongs to; 0 for the user's own."""
        self._shown: dict[int, str | None] = {}
        self._inner: dict[int, list[tuple[bool, str]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self.lines)

    def is_blank(self, at: int) -> bool:
        """Check whether the line is blank."""
        return not self.heads[at] and not self.lines[at].strip()

    def is_open(self, at: int) -> bool:
        """Check whether the line has words and counts as the user's so far."""
        return not self.runs[at] and not self.is_blank(at)

    def take(self, begin: int, end: int) -> None:
        """Mark the lines from `begin` up to `end` as one pasted run, joined to a run right before it."""
        if begin and self.runs[begin - 1]:
            run = self.runs[begin - 1]
        else:
            self._count += 1
            run = self._count
        for at in range(begin, end):
            self.runs[at] = self.runs[at] or run

    def show(self, at: int, text: str | None) -> None:
        """Set the text of a pasted line without its mark; `None` if the whole line is a mark."""
        self._shown[at] = text

    def divide(self, at: int, parts: list[tuple[bool, str]]) -> None:
        """Divide one of the user's lines into parts, each with whether it was pasted."""
        self._inner[at] = parts

    def is_divided(self, at: int) -> bool:
        """Check whether the line was divided."""
        return at in self._inner

    def list_paragraphs(self) -> Iterator[tuple[int, int]]:
        """Yield the beginning and end of each run of the user's lines, between blank and pasted ones."""
        begin = 0
        for at in range(len(self.lines) + 1):
            if at < len(self.lines) and self.is_open(at):
                continue
            if begin < at:
                yield begin, at
            begin = at + 1

    def collect(self) -> tuple[str, tuple[str, ...]]:
        """Return the user's own words and the pasted runs."""
        own: list[str] = []
        pasted: list[list[str]] = []
        before = 0
        for at, run in enumerate(self.runs):
            if run:
                if run != before:
                    pasted.append([])
                shown = self._shown.get(at, self.lines[at])
                if at in self._inner:
                    shown = "".join(part for _, part in self._inner[at])
                if shown is not None:
                    pasted[-1].append(shown)
                own.append("")
            elif at in self._inner:
                for is_pasted, part in self._inner[at]:
                    if is_pasted:
                        pasted.append([part])
                kept = " ".join(part.strip() for is_pasted, part in self._inner[at] if not is_pasted)
                own.append(kept)
            else:
                own.append(self.lines[at])
            before = run
        joined = ("\n".join(lines).strip("\n").rstrip() for lines in pasted)
        return _join_paragraphs(own), tuple(one for one in joined if one.strip())


def _make_plain(line: str) -> str:
    """Return the line, at the same length, with plain marks and without invisible characters."""
    if line.isascii() and "\\u" not in line:
        return line
    return _WRITTEN_OUT.sub("      ", line.translate(_ALIKE))


def _join_paragraphs(lines: list[str]) -> str:
    """Join the lines, reducing several blank lines to one."""
    kept: list[str] = []
    for line in map(str.rstrip, lines):
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip("\n")
