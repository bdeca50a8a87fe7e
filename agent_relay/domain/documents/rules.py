"""The model of an adapter's `rules.toml`: what an agent's screens and records mean, as data.

Rules may hold for some versions of the agent only.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, TypeVar

from msgspec import Meta, field

from agent_relay.domain.documents.handwritten import MistakeError, Strict
from agent_relay.domain.limits import Kind, Scope, Source
from agent_relay.domain.names import is_within
from agent_relay.domain.values import replace


class VersionRange(Strict, frozen=True):
    """Versions of the agent from `from` on and before `before`; either may be left out."""

    from_version: str = field(default="", name="from")
    before: str = ""

    def contains(self, version: str) -> bool:
        """Return whether a known version is one of these."""
        return is_within(version, start=self.from_version, before=self.before)

    def may_contain(self, version: str) -> bool:
        """Return whether it is one of these, or may be: an empty version is unknown."""
        return not version or self.contains(version)


ScreenState = Literal["starting", "ready", "busy", "asking"]
ResetForm = Literal["clock", "date-clock", "epoch", "epoch-ms", "duration", "seconds", "milliseconds", "iso"]
"""A moment: at a clock, on a date at a clock, since 1970 in seconds or milliseconds, or as ISO 8601 has it.

A span: in words with units, or as a bare number of seconds or milliseconds.
"""
Plain = str | int | bool
_Ranged = TypeVar("_Ranged", bound=VersionRange)


Pattern = str
"""A regular expression. Whoever loads one that somebody else wrote has to try whether it can be compiled."""


class Where(Strict, frozen=True):
    """Condition that selects structured records.

    Paths step through objects and lists by `/` (`error/data/statusCode`, `content/0/text`); a key may
    hold dots. `equals` compares values, `matches` searches a pattern in the value as text, `absent`
    names paths that must not be there or be null, and `present` paths that must have a value.
    """

    equals: dict[str, Plain] = field(default_factory=dict)
    matches: dict[str, Pattern] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    present: tuple[str, ...] = ()


class Near(Strict, frozen=True):
    """A row that must stand within `rows` rows of another one."""

    pattern: Pattern
    rows: Annotated[int, Meta(ge=1, le=60)]


class ScreenPlace(Strict, frozen=True):
    """Place of an agent's own notices on the screen, which tells them from its prose.

    `starts` opens the notice's first row; up to `join` rows below it, until an empty one or one that
    `stops`, are its wrapped continuation and are joined by one space each. `colour` (any of
    `rgb:rrggbb`, `palette:n`) is the foreground of the row's first letter or digit. `blanks` are
    characters painted over gaps. The row right above matches `above`; `followed` rows come below;
    nothing below matches `unless_below`. `under` is a row whose last match the notice stands below.
    """

    starts: Pattern
    stops: Pattern = ""
    join: Annotated[int, Meta(ge=1, le=12)] = 1
    colour: tuple[str, ...] = ()
    blanks: str = ""
    above: Pattern = ""
    followed: tuple[Near, ...] = ()
    unless_below: Pattern = ""
    under: Near | None = None


class Feed(VersionRange, frozen=True, kw_only=True):
    """A stream of an agent's own words that limit rules read.

    Structured feeds take the value at `text` of records that satisfy `where` (the whole record, as
    compact JSON, where `text` is `.`). Screen feeds take what stands at `place`.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*\Z")]
    source: Source
    where: Where = Where()
    text: str = ""
    place: ScreenPlace | None = None

    def __post_init__(self) -> None:
        """Check that it has a place exactly if it is of the screen. Raise MistakeError."""
        if (self.place is None) == (self.source is Source.SCREEN):
            raise MistakeError(f"feed {self.name}: a screen feed has a place, any other has a text")


class Amount(Strict, frozen=True):
    """A moment or a span found in the text (`group` of the pattern) or the record (`field`)."""

    forms: Annotated[tuple[ResetForm, ...], Meta(min_length=1)]
    group: str = ""
    field: str = ""


