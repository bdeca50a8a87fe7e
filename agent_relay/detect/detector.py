"""Detect signals in one leg: trust records newer than the leg, and screens only as far as rules allow."""

from datetime import datetime, timedelta, tzinfo

import msgspec

from agent_relay.detect._conversation import Continuation, LegConversation
from agent_relay.detect._limits import LimitFinding, LimitReader, ReportedSignals
from agent_relay.detect.reported_usage import UsageWindows
from agent_relay.detect.screen_state import find_notices, read_input
from agent_relay.detect.window_tracks import NearLimit, WindowReading
from agent_relay.domain.documents.record_matching import find_text, is_meant, open_envelope
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.limits import (
    DATED,
    NEAR_BY_ADAPTER,
    Evidence,
    Kind,
    NearLimitWishes,
    Record,
    Scope,
    Signal,
    Source,
)
from agent_relay.domain.screen import Screen
from agent_relay.domain.text.names import describe_window
from agent_relay.domain.values import AgentName, ClockJump, Start, replace, start_at

# A notice that acts must outlast one repaint: the transcript may be written a moment after the screen.
HOLD_S = 2.0
# A retry's row is away while the screen is painted anew; once a retry has healed, it stays away.
_REPAINT = timedelta(seconds=2)
_LIMITS = frozenset({Kind.LIMIT, Kind.SILENT_LIMIT})


class _Streak(msgspec.Struct, frozen=True):
    """Retries that go on: when the first was heard of, when it was said, and what the newest said.

    One that is heard of late counts from then: the machine may have slept in between. `shown` is when the
    screen showed it last (`None` if a record reported it) and `stands` whether the newest screen does.
    """

    heard: Start
    said: Start
    finding: LimitFinding
    scope: Scope
    where: str
    shown: Start | None = None
    stands: bool = True


class _Held(msgspec.Struct, frozen=True):
    """A screen notice that may act once it was shown long enough; `spent` when it did."""

    since: Start
    finding: LimitFinding
    where: str
    at_offset: int
    spent: bool = False


class _Unseen(msgspec.Struct, frozen=True):
    """A record that acts only once the screen has shown its limit."""

    finding: LimitFinding
    record: Record


