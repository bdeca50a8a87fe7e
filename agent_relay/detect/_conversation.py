"""Record who spoke last and what was said, and whether the agent goes on by itself at its limit's reset."""

from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta, tzinfo

from agent_relay.detect._limits import LimitFinding
from agent_relay.detect._resets import find_reset
from agent_relay.detect.screen_state import Notice
from agent_relay.domain.documents.record_matching import (
    compile_pattern,
    find_text,
    is_meant,
    iter_strings,
    squeeze,
)
from agent_relay.domain.documents.rules import ContinueRule, Feed, Progress, Rules
from agent_relay.domain.limits import Record, Source

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


# Its words are cut to the minute.
_SAME_RESET = timedelta(minutes=2)
# A screen is painted a moment after the record of the same event.
_REPAINT = timedelta(seconds=2)


class Continuation:
    """Track what one leg's agent last said of going on by itself.

    `at` is the reset after which it will go on by itself; `None` if it will not.
    """

    def __init__(self, rules: Rules, zone: tzinfo) -> None:
        self.at: datetime | None = None
        self._rules = rules.continues.rules
        self._feeds = tuple(feed for feed in rules.feeds if feed.source is not Source.SCREEN)
        self._zone = zone
        self._limit: datetime | None = None
        self._is_recorded = False
        self._heard_at: datetime | None = None

    def note_limit(self, finding: LimitFinding) -> None:
        """Note a limit whose exact reset is known: the agent waits for that reset."""
        if finding.exact and finding.resets_at is not None:
            self._limit = finding.resets_at
            if self.at is not None:
                self.at = self._find_exact(self.at)

    def hear(self, record: Record, means: AbstractSet[str], at: datetime) -> None:
        """Read a record newer than the leg; `means` is what it says of who spoke."""
        if not self._rules or (self._heard_at is not None and at < self._heard_at):
            return
        if means & {"answer", "continuation"}:
            self._settle(None, at)
        for feed in self._feeds:
            found = self._read(feed, record)
            if found is None:
                continue
            rule, said = found
            self._settle(self._find_moment(rule, said, at) if rule.means == "waits" else None, at)
            self._is_recorded = True

    def look(
        self, notices: Sequence[Notice], said: LegConversation, *, is_prompt_shown: bool, now: datetime
    ) -> None:
        """Read the notices of a settled screen; ignore words that were said in the conversation."""
        if not self._rules or self._is_stale(now):
            return
        for notice in notices:
            rule = self._find_rule(notice.feed, notice.text)
            if rule is not None and rule.means == "waits" and not said.contains(notice.text):
                if self.at is None:
                    self._is_recorded = False
                self.at = self._find_moment(rule, notice.text, now)
                return
        # Its records say when a wait that they told of is over.
        if is_prompt_shown and self.at is not None and not self._is_recorded:
            self.at = None

    def _is_stale(self, now: datetime) -> bool:
        """Return whether a record just ended the wait, which the screen may not show yet."""
        return self.at is None and self._heard_at is not None and now - self._heard_at < _REPAINT

    def _settle(self, waits_for: datetime | None, heard_at: datetime) -> None:
        """Believe a record; an older one that is read later then changes nothing."""
        self.at, self._heard_at = waits_for, heard_at

    def _read(self, feed: Feed, record: Record) -> tuple[ContinueRule, str] | None:
        if feed.source is not record.source or not is_meant(feed.where, record.data):
            return None
        text = find_text(record.data, feed.text)
        rule = self._find_rule(feed.name, text) if text is not None else None
        return (rule, text) if rule is not None and text is not None else None

    def _find_rule(self, feed: str, text: str) -> ContinueRule | None:
        words = squeeze(text)
        found = (rule for rule in self._rules if feed in rule.feeds)
        return next((rule for rule in found if compile_pattern(rule.pattern).search(words)), None)

    def _find_moment(self, rule: ContinueRule, text: str, at: datetime) -> datetime:
        """Return the reset the words name; if they name none, the known one, else `at`."""
        match = compile_pattern(rule.pattern).search(squeeze(text))
        for amount in rule.reset:
            value = match.groupdict().get(amount.group) if match is not None else None
            reset = find_reset(value, amount.forms, at=at, zone=self._zone) if value else None
            if reset is not None:
                return self._find_exact(reset)
        return self.at or self._limit or at

    def _find_exact(self, reset: datetime) -> datetime:
        exact = self._limit
        return exact if exact is not None and abs(exact - reset) <= _SAME_RESET else reset