class LimitRule(VersionRange, frozen=True, kw_only=True):
    """One pattern over the texts of its feeds, with what it means.

    Rules are tried in order and the first that matches a text speaks for it. A group named `model`
    names the limited model. `where` narrows structured records further. `reset` says how the end is
    found; `window` names a usage window (`*` any) whose exact reset replaces one that is coarse or
    missing. `wait` is the pause the agent has planned: when it is longer than the user's patience, the
    kind becomes `silent-limit` with scope `long_scope`. `stuck_scope` is the scope of retries that go
    on for longer than that without progress (absent: they may go on). `corroborate` lets a screen
    notice act where a transcript is at hand: `unanswered` when the newest prompt has no answer and the
    notice's words were never said by anyone, `unsaid` when only the latter. A retry's notice then counts
    for as long as it stands. `seen` is the other way round: a record that acts only if the screen showed
    a limit of the same scope.
    """

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*\Z")]
    feeds: Annotated[tuple[str, ...], Meta(min_length=1)]
    pattern: Pattern
    where: Where = Where()
    kind: Kind
    scope: Scope
    acts: bool = True
    reset: tuple[Amount, ...] = ()
    window: str = ""
    wait: Amount | None = None
    long_scope: Scope | None = None
    stuck_scope: Scope | None = None
    corroborate: Literal["", "unanswered", "unsaid", "seen"] = ""
    accepts: Annotated[tuple[str, ...], Meta(min_length=1)]
    rejects: Annotated[tuple[str, ...], Meta(min_length=1)]


class Progress(VersionRange, frozen=True, kw_only=True):
    """Records that say who spoke: the user (`prompt`), the agent (`answer`), or that a retry healed.

    A `continuation` is a prompt that the agent gave itself once a limit had reset: nobody's words. `text` is
    where the words of a prompt stand, as a path of `Where`; empty where the record has none. `talk` names the
    conversation they are said in, where the agent has several: a `SideTalk` is none of the user's.
    """

    source: Source
    where: Where
    means: Literal["prompt", "answer", "healed", "continuation"]
    text: str = ""
    talk: str = ""


class ContinueRule(VersionRange, frozen=True, kw_only=True):
    """Words by which an agent says that it will go on by itself at a limit's reset, or will not.

    The one `means` `waits`, the other `over`; `reset` is the moment, where the words name it.
    """

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*\Z")]
    feeds: Annotated[tuple[str, ...], Meta(min_length=1)]
    pattern: Pattern
    means: Literal["waits", "over"]
    reset: tuple[Amount, ...] = ()
    accepts: Annotated[tuple[str, ...], Meta(min_length=1)]
    rejects: Annotated[tuple[str, ...], Meta(min_length=1)]


class AutoContinue(Strict, frozen=True):
    """Announcement by an agent that it will go on by itself at a limit's reset.

    `cancel` are the keys that keep it from doing so.
    """

    cancel: str = ""
    rules: tuple[ContinueRule, ...] = ()


class UsageWindow(Strict, frozen=True, kw_only=True):
    """A structured reading of a usage window: how much is used, of `full`, and when it starts anew.

    A record that only says that the window is used up has no share at `used`: it tells `tells_percent`. A
    reading of at least `near_percent` is a near limit unless the user sets another share (0: never). People
    know a window by how long it is: `lasts_minutes`, or the number at `minutes` where the record has one. A
    window of one model is that of `of_model`, or of the model the record names at `model`; a record without
    a name there tells of the whole account.
    """

    name: str
    source: Source
    where: Where = Where()
    used: str = ""
    tells_percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    reset: str
    model: str = ""
    of_model: str = ""
    forms: tuple[ResetForm, ...] = ("epoch",)
    full: Annotated[float, Meta(gt=0)] = 100
    near_percent: Annotated[float, Meta(ge=0, le=100)] = 0
    lasts_minutes: Annotated[int, Meta(ge=0)] = 0
    minutes: str = ""

    def __post_init__(self) -> None:
        """Check that it tells one share. Raise MistakeError."""
        if bool(self.used) == (self.tells_percent is not None):
            raise MistakeError(f"window {self.name} has either `used` or `tells_percent`")


class ContextRule(Strict, frozen=True, kw_only=True):
    """A record that says how many tokens the agent's conversation holds.

    They are the sum of the numbers at `used` (a path that leads nowhere counts nothing; one must lead
    somewhere). `window` is the path of the model's whole window where the record has it, `model` the paths of
    the parts of the model's name, joined by `/`. `talk` names the conversation, where an agent has several.
    """

    source: Source
    where: Where = Where()
    used: Annotated[tuple[str, ...], Meta(min_length=1)]
    window: str = ""
    model: tuple[str, ...] = ()
    talk: str = ""


class ModelWindows(Strict, frozen=True, kw_only=True):
    """Records that list models: each entry at `models` (`*` steps into every value) has a name and a window.

    What the agent keeps free for its answer stands at `reserve`; of that no more than `most_reserve` counts.
    """

    source: Source
    where: Where = Where()
    models: str
    name: Annotated[tuple[str, ...], Meta(min_length=1)]
    window: str
    reserve: str = ""
    most_reserve: Annotated[int, Meta(ge=0)] = 0


class KnownWindow(Strict, frozen=True):
    """The window in tokens of models whose name a pattern is found in, where no record says it."""

    pattern: Pattern
    window: Annotated[int, Meta(gt=0)]