class Detector:
    """Turns what one leg shows and writes into signals, by the rules of its agent's adapter.

    `started_at` (aware) is the leg's start: older records are history. `zone` is the zone the agent
    prints times in. `patience_s` is how long a planned or a fruitless wait may be. `trusts_screen`
    says that no structured source could be opened, so that the screen's notices decide alone.
    `hold_s` is how long a corroborated notice must be shown before it acts; `near` says when a usage window
    is near its limit.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        agent: AgentName,
        started_at: datetime,
        zone: tzinfo,
        patience_s: float = 300.0,
        trusts_screen: bool = False,
        hold_s: float = HOLD_S,
        near: NearLimitWishes = NEAR_BY_ADAPTER,
    ) -> None:
        self._rules = rules
        self._feeds = rules.feeds
        self._agent = agent
        self._started = start_at(started_at)
        self._hold = timedelta(seconds=hold_s)
        self._patience = timedelta(seconds=patience_s)
        self._reader = LimitReader(rules.limits, zone, self._patience)
        self._trusts_screen = trusts_screen or not rules.is_structured()
        self._screen_feeds = tuple(feed for feed in rules.feeds if feed.source is Source.SCREEN)
        self._said = LegConversation(rules.progress)
        self._windows = UsageWindows(rules.windows, zone, near)
        self._continuation = Continuation(rules, zone)
        self._reported = ReportedSignals()
        self._streak: _Streak | None = None
        self._held: dict[str, _Held] = {}
        self._unseen: _Unseen | None = None
        self._decided: Start | None = None

    @property
    def windows(self) -> tuple[WindowReading, ...]:
        """The agent's last report of each of its usage windows."""
        return self._windows.newest

    @property
    def continues_at(self) -> datetime | None:
        """The reset after which the agent says it will go on by itself; `None` if it will not.

        `Rules.continues.cancel` are the keys that stop it.
        """
        return self._continuation.at

    def shift(self, jump: ClockJump) -> None:
        """Adjust all noted times to a jump of the wall clock, so that they compare with later ones."""
        self._started = self._started.after(jump)
        self._held = {key: replace(held, since=held.since.after(jump)) for key, held in self._held.items()}
        streak, decided = self._streak, self._decided
        if streak is not None:
            said = streak.said.after(jump)
            shown = streak.shown.after(jump) if streak.shown is not None else None
            self._streak = replace(streak, heard=streak.heard.after(jump), said=said, shown=shown)
        self._decided = decided.after(jump) if decided is not None else None

    def look(self, screen: Screen, *, now: datetime, at_offset: int) -> tuple[Signal, ...]:
        """Return what a settled screen says. `at_offset` is where in the leg's output (bytes) it appeared."""
        signals: list[Signal] = []
        held: dict[str, _Held] = {}
        self._mark_unshown(now)
        notices = find_notices(self._screen_feeds, screen)
        is_prompt_shown = read_input(self._rules, screen) != "hidden"
        self._continuation.look(notices, self._said, is_prompt_shown=is_prompt_shown, now=now)
        for notice in notices:
            finding = self._reader.read(notice.text, notice.feed, at=now)
            if finding is None:
                continue
            where = f"row {notice.row + 1}"
            if finding.rule.corroborate and finding.kind is not Kind.RETRY:
                key = f"{finding.rule.id} {finding.model}"
                before = self._held.get(key)
                since, spent = (before.since, before.spent) if before is not None else (start_at(now), False)
                held[key] = _Held(since, finding, where, at_offset, spent=spent)
            if self._trusts_screen or self._may_count(finding):
                self._note_retry(finding, now, now, where, is_shown=True)
            signals += self._emit(finding, Source.SCREEN, where, now, at_offset=at_offset)
            signals += self._confirm(finding, now)
        self._held = held
        return (*signals, *self.tick(now=now))

    def hear(self, record: Record, *, now: datetime) -> tuple[Signal, ...]:
        """Return what a record says, if it is newer than the leg."""
        at = record.at or (None if record.source in DATED else now)
        if at is None or at < self._started.at:
            return ()
        record = open_envelope(record)
        means = self._said.hear(record)
        self._windows.hear_work(min(at, now), means, now)
        signals = self._hear_windows(record, min(at, now), now)
        self._continuation.hear(record, means, at)
        if means:
            # What was first seen later than this was said is as good as if this had been heard in time.
            self._held = {key: held for key, held in self._held.items() if held.since.at > at}
            if self._streak is not None and at >= self._streak.said.at:
                self._streak = None
        if "answer" in means and (self._decided is None or at > self._decided.at):
            self._reported.close()
        for feed in self._feeds:
            if feed.source is not record.source or not is_meant(feed.where, record.data):
                continue
            text = find_text(record.data, feed.text)
            if text is None:
                continue
            finding = self._reader.read(text, feed.name, at=at, record=record)
            if finding is None:
                continue
            self._continuation.note_limit(finding)
            if finding.rule.corroborate == "seen" and not self._reported.has_reported(finding):
                self._unseen = _Unseen(finding, record)
                break
            self._note_retry(finding, at, now, record.where)
            signals += self._emit(finding, record.source, record.where, at)
            break
        return (*signals, *self.tick(now=now))

    def recall(self, record: Record) -> None:
        """Note the words of a conversation that is known in full, before it is played again."""
        if record.source is Source.TRANSCRIPT and record.at is not None and record.at >= self._started.at:
            self._said.note(record)

    def tick(self, *, now: datetime) -> tuple[Signal, ...]:
        """Return what the passing of time says: retries without end, notices shown long enough."""
        signals: list[Signal] = []
        streak = self._streak
        if streak is not None and streak.stands and streak.heard.get_elapsed(now) >= self._patience:
            self._streak = None
            finding = replace(streak.finding, kind=Kind.SILENT_LIMIT, scope=streak.scope, resets_at=None)
            signals += self._emit(finding, Source.CLOCK, streak.where, now)
        for key, held in self._held.items():
            if self._may_act(held) and held.since.get_elapsed(now) >= self._hold:
                self._held[key] = replace(held, spent=True)
                signals += self._emit(
                    held.finding, Source.SCREEN, held.where, now, at_offset=held.at_offset, corroborated=True
                )
        return tuple(signals)

    def take_relief(self) -> bool:
        """Return whether a window has left its limit since this was last asked, and none is near one."""
        return self._windows.take_relief()

    def wakes_at(self) -> datetime | None:
        """Return when `tick` may have something new to say, or `None`."""
        streak = self._streak
        moments = [streak.heard.counts_from + self._patience] if streak is not None and streak.stands else []
        moments += [
            held.since.counts_from + self._hold for held in self._held.values() if self._may_act(held)
        ]
        return min(moments, default=None)

    def _hear_windows(self, record: Record, at: datetime, now: datetime) -> list[Signal]:
        signals: list[Signal] = []
        readings = self._windows.hear(record, at, now)
        for found in self._windows.list_near():
            signals += self._reported.admit(self._near(found, record), exact=True)
        if readings:
            for signal, name in self._reported.iterate_coarse():
                exact = self._windows.find_exact(name, signal.resets_at, at, model=signal.model)
                if exact is not None:
                    signals += self._reported.admit(replace(signal, resets_at=exact), exact=True, window=name)
        return signals

    def _near(self, found: NearLimit, record: Record) -> Signal:
        reading = found.reading
        known = describe_window(reading.window.name, reading.minutes)
        words = f"{reading.used:g} % of its {known}{f' for {reading.model}' if reading.model else ''} is used"
        if found.why == "rate":
            words += ", and this turn may use up the rest"
        return Signal(
            self._agent,
            Kind.NEAR_LIMIT,
            Scope.WARNING,
            Evidence(record.source, words, record.where),
            decides=True,
            resets_at=reading.resets_at,
            rule=reading.window.name,
            model=reading.model,
        )

    def _confirm(self, finding: LimitFinding, now: datetime) -> tuple[Signal, ...]:
        """Report a record that waited for the screen to show its limit, now that it does."""
        unseen = self._unseen
        if unseen is None or (unseen.finding.kind, unseen.finding.scope) != (finding.kind, finding.scope):
            return ()
        self._unseen = None
        return self._emit(unseen.finding, unseen.record.source, unseen.record.where, now)

    def _note_retry(
        self, finding: LimitFinding, at: datetime, now: datetime, where: str, *, is_shown: bool = False
    ) -> None:
        stuck = finding.rule.stuck_scope
        if finding.kind in _LIMITS:
            self._streak = None
        elif finding.kind is Kind.RETRY and stuck is not None:
            heard, said = start_at(now), start_at(at)
            if self._streak is not None:
                heard, said = self._streak.heard, self._streak.said
                is_shown = is_shown and self._streak.shown is not None
            self._streak = _Streak(heard, said, finding, stuck, where, start_at(now) if is_shown else None)

    def _mark_unshown(self, now: datetime) -> None:
        """Mark the retries as not shown until the new screen shows them; forget them if they stay away."""
        streak = self._streak
        if streak is not None and streak.shown is not None:
            is_over = not streak.stands and streak.shown.get_elapsed(now) >= _REPAINT
            self._streak = None if is_over else replace(streak, stands=False)

    def _may_act(self, held: _Held) -> bool:
        """Return whether the notice may act and has not done so yet."""
        return not held.spent and self._is_agreed(held.finding)

    def _may_count(self, finding: LimitFinding) -> bool:
        """Return whether it is a retry for which the screen counts even beside a transcript."""
        return finding.kind is Kind.RETRY and bool(finding.rule.corroborate) and self._is_agreed(finding)

    def _is_agreed(self, finding: LimitFinding) -> bool:
        """Return whether the conversation agrees that a notice on the screen is the agent's own."""
        if not self._said.heard or self._said.contains(finding.words):
            return False
        return finding.rule.corroborate == "unsaid" or self._said.is_unanswered()

    def _emit(
        self,
        finding: LimitFinding,
        source: Source,
        where: str,
        at: datetime,
        *,
        at_offset: int | None = None,
        corroborated: bool = False,
    ) -> tuple[Signal, ...]:
        rule = finding.rule
        believed = source is not Source.SCREEN or self._trusts_screen or corroborated
        resets_at, exact = finding.resets_at, finding.exact
        if rule.window and finding.kind in _LIMITS and not exact:
            refined = self._windows.find_exact(rule.window, resets_at, at, model=finding.model)
            resets_at, exact = refined or resets_at, refined is not None
        signal = Signal(
            self._agent,
            finding.kind,
            finding.scope,
            Evidence(source, finding.quote, where),
            decides=believed and rule.acts and finding.kind is not Kind.RETRY,
            resets_at=resets_at,
            at_offset=at_offset,
            rule=rule.id,
            model=finding.model,
        )
        if signal.decides and signal.kind in _LIMITS:
            known = self._decided
            self._decided = known if known is not None and known.at > at else start_at(at)
        return self._reported.admit(signal, exact=exact, window=rule.window)
