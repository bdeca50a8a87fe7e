"""Separate, within a prompt, text by others that the user pasted.

Pasted text is mostly recognised by its shape: fences, quoted lines, logs, traces, mails, tables. Words help
if a line says whose text follows, or presents prose as somebody else's: mails, tickets, what the wiki says.
In doubt a line counts as pasted: mistaking a stranger's order for the user's is worse than marking one of the
user's own sentences.
"""

from collections.abc import Sequence

import msgspec

from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.pastes._blocks import take_shaped
from agent_relay.packet.extract.pastes._lines import PromptLines
from agent_relay.packet.extract.pastes._marks import CLOSING_MARKS, OPENING_MARKS, find_quotation, take_marked
from agent_relay.packet.extract.pastes._shapes import (
    LIST_ITEM,
    find_others_words,
    is_lead,
    is_stranger_order,
    names_source,
    resumes_own_words,
)
from agent_relay.packet.extract.sentences import get_phrases

_HEADER = get_phrases("mail-header")
_ATTRIBUTION = get_phrases("mail-attribution")
_GREETING = get_phrases("greeting")
_FAREWELL = get_phrases("farewell")
_FIELD = get_phrases("ticket-field")
_BYLINE = get_phrases("byline")
_RELAY = get_phrases("relay-document")
_FEW_WORDS = 6
_SIGNATURE = 5
_SHORT_CLOSING = 90
_ADDRESS = compile_late(r"@|^\W{0,4}(?:[Ss]ubject|SUBJECT|Betreff|Asunto|Objet|Assunto|主题|件名)")
_KEY = compile_late(r"\b[A-Z]{2,10}-\d{1,7}\b")
Paragraph = tuple[int, int]


def take_letters(prompt: PromptLines) -> None:
    """Take mails and tickets, each from its header to where the user's words resume."""
    paragraphs = _list_all(prompt)
    number = 0
    while number < len(paragraphs):
        begin, end = paragraphs[number]
        head = _find_head(prompt.heads[begin:end], is_first=number == 0)
        if head < 0 or prompt.runs[begin + head]:
            number += 1
            continue
        number = _take_document(prompt, paragraphs, number, head)


def take_framed(prompt: PromptLines) -> None:
    """Take the prose below every line that names its source."""
    paragraphs = _list_all(prompt)
    number = 0
    while number < len(paragraphs):
        begin, end = paragraphs[number]
        lead = next((at for at in range(begin, end) if _leads(prompt, at, end)), -1)
        if lead < 0:
            number += 1
            continue
        number = _take_below(prompt, paragraphs, number, lead)


def divide_framed(prompt: PromptLines) -> None:
    """Take the text after the colon of a line that names its source."""
    for begin, end in list(prompt.list_paragraphs()):
        for at in range(begin, end):
            if prompt.is_divided(at) or prompt.runs[at]:
                continue
            cut = find_others_words(prompt.heads[at])
            if cut:
                line = prompt.lines[at]
                inner = find_quotation(line[cut:])
                if inner:
                    prompt.divide(
                        at,
                        [
                            (False, line[:cut]),
                            (True, inner),
                            (False, line[cut + len(inner) + 2 :].lstrip(" .")),
                        ],
                    )
                    continue
                prompt.divide(at, [(False, line[:cut]), (True, line[cut:].strip())])
                _take_rest(prompt, at + 1, end)


def _take_rest(prompt: PromptLines, begin: int, end: int) -> None:
    """Take the lines up to the end of the paragraph, except the user's last ones."""
    last = _find_last(prompt, begin, end)
    if begin < last:
        prompt.take(begin, last)


def _find_last(prompt: PromptLines, begin: int, end: int) -> int:
    while end > begin and (resumes_own_words(prompt.heads[end - 1]) or is_lead(prompt.heads[end - 1])):
        end -= 1
    return end


