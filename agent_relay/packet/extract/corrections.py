"""Find which of the user's prompts correct an earlier one, where no edit shows it: by the rare words they share."""

from collections import Counter
from collections.abc import Sequence

from agent_relay.domain.facts import Message
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes

_CORRECTS = get_phrases("corrects")
_RETRACTION = get_phrases("retraction")
_WORD = compile_late(r"[^\W_]{3,}")
_WIDE = compile_late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
# Of so many prompts at most a word may stand in, and so many such words are shared.
_RARE = 3
_SHARED = 2
_LONGEST = 4000


def find_corrections(prompts: Sequence[Message]) -> dict[int, int]:
    """Return, by the turn of a prompt, the turn of the last prompt that corrects it."""
    terms = [_list_terms(said.text) for said in prompts]
    counts = Counter(term for found in terms for term in found)
    rare = [{term for term in found if counts[term] <= _RARE} for found in terms]
    corrected: dict[int, int] = {}
    for at, said in enumerate(prompts):
        plain = plain_apostrophes(said.text[:_LONGEST])
        if not (_CORRECTS.search(plain) or _RETRACTION.search(plain)):
            continue
        shared = [(len(rare[at] & rare[before]), before) for before in range(at)]
        most, earlier = max(shared, default=(0, 0))
        if most >= _SHARED:
            corrected[prompts[earlier].turn] = said.turn
    return corrected


def _list_terms(text: str) -> set[str]:
    folded = text[:_LONGEST].casefold()
    words = {word for word in _WORD.findall(folded) if not _WIDE.search(word)}
    pairs = {run[at : at + 2] for run in _WIDE.findall(folded) for at in range(len(run) - 1)}
    return words | pairs
