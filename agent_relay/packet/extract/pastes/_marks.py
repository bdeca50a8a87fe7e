"""Find text delimited by marks: fences, quoted lines, tags, brackets, separators, quotation marks."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from agent_relay.domain.text.plain import compile_late, count_columns
from agent_relay.packet.extract.pastes._lines import PromptLines
from agent_relay.packet.extract.pastes._shapes import is_lead, resumes_own_words
from agent_relay.packet.extract.sentences import get_phrases

# Tildes with a caret are no fence: Python marks the failing part of a line that way.
_FENCE = compile_late(r"\s{0,12}(`{3,20}|~{3,20}(?![~^\s]*\^)|(?:'{3}|\"{3})(?=$))([^`]*)$")
_LATE_FENCE = compile_late(r"[^`]++(```)\s*(\w{0,12})$")
_QUOTED = compile_late(r"\s{0,14}((?:>(?!=)\s?|»\s?|\|(?!\|)\s?){1,8})")
_COMPARED = compile_late(r"\s*> ?[\d.,]+ ?\w{0,4}\b(?!:)")
_TAG = compile_late(
    r"\s{0,8}(?:\{(?P<brace>code|quote|noformat|panel)(?::[^{}]{0,80})?\}|\[(?P<square>quote|code"
    r"|log|spoiler)(?:=[^\[\]]{0,80})?\]"
    r"|\\begin\{(?P<latex>verbatim|lstlisting|minted|quote|quotation)\}[^\n]{0,80}"
    r"|<!(?P<remark>--)|<(?P<angle>[A-Za-z][\w:-]{0,40})(?:\s[^<>]{0,300})?>"
    r"|-----BEGIN (?P<armour>[A-Z ]{1,40})-----)"
)
_INSTRUCTION = compile_late(r"\s{0,8}<[?!]")
_SEPARATORS = frozenset("-=*_#~+.%<>\u2500\u2501\u2550\u2014")
_OBJECT = compile_late(r"\s{0,12}[{\[](?:\s*$|\s*[\"'{\[]|\d)")
_MARKS = {"„": '“”"', "“": '”"', "«": "»", "「": "」", "『": "』", "《": "》", '"': '"', "”": "”"}
# These also look like apostrophes, so the quotation must end on the line on which it begins.
_LINE_MARKS = {**_MARKS, "\u2018": "\u2019", "\u201a": "\u2018", "\u2039": "\u203a", "'": "'", "`": "`"}
OPENING_MARKS = frozenset(_MARKS)
CLOSING_MARKS = frozenset("".join(_MARKS.values()))
_CLOSING = compile_late('[“”»」』》"]')
_INTRODUCED = get_phrases("introduces-quotation")
_WORD = compile_late(r"[\w'\u2019-]+")
_WIDE = compile_late("[\u3040-\u30ff\u4e00-\u9fff]")
_FEWEST_WORDS = 9
_FEWEST_WIDE = 17
_FARTHEST = 200


def take_marked(prompt: PromptLines) -> None:
    """Take every run of lines that is delimited by marks."""
    _take_fences(prompt)
    _take_quoted(prompt)
    _take_separated(prompt)
    _take_enclosed(prompt)
    _take_quotations(prompt)


def _take_fences(prompt: PromptLines) -> None:
    at, count = 0, len(prompt)
    while at < count:
        opened = _FENCE.match(prompt.heads[at]) if len(prompt.heads[at]) < _FARTHEST * 2 else None
        late = None if opened else _LATE_FENCE.match(prompt.heads[at].lstrip())
        if opened is None and late is None:
            at += 1
            continue
        mark = opened[1] if opened else "```"
        begin, at = at, at + 1
        while at < count and not _closes(prompt, at, mark):
            at += 1
        if at == count and mark[0] in "\"'":
            # Only a fence may stay open: three quotation marks alone may close a string in code.
            at = begin + 1
            continue
        if late is not None:
            prompt.divide(begin, [(False, prompt.lines[begin].lstrip()[: late.start(1)])])
            begin += 1
        elif opened is not None:
            info = opened[2].strip()
            prompt.show(begin, info if len(info.split()) > 1 else None)
        end = min(at + 1, count)
        if at < count:
            end = _close(prompt, at, mark)
        if begin < end:
            prompt.take(begin, end)
        at = max(at + 1, end)


def _closes(prompt: PromptLines, at: int, mark: str) -> bool:
    line = prompt.heads[at]
    stripped = line.strip()
    if stripped.startswith(mark):
        rest = stripped.lstrip(mark[0])
        return not rest or len(rest.split()) > 1 or (rest[0] == " " and mark[0] not in rest)
    return stripped.endswith(mark) and line.count(mark) == 1


def _close(prompt: PromptLines, at: int, mark: str) -> int:
    """Separate a closing fence from other text on its line; return where the pasted run ends."""
    line = prompt.lines[at]
    stripped = line.strip()
    if not stripped.startswith(mark):
        prompt.show(at, line.rstrip()[: -len(mark)])
        return at + 1
    rest = stripped.lstrip(mark[0]).strip()
    if rest:
        prompt.divide(at, [(False, rest)])
        return at
    prompt.show(at, None)
    return at + 1


def _take_quoted(prompt: PromptLines) -> None:
    count = len(prompt)
    at = 0
    while at < count:
        begin = at
        while at < count and prompt.is_open(at) and _QUOTED.match(prompt.heads[at]):
            at += 1
        if begin == at:
            at += 1
            continue
        head = prompt.heads[begin]
        is_bar = head.lstrip()[0] == "|" and not head.endswith("|")
        if at - begin == 1 and (is_bar or _COMPARED.match(head)):
            continue
        prompt.take(begin, at)
        for one in range(begin, at):
            mark = _QUOTED.match(prompt.heads[one])
            if (mark is not None and "|" not in mark[1]) or (
                mark is not None and not prompt.heads[one].endswith("|")
            ):
                # Invisible characters written out before the mark are not part of it.
                line = prompt.lines[one]
                prompt.show(one, line if "\\" in line[: mark.end()] else line[mark.end() :])


def _take_separated(prompt: PromptLines) -> None:
    """Take the text between two separator lines of the same character."""
    found: dict[str, list[int]] = defaultdict(list)
    for at, head in enumerate(prompt.heads):
        if (
            head[-1:] in _SEPARATORS
            and len(head) < _FARTHEST
            and prompt.is_open(at)
            and _separates(head.strip())
        ):
            found[head[-1]].append(at)
    for places in found.values():
        while len(places) > 1:
            begin, end = places[0], places[1]
            is_rule = len(prompt.heads[begin].strip()) == 3  # noqa: PLR2004 - such a one divides paragraphs
            if (_is_underline(prompt, begin) and _is_underline(prompt, end)) or (
                is_rule and begin and not is_lead(prompt.heads[begin - 1])
            ):
                places.pop(0)
                continue
            prompt.take(begin, end + 1)
            del places[:2]


def _separates(line: str) -> bool:
    """Check whether a line repeats one character, or has a few words between such repetitions."""
    line = line.strip()
    if line[-1:] not in _SEPARATORS or len(line) > _FARTHEST:
        return False
    sign, inner = line[0], line.strip(line[0])
    if not inner:
        return len(line) > 3 or (len(line) == 3 and sign in "-=*_")  # noqa: PLR2004 - as they are drawn
    return line.startswith(sign * 2) and line.endswith(sign * 2)


def _is_underline(prompt: PromptLines, at: int) -> bool:
    """Check whether the separator only underlines the heading above it."""
    above = prompt.heads[at - 1].strip() if at else ""
    if not above or prompt.runs[at - 1] or above[-1] in ":\uff1a":
        return False
    return abs(count_columns(prompt.heads[at].strip()) - count_columns(above)) <= max(3, len(above) // 4)


def _take_enclosed(prompt: PromptLines) -> None:
    """Take the text between a tag and its end, and between balanced brackets."""
    ends, brackets = _find_ends(prompt), _Brackets(prompt)
    at, count = 0, len(prompt)
    while at < count:
        head = prompt.heads[at]
        end = at
        if head and prompt.is_open(at):
            if head.lstrip()[:1] in "{[" and _OBJECT.match(head):
                end = brackets.find_balance(at)
            elif tag := _TAG.match(head):
                end = _find_tag_end(prompt, at, ends, tag.lastgroup or "", tag[tag.lastgroup or 0])
            elif _INSTRUCTION.match(head):
                end = at + 1
        if end > at:
            prompt.take(at, end)
        at = max(at + 1, end)


def _find_ends(prompt: PromptLines) -> dict[str, list[int]]:
    """Find the lines on which tags end, by tag name."""
    found: dict[str, list[int]] = defaultdict(list)
    for at, head in enumerate(prompt.heads):
        if not prompt.runs[at] and any(sign in head for sign in ("</", "{", "[/", "-----END", "-->")):
            for name in _END.finditer(head):
                found[name[name.lastgroup or 0].lower()].append(at)
    return found


_END = compile_late(
    r"</(?P<angle>[A-Za-z][\w:-]{0,40})\s{0,4}>|\\end\{(?P<latex>\w{1,12})\}|\{(?P<brace>code|quote|noformat|panel)\}"
    r"|\[/(?P<square>\w{1,12})\]|(?P<remark>--)>|-----END (?P<armour>[A-Z ]{1,40})-----"
)


def _find_tag_end(prompt: PromptLines, at: int, ends: dict[str, list[int]], kind: str, name: str) -> int:
    places = ends.get(name.lower(), [])
    following = bisect_left(places, at if kind in ("angle", "square", "remark") else at + 1)
    if following == len(places):
        return (
            _find_blank(prompt, at) if kind in ("angle", "remark") and prompt.heads[at][-1:] in ">-" else at
        )
    end = places[following]
    if kind == "angle" and end == at and not prompt.heads[at].endswith(">"):
        return at
    return end + 1


def _find_blank(prompt: PromptLines, at: int) -> int:
    """Return the end of the paragraph below a tag that has a line of its own and is never closed."""
    if prompt.heads[at].count("<") > 1:
        return at
    end = at + 1
    while end < len(prompt) and prompt.is_open(end) and not resumes_own_words(prompt.heads[end]):
        end += 1
    return end if end - at > 1 else at


class _Brackets:
    """The lines where the brackets opened on each line are all closed."""

    def __init__(self, prompt: PromptLines) -> None:
        self._prompt = prompt
        self._closings = _find_closings(prompt)
        self._gaps = [
            at
            for at in range(1, len(prompt))
            if not prompt.heads[at] and not prompt.heads[at - 1] and prompt.is_blank(at)
        ]

    def find_balance(self, at: int) -> int:
        """Return the line where all brackets opened on a line are closed; `at` if they never are."""
        prompt, end = self._prompt, self._closings[at]
        following = bisect_left(self._gaps, at + 2)
        gap = self._gaps[following] if following < len(self._gaps) else len(prompt)
        if end <= gap and end < len(prompt):
            head = prompt.heads[end]
            is_whole = head.rstrip(";,")[-1:] in ("}", "]")
            return end + 1 if is_whole and (end > at or '"' in head or "'" in head) else at
        return gap if gap - at > 1 else at


def _find_closings(prompt: PromptLines) -> list[int]:
    """Return for each line the first line at whose end no more brackets are open than before it.

    Open lines wait until they are closed, so that every line is visited once, however many never are.
    """
    closings = [len(prompt)] * len(prompt)
    waiting: list[tuple[int, int]] = []
    depth = 0
    for at, head in enumerate(prompt.heads):
        waiting.append((depth, at))
        depth += head.count("{") + head.count("[") - head.count("}") - head.count("]")
        while waiting and waiting[-1][0] >= depth:
            closings[waiting.pop()[1]] = at
    return closings


def _take_quotations(prompt: PromptLines) -> None:
    """Take quotations of several lines, and long ones introduced by a colon or a verb such as "said"."""
    closings = [at for at, head in enumerate(prompt.heads) if head and _CLOSING.search(prompt.lines[at])]
    at, count = 0, len(prompt)
    while at < count:
        end = at
        if prompt.is_open(at) and not prompt.is_divided(at) and _QUOTE_SIGN.search(prompt.heads[at]):
            end = _take_long_quotation(prompt, at, closings) or at
            if end == at:
                _divide_line(prompt, at)
        at = max(at + 1, end)


def _take_long_quotation(prompt: PromptLines, at: int, closings: list[int]) -> int:
    """Take a quotation that ends on a later line; return the line after it, or 0 if there is none."""
    line = prompt.lines[at]
    opened = _find_open_mark(prompt.heads[at])
    if opened < 0:
        return 0
    wanted = _MARKS[line[opened]]
    first = bisect_left(closings, at + 1)
    for end in closings[first : first + 8]:
        if end - at > _FARTHEST:
            return 0
        closed = max(prompt.lines[end].rfind(mark) for mark in wanted)
        if closed < 0:
            continue
        if not all(prompt.is_open(one) or prompt.is_blank(one) for one in range(at, end + 1)):
            return 0
        before, after = line[:opened], prompt.lines[end][closed + 1 :].lstrip(" .,;。\uff0c")
        inner = [(True, line[opened + 1 :]), *((True, one) for one in prompt.lines[at + 1 : end])]
        inner.append((True, prompt.lines[end][:closed]))
        quoted = "\n".join(part for _, part in inner)
        prompt.divide(at, [(False, before), (True, quoted), (False, after)])
        prompt.take(at + 1, end + 1)
        for one in range(at + 1, end + 1):
            prompt.show(one, None)
        return end + 1
    return 0


def _find_open_mark(head: str) -> int:
    """Return the beginning of a quotation that the line does not close; -1 if there is none."""
    opened, wanted = -1, ""
    for mark in _QUOTE_SIGN.finditer(head):
        sign = mark[0]
        if opened >= 0 and sign in wanted:
            opened = -1
        elif opened < 0 and sign in _MARKS:
            before = head[: mark.start()].rstrip()
            if (
                not before
                or before[-1] in ":\uff1a(\uff08-\u2013\u2014"
                or head[mark.start() - 1 : mark.start()] in (" ", "")
            ):
                opened, wanted = mark.start(), _MARKS[sign]
    return opened


_QUOTE_SIGN = compile_late(
    "[„“«「『《\"”»」』》]|[\u2018\u201a\u2039\u203a`]|(?<!\\w)'(?=\\w)|['\u2019](?!\\w)"
)


def _divide_line(prompt: PromptLines, at: int) -> None:
    line = prompt.lines[at]
    parts: list[tuple[bool, str]] = []
    done = 0
    for begin, end in _iterate_quotations(prompt.heads[at]):
        if begin >= done and _is_long(line[begin + 1 : end]) and _is_introduced(line[:begin]):
            parts += [(False, line[done:begin]), (True, line[begin + 1 : end])]
            done = end + 1
    if parts:
        prompt.divide(at, [*parts, (False, line[done:].lstrip(" .,;。\uff0c"))])


def _iterate_quotations(head: str) -> Iterator[tuple[int, int]]:
    opened, wanted = -1, ""
    for mark in _QUOTE_SIGN.finditer(head):
        sign = mark[0]
        if opened >= 0 and sign in wanted:
            yield opened, mark.start()
            opened = -1
        elif opened < 0 and sign in _LINE_MARKS:
            opened, wanted = mark.start(), _LINE_MARKS[sign]


def _is_long(text: str) -> bool:
    wide = sum(1 for _ in _WIDE.finditer(text))
    return wide >= _FEWEST_WIDE or sum(1 for _ in _WORD.finditer(text)) >= _FEWEST_WORDS


def _is_introduced(before: str) -> bool:
    before = before.rstrip()
    return not before or before[-1] in ":\uff1a" or bool(_INTRODUCED.search(before[-60:]))


def find_quotation(text: str) -> str:
    """Return the quotation at the beginning of the text; empty if there is none."""
    first = next(_iterate_quotations(text), (1, 1))
    return text[1 : first[1]] if first[0] == 0 else ""