def _list_all(prompt: PromptLines) -> list[Paragraph]:
    """List the beginnings and ends of all paragraphs, pasted or not."""
    found: list[Paragraph] = []
    begin = -1
    for at in range(len(prompt) + 1):
        is_blank = at == len(prompt) or prompt.is_blank(at)
        if is_blank and begin >= 0:
            found.append((begin, at))
            begin = -1
        elif not is_blank and begin < 0:
            begin = at
    return found


def _find_head(heads: Sequence[str], *, is_first: bool) -> int:
    """Return the line of a paragraph on which a mail or ticket begins; -1 if there is none."""
    for at, head in enumerate(heads):
        if _ATTRIBUTION.match(head) or _BYLINE.match(head) or _RELAY.match(head):
            return at
    headers = [at for at, head in enumerate(heads) if _HEADER.match(head)]
    if _are_close(headers) and (len(headers) > 2 or any(_ADDRESS.search(heads[at]) for at in headers)):  # noqa: PLR2004 - two may be a wish
        return headers[0]
    fields = [at for at, head in enumerate(heads) if _FIELD.match(head)]
    if _are_close(fields) and (len(fields) > 2 or any(_KEY.search(head) for head in heads)):  # noqa: PLR2004 - same
        return fields[0] - 1 if fields[0] and not is_lead(heads[fields[0] - 1]) else fields[0]
    if (
        not is_first
        and _GREETING.match(heads[0])
        and len(heads[0].split()) <= _FEW_WORDS
        and heads[0][-1:] in ",\uff0c!:\uff1a"
    ):
        return 0
    return -1


def _are_close(places: Sequence[int]) -> bool:
    return len(places) > 1 and places[-1] - places[0] < len(places) * 2


def _take_document(prompt: PromptLines, paragraphs: Sequence[Paragraph], number: int, head: int) -> int:
    """Take a document that begins in a paragraph; return the number of the first one after it."""
    last = len(paragraphs)
    for later in range(number, last):
        begin = paragraphs[later][0]
        end = _find_farewell(prompt, paragraphs, later, begin + head if later == number else begin)
        if end:
            prompt.take(paragraphs[number][0] + head, end)
            return later + 1
    stop = last
    first = number + (2 if _is_bare(prompt, paragraphs[number], head) and number + 1 < last else 1)
    while stop > first and _closes(prompt, paragraphs[stop - 1], is_last=stop == last):
        stop -= 1
    end = paragraphs[stop - 1][1]
    if stop == number + 1:
        end = _find_last(prompt, paragraphs[number][0] + head + 1, end)
    prompt.take(paragraphs[number][0] + head, end)
    return stop


def _is_bare(prompt: PromptLines, paragraph: Paragraph, head: int) -> bool:
    """Check whether a paragraph ends with the header of a letter, whose body is then the next one."""
    last = prompt.heads[paragraph[1] - 1]
    is_head = any(one.match(last) for one in (_HEADER, _ATTRIBUTION, _BYLINE, _RELAY))
    return is_head or (paragraph[1] - paragraph[0] - head == 1 and bool(_GREETING.match(last)))


def _find_farewell(prompt: PromptLines, paragraphs: Sequence[Paragraph], number: int, begin: int) -> int:
    """Return the end of a letter that is signed in the paragraph, after the name; 0 if it is not signed."""
    end = paragraphs[number][1]
    for at in range(begin, end):
        head = prompt.heads[at].strip()
        if head in ("--", "-- "):
            return end
        if not _FAREWELL.match(head) or len(head.split()) > _FEW_WORDS:
            continue
        below = [at + 1 < end, number + 1 < len(paragraphs)]
        if below[0]:
            stop = at + 1
            while (
                stop < min(end, at + 1 + _SIGNATURE)
                and len(prompt.heads[stop].split()) <= _FEW_WORDS
                and not resumes_own_words(prompt.heads[stop])
            ):
                stop += 1
            return stop
        if below[1]:
            name_begin, name_end = paragraphs[number + 1]
            name = prompt.heads[name_begin]
            if (
                name_end - name_begin <= _SIGNATURE
                and len(name.split()) < _FEW_WORDS
                and name[:1].isupper()
                and not resumes_own_words(name)
                and name[-1:] not in ".?!:"
            ):
                return name_end
        if "," in head[1:] or len(paragraphs) > number + 1 or at > begin:
            return end
    return 0


