"""Cut text into quotable pieces, weigh them by the expressions of `phrases.toml`, and list what texts share.

No single phrase marks a choice or a failed attempt, but several of them together do. Code is never quoted. In
scripts without spaces, each pair of neighbouring characters counts as a term. `recall` has its own terms,
because it weighs those of a question and counts them in megabytes of text.
"""

import pkgutil
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal

import msgspec

from agent_relay.domain.documents.handwritten import Strict
from agent_relay.domain.text.plain import compile_late

_FILE = "phrases.toml"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})
_PART = re.compile(r"<([a-z]+)>")


def plain_apostrophes(text: str) -> str:
    """Replace every apostrophe in `text` with the plain one that the phrases use."""
    return text.translate(_APOSTROPHES)


class PhraseGroup(Strict, frozen=True):
    """One table of `phrases.toml`; the comment at the top of that file explains its keys."""

    accepts: tuple[str, ...]
    rejects: tuple[str, ...]
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    before: str = r"\b"
    after: str = r"(?!\w)"
    at: Literal["anywhere", "start", "whole"] = "anywhere"
    ignores_case: bool = True
    by_line: bool = False

    @property
    def expression(self) -> str:
        """The group as one regular expression, with the names of parts not yet replaced."""
        words = [f"{self.before}(?:{'|'.join(self.words)}){self.after}"] if self.words else []
        return "|".join([*words, *self.patterns])

    @property
    def flags(self) -> re.RegexFlag:
        """The flags to compile the expression with."""
        case = re.IGNORECASE if self.ignores_case else re.NOFLAG
        return case | (re.MULTILINE if self.by_line else re.NOFLAG)


@cache
def get_phrases(name: str) -> re.Pattern[str]:
    """Return the expression of the group `name`, compiled on first use; raise KeyError if unknown."""
    groups, parts = read_phrases()
    group = groups[name]
    expression = _PART.sub(lambda part: parts.get(part[1], part[0]), group.expression)
    return compile_late(expression, group.flags)


@cache
def read_phrases() -> tuple[dict[str, PhraseGroup], dict[str, str]]:
    """Read the groups by name, and the expressions of the parts that they use.

    The file is read when a module that uses it is imported, as if it were code (docs/adr/0059). Raises
    ImportError if it is missing or broken.
    """
    try:
        data = pkgutil.get_data(__package__, _FILE) or b""
        tables = tomllib.loads(data.decode())
        parts = {name: f"(?:{'|'.join(words)})" for name, words in tables.pop("parts").items()}
        return {name: PhraseGroup.parse(table) for name, table in tables.items()}, parts
    except (OSError, ValueError) as problem:
        raise ImportError(f"{_FILE} of {__package__} cannot be read: {problem}") from problem


_CHOICE = get_phrases("choice")
_PURPOSE = get_phrases("purpose")
_ADVICE = get_phrases("advice")
_POLICY = get_phrases("policy")
_ABSOLUTE = get_phrases("absolute")
_COMPARISON = get_phrases("comparison")
_GROUNDS = get_phrases("grounds")
_REPORT = get_phrases("report")
_HEDGE = get_phrases("hedge")
_NARRATION = get_phrases("narration")
_LABEL = get_phrases("label")
_REJECTION = get_phrases("rejection")
_EXPERIMENT = get_phrases("experiment")
_HARM = get_phrases("harm")
_ABANDONMENT = get_phrases("abandonment")
_CONCESSION = get_phrases("concession")
_RECOVERED = get_phrases("recovered")
ARROW = " → "
"""Separates a question from its answer."""
FIRM = 3
"""The least weight of a choice or a rejection."""
_TOLD = 4
_MOST = 6
_AT_HAND = 64
"""The number of cached weights: each statement is weighed several times in a row."""


def weigh(text: str) -> int:
    """Return from 0 to 6 how much a statement would be missed; a choice or rejection has at least `FIRM`."""
    plain = plain_apostrophes(text)
    return max(weigh_choice(plain), weigh_refusal(plain))


