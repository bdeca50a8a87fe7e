"""Whether an agent's records tell that it took what relay typed into it."""

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING

from agent_relay.domain.signal import Record, Source
from agent_relay.logic.detector.records import find_text, find_value, is_meant, iter_strings, open_envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.domain.rules import Progress

_LENGTH = 120
"""So many letters and digits are compared: agents do what they like to white space, marks and the rest."""
_SURE = 24
"""From so many on the words are nobody else's, in whichever record they stand."""
_KEPT = 32
_KEPT_LENGTH = 2000


class RelayPrompt:
    """What relay gives one leg, and whether a record was heard that has it.

    A prompt of somebody else's is no sign that the agent took ours, and neither is work. `tells_words` is
    whether records that tell of a prompt say where its words stand.
    """

    def __init__(self, *, tells_words: bool) -> None:
        self.is_heard = False
        self._tells_words = tells_words
        self._marks: tuple[str, ...] = ()
        self._prompts: deque[str] = deque(maxlen=_KEPT)

    @property
    def is_comparable(self) -> bool:
        """Whether records could tell of the text at all: it may be too short to be known by its words."""
        return any(self._tells_words or len(mark) >= _SURE for mark in self._marks)

    def expect(self, *texts: str) -> None:
        """From now on `texts`, each of which names what is given; prompts heard before are compared, too."""
        self._marks = tuple(mark for mark in (_mark(text) for text in texts) if mark)
        self.is_heard = any(mark in prompt for prompt in self._prompts for mark in self._marks)

    def hear(self, data: object) -> None:
        """A record of this leg: whether the words stand in it, whatever it tells of."""
        sure = [mark for mark in self._marks if len(mark) >= _SURE]
        if sure and not self.is_heard:
            texts = (_squeeze(text) for text in iter_strings(data))
            self.is_heard = any(mark in text for text in texts for mark in sure)

    def hear_prompt(self, words: str) -> None:
        """The agent took a prompt of these words, whosever they are."""
        text = _squeeze(words)
        self._prompts.append(_cut(text))
        self.is_heard = self.is_heard or any(mark in text for mark in self._marks)


def hear_record(own: RelayPrompt, signs: "Sequence[Progress]", record: Record, *, since: datetime) -> None:
    """Have `own` hear a record of its leg, which began at `since`; `signs` tell which records are prompts.

    What an event stream says without a time it says now; another record without one may be of any time.
    """
    is_now = record.at is None and record.source is Source.EVENT
    if not is_now and (record.at is None or record.at < since):
        return
    data = open_envelope(record).data
    own.hear(data)
    for sign in signs:
        if sign.source is record.source and sign.text and is_meant(sign.where, data):
            words = find_value(data, sign.text)
            own.hear_prompt(words if isinstance(words, str) else find_text(data, sign.text) or "")


def _squeeze(text: str) -> str:
    """The letters and digits of `text`."""
    return "".join(filter(str.isalnum, text))


def _mark(text: str) -> str:
    """What is looked for of `text`, which may be long."""
    return _squeeze(text[: 4 * _LENGTH])[:_LENGTH]


def _cut(text: str) -> str:
    """The two ends of a prompt: a packet stands above the words that are compared."""
    return text if len(text) <= 2 * _KEPT_LENGTH else f"{text[:_KEPT_LENGTH]} {text[-_KEPT_LENGTH:]}"
