"""Find the lines of a prompt's paragraphs that look copied, and where they end."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.pastes._lines import PromptLines
from agent_relay.packet.extract.pastes._shapes import (
    ASSIGNMENT,
    CAPTION_LINE,
    CODE_LINE,
    COMMAND_LINE,
    COMMENT,
    CONTINUED,
    DIFF_BODY,
    DIFF_LINE,
    FIELD,
    LIST_ITEM,
    MARKUP_LINE,
    NESTED,
    PROMPT_LINE,
    SECTION,
    SPEAKER,
    SPEAKER_HEAD,
    SPOKEN_LINE,
    TABLE_LINE,
    THROWN,
    TRACE_LINE,
    has_stranger_order,
    is_lead,
    resumes_own_words,
    stands_alone,
)
from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes

_ROLE = get_phrases("speaker-role")
_LEVEL = compile_late(r"\s{0,8}(?:INFO|WARN|WARNING|DEBUG|TRACE|NOTICE|NOTE|ERROR|FATAL)\b[: ]")
_SET_IN = compile_late(r"(?:    |\t)\s*+(?![-*+] |\d{1,3}[.)])\S")
# Rows may also begin with the number of a revision.
_ROW = compile_late(r"(?=[a-f]{0,12}\d)[0-9a-f]{7,12} \S")
_REMARK = compile_late(r"\s{0,8}#(?!#) ?[^\s#]")
_HEADING = compile_late(r"# ?\S+(?: [^\s=]+){0,4}(?<![.:=\u2026])")
_SHEBANG = compile_late(r"#! ?/")
_MOMENT = compile_late(r"\s{0,8}[\[(]?\d\d?:\d\d(?: ?[AaPp]\.?[Mm]\.?)?[\])]?(?: Uhr)?$")
_RULE, _STANDING = get_phrases("rule"), get_phrases("standing-rule")
_ASIDE = compile_late(r"[a-z\u00df-\u00ff][^:=/\\(){}<>\[\]|;\d_\"]{2,90}")
_POINTER = compile_late(r"[ |\t]*[\^~][\^~ ]*")
_GAPS = compile_late(r"\S {2,}(?=\S)")
# The lines of a frame of a trace: its position, its code, and the marks below the code.
_FRAME = 3
_NAME = 5
_COLUMNS = ("  ", "\t", ";", ",", " | ", "|")


def take_shaped(prompt: PromptLines) -> None:
    """Take the lines of every paragraph that look copied."""
    before = False
    only_code: tuple[int, int] | None = None
    paragraphs = list(prompt.list_paragraphs())
    last = paragraphs[-1][1] if paragraphs else 0
    for begin, end in paragraphs:
        heads = prompt.heads[begin:end]
        claimed = _claim_lines(heads)
        if any(claimed):
            _fill(heads, claimed, is_last=end == last)
            if end == last and _is_aside(heads):
                claimed[-1] = False
            _take_claimed(prompt, begin, claimed)
            if only_code is not None and claimed[0] and any(_claim_code(heads)):
                prompt.take(*only_code)
        elif (before and _goes_on_below(heads)) or _is_set_in(prompt, begin, heads):
            prompt.take(begin, end)
        tail = _find_code_tail(heads)
        only_code = None if any(claimed) or not tail else (end - tail, end)
        before = bool(prompt.runs[end - 1])


def _goes_on_below(heads: Sequence[str]) -> bool:
    """Check whether a paragraph continues the pasted one above: it is indented, or a stranger's order."""
    return has_stranger_order(heads) or all(_SET_IN.match(head) for head in heads)


def _is_aside(heads: Sequence[str]) -> bool:
    """Check whether the last line of a prompt is the user's remark right below what they pasted."""
    line = heads[-1]
    if len(heads) < 2 or any(SPEAKER_HEAD.match(head) or CAPTION_LINE.match(head) for head in heads):  # noqa: PLR2004
        return False
    if has_stranger_order([line]) or stands_alone(line) or PROMPT_LINE.match(heads[-2]):
        return False
    if _is_thrown(heads, len(heads) - 1):
        return False
    # Above all, a stranger's rule must not be taken for the user's.
    plain = plain_apostrophes(line)
    return bool(_ASIDE.fullmatch(line)) and not _RULE.search(plain) and not _STANDING.search(plain)