@lru_cache(_AT_HAND)
def weigh_choice(plain: str) -> int:
    """Return from 0 to 6 how surely a statement (with plain apostrophes) is a choice."""
    if _NARRATION.match(plain):
        return 0
    weight = _TOLD if _CHOICE.search(plain) else 2 if _PURPOSE.search(plain) else 0
    weight += 2 * bool(_ADVICE.search(plain)) + 2 * (f"?{ARROW}" in plain)
    weight += sum(bool(sign.search(plain)) for sign in (_POLICY, _ABSOLUTE, _COMPARISON, _GROUNDS))
    weight -= 2 * bool(_REPORT.search(plain)) + 2 * bool(_HEDGE.search(plain))
    return max(0, min(_MOST, weight))


@lru_cache(_AT_HAND)
def weigh_refusal(plain: str) -> int:
    """Return from 0 to 6 how surely a statement says that something failed or was dropped.

    Its apostrophes are plain.
    """
    if _NARRATION.match(plain) or _RECOVERED.search(plain):
        return 0
    told, tried, left = (bool(sign.search(plain)) for sign in (_REJECTION, _EXPERIMENT, _ABANDONMENT))
    harm = bool(_HARM.search(plain))
    if not (told or left or (tried and harm)):
        return 0
    weight = 2 * tried + 2 * left + harm + bool(_CONCESSION.search(plain))
    weight = max(_TOLD * told, weight - 2 * bool(_REPORT.search(plain)))
    return max(0, min(_MOST, weight))


def is_decision(plain: str) -> bool:
    """Check whether a sentence by itself states a decision, as opposed to something given up.

    Its apostrophes are plain.
    """
    if _CHOICE.search(plain):
        label = _LABEL.match(plain)
        return not _REJECTION.search(plain) or bool(label and _CHOICE.match(label[0]))
    return weigh_choice(plain) >= max(FIRM, weigh_refusal(plain))


def is_failure(plain: str) -> bool:
    """Check whether a sentence (with plain apostrophes) reports a failed attempt."""
    return weigh_refusal(plain) >= FIRM


