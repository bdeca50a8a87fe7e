"""Separate, within a prompt, text by others that the user pasted.

Pasted text is mostly recognised by its shape: fences, quoted lines, logs, traces, mails, tables. Words help
if a line says whose text follows. In doubt a line counts as pasted: mistaking a stranger's order for the
user's is worse than marking one of the user's own sentences.
"""

import msgspec

from agent_relay.packet.extract.pastes._blocks import take_shaped
from agent_relay.packet.extract.pastes._frames import divide_framed, take_framed, take_letters
from agent_relay.packet.extract.pastes._lines import PromptLines
from agent_relay.packet.extract.pastes._marks import take_marked

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