def _is_set_in(prompt: PromptLines, begin: int, heads: Sequence[str]) -> bool:
    """Check whether a paragraph below others is indented as a whole, like code in Markdown."""
    if len(heads) < 2 or not all(_SET_IN.match(head) for head in heads):  # noqa: PLR2004 - one line may be an order
        return False
    above = begin - 1
    while above >= 0 and prompt.is_blank(above):
        above -= 1
    return above >= 0 and not _SET_IN.match(prompt.heads[above]) and not LIST_ITEM.match(prompt.heads[above])


def _take_claimed(prompt: PromptLines, begin: int, claimed: Sequence[bool]) -> None:
    at = 0
    while at < len(claimed):
        first = at
        while at < len(claimed) and claimed[at]:
            at += 1
        if first < at:
            prompt.take(begin + first, begin + at)
        at = max(at, first + 1)


def _claim_lines(heads: Sequence[str]) -> list[bool]:
    """Return for each line of a paragraph whether it, or the lines around it, look unlike prose."""
    claimed = [stands_alone(head) for head in heads]
    if _is_diff(heads):
        first = next(at for at, head in enumerate(heads) if DIFF_LINE.match(head) or head[:1] in "+-")
        for at in range(first, len(heads)):
            if not DIFF_BODY.match(heads[at]):
                break
            claimed[at] = True
    for claim in (
        _claim_session,
        _claim_columns,
        _claim_speech,
        _claim_settings,
        _claim_markup,
        _claim_code,
        _claim_remarks,
    ):
        for at, is_claimed in enumerate(claim(heads)):
            claimed[at] = claimed[at] or is_claimed
    _claim_neighbours(heads, claimed)
    return claimed


def _claim_neighbours(heads: Sequence[str], claimed: list[bool]) -> None:
    """Claim continuations of claimed lines, heads of tables, and neighbouring lines with a log level."""
    for at in range(1, len(heads)):
        claimed[at] = claimed[at] or (claimed[at - 1] and _goes_on(heads[at])) or _is_thrown(heads, at)
    for at, head in enumerate(heads[1:], 1):
        claimed[at - 1] = claimed[at - 1] or (
            (bool(TABLE_LINE.match(head)) and "|" in heads[at - 1]) or bool(_POINTER.fullmatch(head))
        )
    for at in range(1, len(heads)):
        if any(row.match(heads[at - 1]) and row.match(heads[at]) for row in (_LEVEL, _ROW)):
            claimed[at - 1] = claimed[at] = True
    for at in range(len(heads) - 2, -1, -1):
        claimed[at] = claimed[at] or (
            claimed[at + 1] and bool(_LEVEL.match(heads[at]) or _is_remark(heads[at]))
        )


def _goes_on(head: str) -> bool:
    return bool(CONTINUED.match(head) or _LEVEL.match(head) or _REMARK.match(head))


def _is_remark(head: str) -> bool:
    """Check whether a line is a comment after a `#`, as in programs and scripts, and not a heading."""
    return bool(_REMARK.match(head)) and not _HEADING.fullmatch(head)


def _claim_remarks(heads: Sequence[str]) -> list[bool]:
    """Claim scripts and program output that have comments after a `#` among their lines."""
    claimed = [False] * len(heads)
    marked = [at for at, head in enumerate(heads) if _REMARK.match(head) or _SHEBANG.match(head)]
    is_script = any(_SHEBANG.match(heads[at]) for at in marked)
    # If there are only such lines, they may be the items of a list.
    if is_script or (len(marked) < len(heads) and any(at and _is_remark(heads[at]) for at in marked)):
        claimed[marked[0] :] = [True] * (len(heads) - marked[0])
        _give_back(heads, claimed)
    return claimed


def _is_thrown(heads: Sequence[str], at: int) -> bool:
    """Check whether a line names the exception that ended the trace above it, whatever it is called."""
    above = heads[max(0, at - _FRAME) : at]
    is_below = bool(above) and bool(_SET_IN.match(above[-1])) and any(map(TRACE_LINE.match, above))
    return is_below and bool(THROWN.match(heads[at]))