_FENCE = compile_late(r"^(```|~~~).*?^\1\s*$|^(```|~~~).*\Z", re.DOTALL | re.MULTILINE)
_MARK = compile_late(r"^\s*([-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS = compile_late(r"^(\*\*|__)(.+?)\1$")
# A full stop ends a sentence unless it belongs to one of the usual abbreviations.
_END = compile_late(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)[\"')\]]?\s+")
_WORD = compile_late(r"\w+")
_TABLE = compile_late(r"^\s*\|")
# Shorter lines were broken on purpose; longer ones were wrapped by an editor and continue below.
_WRAPPED_LENGTH = 60
MAX_LENGTH = 600
_Kind = Literal["text", "item", "heading", "row"]


class TextBlock(msgspec.Struct, frozen=True):
    """A paragraph, a list item, a heading or a row of a table (its cells between bars), without its mark."""

    kind: _Kind
    text: str


def split_sentences(text: str) -> list[str]:
    """Split `text` into sentences, white space normalised; table rows and overlong ones are left out."""
    found: list[str] = []
    for block in iterate_blocks(text):
        if block.kind != "row":
            found.extend(cut_sentences(block.text))
    return found


def cut_sentences(line: str) -> list[str]:
    """Split one paragraph into sentences; overlong ones are left out."""
    parts = (" ".join(part.split()) for part in _END.split(line))
    return [part for part in parts if part and len(part) <= MAX_LENGTH]


def cut_words(text: str, limit: int) -> str:
    """Cut `text`, on one line, at the end of a word: half a key would not be recognised and removed."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit].rpartition(' ')[0]} …".lstrip()


def iterate_blocks(text: str) -> Iterator[TextBlock]:
    """Yield the blocks of `text` without fenced code; lines that an editor wrapped are joined again."""
    kind: _Kind = "text"
    parts, length = [""], 0
    for raw in [*_FENCE.sub("\n", text).splitlines(), ""]:
        mark = _MARK.match(raw)
        line = raw[mark.end() :].strip() if mark else raw.strip()
        goes_on = line[:1].islower() and not mark and not parts[-1].endswith((".", "!", "?", ":"))
        if goes_on and length >= _WRAPPED_LENGTH and kind != "row":
            parts.append(line)
            continue
        if length:
            yield TextBlock(kind, " ".join(parts))
        if _TABLE.match(raw):
            kind, line = "row", " | ".join(cell.strip() for cell in line.strip("|").split("|"))
        else:
            kind, line = _tell_kind(mark[1] if mark else ""), _EMPHASIS.sub(r"\2", line)
        parts, length = [line], len(line)


def _tell_kind(mark: str) -> Literal["text", "item", "heading"]:
    if mark.startswith("#"):
        return "heading"
    return "item" if mark and mark != ">" else "text"


def normalise(text: str) -> str:
    """Normalise `text` for comparison: case, white space and closing punctuation do not matter."""
    return " ".join(text.casefold().split()).rstrip(".!…:;, ")


def is_alike(one: str, other: str) -> bool:
    """Check whether two short texts say the same thing, that is, share most of their words."""
    first, second = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    if not first or not second:
        return normalise(one) == normalise(other)
    return len(first & second) / len(first | second) >= 0.6  # noqa: PLR2004 - three of five words


CHOICES_HEADING = get_phrases("choices-heading")
LENGTH = 320
_RULE_ROW = re.compile(r"[\s|:-]+")
_SHORT = 12


class Passage(msgspec.Struct, frozen=True):
    """Consecutive sentences, quoted together; `lead` is the heading or line above them."""

    text: str
    lead: str = ""


def split_passages(text: str, stops: Collection[str] = ()) -> Iterator[Passage]:
    """Split `text` into passages.

    Questions, the sentences `stops` and narration of the current step separate passages and are left out. A
    table is included if its column names mark it as one of choices, except for overlong rows.
    """
    heading = lead = columns = ""
    blocks = list(iterate_blocks(text))
    for block, after in zip(blocks, [*blocks, None][1:], strict=True):
        if block.kind == "heading":
            heading, lead = block.text, ""
        elif block.kind == "row":
            columns = block.text if after and _RULE_ROW.fullmatch(after.text) else columns
            is_choice = columns != block.text and bool(CHOICES_HEADING.search(columns))
            if is_choice and len(block.text) <= MAX_LENGTH and not _RULE_ROW.fullmatch(block.text):
                yield Passage(block.text, f"{heading} {columns}".strip())
        elif block.kind == "text" and block.text.endswith(":"):
            lead = block.text
        else:
            yield from _cut_block(block, heading, lead, stops)
            lead = lead if block.kind == "item" else ""


def _cut_block(block: TextBlock, heading: str, lead: str, stops: Collection[str]) -> Iterator[Passage]:
    """Cut a block into runs of sentences of at most `LENGTH` characters; an overlong sentence is alone."""
    above = f"{heading} {lead}".strip() if block.kind == "item" else heading
    run = ""
    for sentence in cut_sentences(block.text):
        breaks = (
            sentence in stops
            or sentence.endswith(("?", ":"))
            or bool(_NARRATION.match(plain_apostrophes(sentence)))
        )
        if run and (breaks or len(run) + len(sentence) >= LENGTH):
            yield Passage(run, above)
            run = ""
        if not breaks:
            run = f"{run} {sentence}".strip()
    if len(run) >= _SHORT:
        yield Passage(run, above)


WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""An expression for a character of a script without spaces; Korean has spaces, but long words."""
_RUN = compile_late(f"{WIDE}+")
_LONG_WORD = compile_late(r"[^\W_]{3,}")
# Words shorter than the first number say little; of longer ones the stem is compared, as endings differ.
_LEAST_LETTERS, _STEM = 4, 5
_LONGEST = 4000
"""The number of characters of a text that are read."""


def list_words(text: str) -> set[str]:
    """List the whole words of a text and its character pairs, ignoring case.

    Use it to compare two speakers, who call a thing by the same name.
    """
    folded = text[:_LONGEST].casefold()
    words = {word for word in _LONG_WORD.findall(folded) if not _RUN.search(word)}
    return words | {pair for pair in _iterate_pairs(folded) if len(pair) > 1}


def list_stems(texts: Iterable[str]) -> set[str]:
    """List the stems, numbers and character pairs of several texts, ignoring case.

    Use it to recognise a paraphrase, in which words have other endings.
    """
    found: set[str] = set()
    for text in texts:
        folded = text.casefold()
        found.update(_iterate_pairs(folded))
        for word in _WORD.findall(_RUN.sub(" ", folded)):
            if word[0].isdigit() or len(word) >= _LEAST_LETTERS:
                found.add(word if word[0].isdigit() else word[:_STEM])
    return found


def _iterate_pairs(folded: str) -> Iterator[str]:
    """Yield the pairs of neighbouring characters; a single character as itself."""
    for run in _RUN.findall(folded):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
