"""Recognise by wording whether a line introduces a paste, is the user's own, or is a stranger's order."""

from collections.abc import Sequence

from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes

_SOURCE = get_phrases("names-source")
_ONLY_SOURCE = get_phrases("only-names-source")
_HANDED = get_phrases("hands-over")
_OWN = get_phrases("own-again")
_STRANGER = get_phrases("stranger-order")
_SHOUTED = compile_late(r"(?<![\w./-])[A-ZÄÖÜÉÈÁÍÓÚÑÇ]{4,40}(?![\w./-])")
_COLON = (":", "\uff1a")
_ASKS = ("?", "\uff1f", "吗", "吗。", "呢", "か", "か。")
_INNER = compile_late(r"[^:\uff1a]{2,120}(?:: |\uff1a)(?=\s?\S)")
_WIDE = compile_late("[\u3040-\u30ff\u4e00-\u9fff]")
_LONGEST_LEAD = 160
_LONGEST_CLOSING = 320
_FEWEST_WORDS = 5
_FEWEST_WIDE = 10


def is_lead(line: str) -> bool:
    """Check whether a line introduces the text below it."""
    return line.rstrip().endswith(_COLON) and len(line) <= _LONGEST_LEAD


def names_source(line: str) -> bool:
    """Check whether a line says that the text below it is from somebody or something else."""
    plain = plain_apostrophes(line[-_LONGEST_LEAD:])
    if is_lead(line):
        return bool(_SOURCE.search(plain) or _ONLY_SOURCE.fullmatch(plain) or _HANDED.search(plain))
    return bool(_HANDED.search(plain))


def find_others_words(line: str) -> int:
    """Return where others' words begin on a line that also names their source; 0 if it names none."""
    found = _INNER.match(line)
    if found is None or not _SOURCE.search(plain_apostrophes(found[0].rstrip())):
        return 0
    rest = line[found.end() :].strip()
    if resumes_own_words(rest):
        return 0
    wide = sum(1 for _ in _WIDE.finditer(rest))
    return found.end() if len(rest.split()) >= _FEWEST_WORDS or wide >= _FEWEST_WIDE else 0


def is_stranger_order(text: str) -> bool:
    """Check whether the text gives orders the way strangers do: in capitals, or to whoever reads it."""
    return bool(_STRANGER.search(plain_apostrophes(text)) or _SHOUTED.search(text))


def has_stranger_order(lines: Sequence[str]) -> bool:
    """Check whether lines next to pasted ones are more likely a stranger's than the user's."""
    return any(is_stranger_order(line) and not line.rstrip().endswith(_ASKS) for line in lines)


def resumes_own_words(line: str) -> bool:
    """Check whether a line below pasted ones sounds like the user: a question or a typical order."""
    line = plain_apostrophes(line.strip())
    if not line or len(line) > _LONGEST_CLOSING or is_stranger_order(line):
        return False
    return line.endswith(_ASKS) or bool(_OWN.match(line))