def _is_diff(heads: Sequence[str]) -> bool:
    if any(DIFF_LINE.match(head) for head in heads):
        return True
    signs = Counter(head[:1] for head in heads if head[:1] in ("+", "-") and head[1:2] not in ("", "-", "+"))
    return signs["+"] > 0 and signs["-"] > 0 and any(head[1:3] == "  " or head[1:2] == "\t" for head in heads)


def _claim_session(heads: Sequence[str]) -> list[bool]:
    """Claim the output below a command in a terminal."""
    claimed = [False] * len(heads)
    commands = [bool(COMMAND_LINE.match(head)) for head in heads]
    if any(commands) and not all(commands[commands.index(True) :]):
        for at in range(commands.index(True), len(heads)):
            claimed[at] = True
    for at, head in enumerate(heads):
        claimed[at] = (
            claimed[at]
            or bool(at and claimed[at - 1])
            or bool(PROMPT_LINE.match(head) or CAPTION_LINE.match(head))
        )
    _give_back(heads, claimed)
    return claimed


def _claim_columns(heads: Sequence[str]) -> list[bool]:
    """Claim the rows of a table: neighbouring lines with the same number of separators."""
    claimed = [False] * len(heads)
    for sign in _COLUMNS:
        fewest = 2 if sign in (",", ";", "  ") else 1
        counts = [_count_columns(head, sign) for head in heads]
        begin = 0
        for at in range(1, len(heads) + 1):
            if at < len(heads) and counts[at] == counts[begin]:
                continue
            enough = 3 if sign == "," and counts[begin] == fewest else 2
            if counts[begin] >= fewest and at - begin >= enough and _is_table(heads[begin:at]):
                claimed[begin:at] = [True] * (at - begin)
            begin = at
    return claimed


def _count_columns(head: str, sign: str) -> int:
    """Count the column separators in a line; a comma followed by a space probably belongs to a sentence."""
    if sign == "  ":
        return sum(1 for _ in _GAPS.finditer(head))
    count = head.count(sign)
    return count if sign != "," or head.count(", ") * 2 <= count else 0


def _is_table(rows: Sequence[str]) -> bool:
    return not any(LIST_ITEM.match(row) and not row[:1].isdigit() for row in rows)


def _claim_speech(heads: Sequence[str]) -> list[bool]:
    """Claim a conversation of several speakers."""
    claimed = [False] * len(heads)
    tops = [at for at, head in enumerate(heads) if SPEAKER_HEAD.match(head) and head.strip() == head]
    tops += [
        at for at, head in enumerate(heads[1:]) if _MOMENT.match(head) and len(heads[at].split()) < _NAME
    ]
    tops.sort()
    is_chat = len(tops) > 1 or any(
        "  " in heads[at] or heads[at][-1:] in ")]mM" or _MOMENT.match(heads[min(at + 1, len(heads) - 1)])
        for at in tops
    )
    if is_chat and tops[-1] + 1 < len(heads):
        claimed[tops[0] :] = [True] * (len(heads) - tops[0])
        _give_back(heads, claimed)
    timed = [at for at, head in enumerate(heads) if SPOKEN_LINE.match(head)]
    if len(timed) > 1:
        end = len(heads) if has_stranger_order(heads[timed[-1] + 1 :]) else timed[-1] + 1
        claimed[timed[0] : end] = [True] * (end - timed[0])
    spoken = [
        (at, found[0].rstrip(" :\uff1a").casefold())
        for at, head in enumerate(heads)
        if (found := SPEAKER.match(head))
    ]
    names = Counter(name for _, name in spoken)
    is_talk = len(names) > 1 and (
        max(names.values()) > 1
        or any(_ROLE.fullmatch(name.strip("<>@")) or name[:1] in "<@" for name in names)
        or any(heads[at].rstrip()[-1:] in "?\uff1f" for at, _ in spoken)
    )
    if len(spoken) > 1 and is_talk and not _is_settings(heads):
        first = spoken[0][0]
        claimed[first:] = [True] * (len(heads) - first)
        _give_back(heads, claimed)
    return claimed