class SideTalk(Strict, frozen=True, kw_only=True):
    """Records that say that a conversation is another agent's than the one the user talks to."""

    source: Source
    where: Where
    talk: str


class ContextRules(Strict, frozen=True):
    """Rules for how full the agent's context is, by its own records.

    An agent compacts by itself before its window is full: `usable_percent` of the window less
    `reserve_tokens` is the room it has.
    """

    readings: tuple[ContextRule, ...] = ()
    models: tuple[ModelWindows, ...] = ()
    known: tuple[KnownWindow, ...] = ()
    sides: tuple[SideTalk, ...] = ()
    usable_percent: Annotated[float, Meta(gt=0, le=100)] = 100
    reserve_tokens: Annotated[int, Meta(ge=0)] = 0


class StateRule(VersionRange, frozen=True, kw_only=True):
    """One sign of what the agent is doing; the first that matches wins.

    `source` is where the pattern is searched: the screen (its last `rows` rows with text, 0 for all),
    the window title, the state the agent announces in band, or a state-file record (`where`). With
    `announced` it is no sign of a new leg that has announced no state yet: one agent paints its prompt
    before it asks whether the folder may be trusted.
    """

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*\Z")]
    state: ScreenState
    source: Literal["screen", "title", "terminal", "state-file"] = "screen"
    pattern: Pattern = ""
    where: Where = Where()
    rows: Annotated[int, Meta(ge=0, le=60)] = 0
    unless: Pattern = ""
    announced: bool = False
    accepts: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()


class InputLine(Strict, frozen=True):
    """The row people type into: `row` captures what stands in it as group `typed`.

    It is the last row that matches; with an `anchor`, it is every matching row right above the last row
    that matches the anchor, at most `rows` of them. Typed text that matches `hint` whole, or stands in
    one of the `hint_colours`, is a placeholder and counts as empty.
    """

    row: Pattern
    anchor: Pattern = ""
    rows: Annotated[int, Meta(ge=1, le=40)] = 1
    hint: Pattern = ""
    hint_colours: tuple[str, ...] = ()


class Rules(Strict, frozen=True):
    """All rules of one agent.

    Feeds, rules, states and progress may have a range of versions they hold for (`from`, `before`).
    """

    states: tuple[StateRule, ...] = ()
    input: InputLine | None = None
    feeds: tuple[Feed, ...] = ()
    limits: tuple[LimitRule, ...] = ()
    progress: tuple[Progress, ...] = ()
    windows: tuple[UsageWindow, ...] = ()
    context: ContextRules = ContextRules()
    continues: AutoContinue = AutoContinue()

    @classmethod
    def parse(cls, tables: Mapping[str, object]) -> Self:
        """Return the rules in `tables`. Raise MistakeError, also if a feed of a rule is not there."""
        continues = tables.get("continues")
        if isinstance(continues, Mapping):
            # It never had an effect; adapters of users may still set it.
            tables = {**tables, "continues": {key: continues[key] for key in continues if key != "late_s"}}
        rules = super().parse(tables)
        _check_names(rules)
        return rules

    def fit(self, version: str) -> "Rules":
        """Return the rules that hold for this version of the agent; all of them if it is unknown."""

        def keep(rules: Sequence[_Ranged]) -> tuple[_Ranged, ...]:
            return tuple(rule for rule in rules if rule.may_contain(version))

        return replace(
            self,
            states=keep(self.states),
            feeds=keep(self.feeds),
            limits=keep(self.limits),
            progress=keep(self.progress),
            continues=replace(self.continues, rules=keep(self.continues.rules)),
        )

    def is_structured(self) -> bool:
        """Return whether any limit can be read from something other than the screen."""
        structured = {feed.name for feed in self.feeds if feed.source is not Source.SCREEN}
        return any(structured & set(rule.feeds) for rule in self.limits)


def _check_names(rules: Rules) -> None:
    feeds = {feed.name for feed in rules.feeds}
    _check_feeds(feeds, "limit", rules.limits)
    _check_feeds(feeds, "continues", rules.continues.rules)
    for kind, names in (
        ("feed", [feed.name for feed in rules.feeds]),
        ("limit", [rule.id for rule in rules.limits]),
        ("state", [rule.id for rule in rules.states]),
        ("continues", [rule.id for rule in rules.continues.rules]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise MistakeError(f"{kind} {', '.join(twice)} is there twice")


def _check_feeds(feeds: set[str], kind: str, rules: Sequence[LimitRule | ContinueRule]) -> None:
    for rule in rules:
        unknown = sorted(set(rule.feeds) - feeds)
        if unknown:
            raise MistakeError(f"{kind} {rule.id}: no feed is named {', '.join(unknown)}")
