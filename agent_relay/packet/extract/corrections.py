"""Find which of the user's prompts correct an earlier one, by words that only the two of them share."""

from collections import Counter
from collections.abc import Sequence

from agent_relay.domain.facts import Message
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.edit_history import Ending
from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes

_CORRECTS = get_phrases("corrects")
_RETRACTION = get_phrases("retraction")
_WORD = compile_late(r"[^\W_]{3,}")
_WIDE = compile_late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
# So much is shared of what stands in no third prompt; two signs of a script without blanks are half a word.
_SHARED = 4
_WORD_COUNTS = 2
_BOTH = 2
_LONGEST = 4000


def find_corrections(prompts: Sequence[Message]) -> list[Ending]:
    """Find the prompts that a later one corrects, each with the last that does."""
    terms = [_list_terms(said.text) for said in prompts]
    counts = Counter(term for found in terms for term in found)
    rare = [{term for term in found if counts[term] == _BOTH} for found in terms]
    corrected: dict[int, Ending] = {}
    for at, said in enumerate(prompts):
        plain = plain_apostrophes(said.text[:_LONGEST])
        if not (_CORRECTS.search(plain) or _RETRACTION.search(plain)):
            continue
        shared = [(sum(map(_weigh, rare[at] & rare[before])), before) for before in range(at)]
        most, earlier = max(shared, default=(0, 0))
        if most >= _SHARED:
            turn = prompts[earlier].turn
            corrected[turn] = Ending(turn, said.turn, "corrected")
    return list(corrected.values())


def _weigh(term: str) -> int:
    return 1 if _WIDE.search(term) else _WORD_COUNTS


def _list_terms(text: str) -> set[str]:
    folded = text[:_LONGEST].casefold()
    words = {word for word in _WORD.findall(folded) if not _WIDE.search(word)}
    pairs = {run[at : at + 2] for run in _WIDE.findall(folded) for at in range(len(run) - 1)}
    return words | pairs