def _leads(prompt: PromptLines, at: int, end: int) -> bool:
    if prompt.runs[at] or prompt.is_divided(at) or not names_source(prompt.heads[at]):
        return False
    following = at + 1
    while following < len(prompt) and prompt.is_blank(following):
        following += 1
    is_below = is_lead(prompt.heads[at]) or at == end - 1
    if not is_below or following == len(prompt):
        return False
    return not prompt.runs[following] and not prompt.is_divided(following)


def _take_below(prompt: PromptLines, paragraphs: Sequence[Paragraph], number: int, lead: int) -> int:
    """Take the text below a line that introduces it; return the number of the first paragraph after it."""
    end = paragraphs[number][1]
    first = number
    begin = lead + 1
    if begin == end:
        first = number + 1
        begin, end = paragraphs[first]
    if end - begin == 1 and is_lead(prompt.heads[begin]) and _is_done(prompt, paragraphs[first + 1 :]):
        return first + 1
    stop = len(paragraphs)
    while stop > first + 1 and _closes(prompt, paragraphs[stop - 1], is_last=stop == len(paragraphs)):
        stop -= 1
    if prompt.heads[begin].strip()[0] in OPENING_MARKS and prompt.heads[begin].strip()[-1] in CLOSING_MARKS:
        prompt.take(begin, begin + 1)
        return max(first + 1, number + 1)
    if stop == first + 1 and stop == len(paragraphs):
        _take_rest(prompt, begin, end)
        return max(stop, number + 1)
    prompt.take(begin, paragraphs[stop - 1][1])
    return stop


def _is_done(prompt: PromptLines, later: Sequence[Paragraph]) -> bool:
    """Check whether the text below a second introducing line was already taken, or is missing."""
    return not later or bool(prompt.runs[later[0][0]]) or _closes(prompt, later[0], is_last=len(later) == 1)


def _closes(prompt: PromptLines, paragraph: Paragraph, *, is_last: bool) -> bool:
    """Check whether a paragraph near the end is the user's own."""
    begin, end = paragraph
    if prompt.runs[begin] or prompt.runs[end - 1]:
        return False
    heads = prompt.heads[begin:end]
    if any(is_stranger_order(head) and not head.endswith(("?", "\uff1f")) for head in heads):
        return False
    first = heads[0].strip()
    if resumes_own_words(first) or resumes_own_words(heads[-1]):
        return True
    return is_last and len(heads) == 1 and len(first) <= _SHORT_CLOSING and not LIST_ITEM.match(first)


_LONGEST = 100_000


class SplitPrompt(msgspec.Struct, frozen=True):
    """A prompt, split into the user's own words and what they pasted.

    `own` keeps line breaks, with its paragraphs separated by a blank line; `pasted` is each pasted run
    verbatim, without the marks that fence or quote it.
    """

    own: str
    pasted: tuple[str, ...]


def split_pasted(text: str) -> SplitPrompt:
    """Split a prompt into the user's own words and what they pasted, in time linear in its length.

    Nobody types more than `_LONGEST` characters: the middle of a longer prompt counts as pasted, unread.
    """
    if len(text) <= _LONGEST:
        return _split(text)
    half = _LONGEST // 2
    start = text.rfind("\n", 0, half) + 1 or half
    end = text.find("\n", len(text) - half)
    end = end if end >= 0 else len(text) - half
    head, tail = _split(text[:start]), _split(text[end:])
    own = "\n\n".join(part for part in (head.own, tail.own) if part)
    return SplitPrompt(own, (*head.pasted, text[start:end].strip("\n"), *tail.pasted))


def _split(text: str) -> SplitPrompt:
    prompt = PromptLines(text)
    take_marked(prompt)
    take_letters(prompt)
    take_shaped(prompt)
    take_framed(prompt)
    divide_framed(prompt)
    return SplitPrompt(*prompt.collect())
