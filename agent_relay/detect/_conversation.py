"""Record who spoke last in a leg and what was said, so that a quoted notice does not act."""

from collections import deque

from agent_relay.domain.documents.record_matching import is_meant, iter_strings, squeeze
from agent_relay.domain.documents.rules import Progress
from agent_relay.domain.signal import Record, Source

_MOST_CHARACTERS = 512_000
_NEEDLE = 60
_MARKUP = str.maketrans("", "", "`*_")


class LegConversation:
    """The conversation so far, as far as a notice on the screen has to be checked against it."""

    def __init__(self, progress: tuple[Progress, ...]) -> None:
        self._progress = progress
        self._texts: deque[str] = deque()
        self._characters = 0
        self._unanswered = False
        self.heard = False

    def hear(self, record: Record) -> frozenset[str]:
        """Note the record; return what it means for the conversation (`Progress.means`)."""
        if record.source is Source.TRANSCRIPT:
            self.heard = True
            self.note(record)
        means = frozenset(
            rule.means
            for rule in self._progress
            if rule.source is record.source and is_meant(rule.where, record.data)
        )
        if "answer" in means:
            self._unanswered = False
        elif means & {"prompt", "continuation"}:
            self._unanswered = True
        return means

    def is_unanswered(self) -> bool:
        """Return whether the newest prompt has no answer yet."""
        return self._unanswered

    def contains(self, words: str) -> bool:
        """Return whether anybody (user, agent, tool) said these words, markup and wrapping aside."""
        needle = squeeze(words.translate(_MARKUP))[:_NEEDLE]
        return any(needle in text for text in self._texts)

    def note(self, record: Record) -> None:
        """Remember the record's words; forget the oldest beyond half a megabyte."""
        for string in iter_strings(record.data):
            text = squeeze(string.translate(_MARKUP))
            self._texts.append(text)
            self._characters += len(text)
        while self._characters > _MOST_CHARACTERS and len(self._texts) > 1:
            self._characters -= len(self._texts.popleft())