def _is_settings(heads: Sequence[str]) -> bool:
    """Check whether there are nested keys, or keys below the name of a section."""
    fields = sum(bool(FIELD.match(head) or LIST_ITEM.match(head)) for head in heads)
    nested = any(NESTED.match(head) for head in heads) and any(head.endswith(":") for head in heads)
    return fields > 1 and (nested or any(SECTION.match(head) for head in heads))


def _claim_settings(heads: Sequence[str]) -> list[bool]:
    """Claim settings, with their comments."""
    claimed = [False] * len(heads)
    assigned = [bool(ASSIGNMENT.match(head)) for head in heads]
    if not (_is_settings(heads) or sum(assigned) > 2):  # noqa: PLR2004 - fewer may be wishes
        return claimed
    for at, head in enumerate(heads):
        claimed[at] = assigned[at] or bool(
            FIELD.match(head) or NESTED.match(head) or SECTION.match(head)
            or COMMENT.match(head) or (LIST_ITEM.match(head) and at and claimed[at - 1])
        )  # fmt: skip
    first = next((at for at, one in enumerate(claimed) if one), 0)
    if (
        claimed[first]
        and is_lead(heads[first])
        and not SECTION.match(heads[first])
        and first + 1 < len(heads)
        and not heads[first + 1].startswith((" ", "\t"))
    ):
        claimed[first] = False
    return claimed


def _claim_markup(heads: Sequence[str]) -> list[bool]:
    tags = [at for at, head in enumerate(heads) if MARKUP_LINE.match(head)]
    claimed = [False] * len(heads)
    if len(tags) > 1 or (tags and "</" in heads[tags[0]]):
        claimed[tags[0] : tags[-1] + 1] = [True] * (tags[-1] + 1 - tags[0])
    return claimed


def _claim_code(heads: Sequence[str]) -> list[bool]:
    """Claim code, if there is more of it than of anything else."""
    claimed = [False] * len(heads)
    code = [at for at, head in enumerate(heads) if CODE_LINE.match(head) and not LIST_ITEM.match(head)]
    if len(code) < 2:  # noqa: PLR2004 - one line may be the user's own
        return claimed
    first, last = code[0], code[-1]
    while first and COMMENT.match(heads[first - 1]):
        first -= 1
    while last + 1 < len(heads) and (COMMENT.match(heads[last + 1]) or heads[last + 1][:1] in (" ", "\t")):
        last += 1
    inner = heads[first : last + 1]
    odd = sum(1 for head in inner if not _is_code(head))
    if odd * 3 <= len(inner):
        claimed[first : last + 1] = [True] * len(inner)
    return claimed


def _is_code(head: str) -> bool:
    return bool(CODE_LINE.match(head) or COMMENT.match(head) or head[:1] in (" ", "\t"))


def _fill(heads: Sequence[str], claimed: list[bool], *, is_last: bool) -> None:
    """Claim the lines between claimed ones, too, except those that introduce the next one."""
    places = [at for at, is_claimed in enumerate(claimed) if is_claimed]
    for before, after in pairwise(places):
        for at in range(before + 1, after):
            claimed[at] = not (at == after - 1 and is_lead(heads[at]))
    rest = heads[places[-1] + 1 :]
    if rest and (has_stranger_order(rest) or len(rest) > 1 or not is_last):
        claimed[places[-1] + 1 :] = [True] * len(rest)
        _give_back(heads, claimed)


def _give_back(heads: Sequence[str], claimed: list[bool]) -> None:
    """Give back to the user the last lines of a claimed paragraph that sound like a question or an order."""
    for at in range(len(heads) - 1, max(0, len(heads) - 3), -1):
        if not (claimed[at] and resumes_own_words(heads[at])) or stands_alone(heads[at]):
            return
        claimed[at] = False


def _find_code_tail(heads: Sequence[str]) -> int:
    """Count the lines of code at the end of a paragraph that is mostly not code."""
    count = 0
    while count < len(heads) and CODE_LINE.match(heads[-count - 1]):
        count += 1
    return count
