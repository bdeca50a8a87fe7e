from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.ids import AgentName
from agent_relay.domain.rules import Rules
from agent_relay.domain.signal import Record, Signal, Source
from agent_relay.logic.detector import Detector
from agent_relay.logic.screen import Row, Screen

START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SAYS = {"accepts": ["x"], "rejects": ["y"]}
RULES = Rules.model_validate(
    {
        "feeds": [
            {"name": "hook", "source": "hook", "where": {"equals": {"event": "fail"}}, "text": "text"},
            {"name": "row", "source": "transcript", "where": {"equals": {"type": "error"}}, "text": "text"},
            {"name": "event", "source": "event", "text": "text"},
            {"name": "screen", "source": "screen", "place": {"starts": "^! "}},
            {"name": "odd", "source": "screen", "place": {"starts": r"^\? "}},
        ],
        "limits": [
            {
                "id": "limit",
                "feeds": ["hook", "row", "screen"],
                "pattern": r"^limit reached(?: until (?P<reset>.+))?$",
                "kind": "limit",
                "scope": "account",
                "reset": [{"forms": ["clock"], "group": "reset"}],
                "window": "day",
                **SAYS,
            },
            {
                "id": "retry",
                "feeds": ["event", "screen"],
                "pattern": r"^retry(?: in (?P<wait>.+))?$",
                "kind": "retry",
                "scope": "transient",
                "wait": {"forms": ["duration"], "group": "wait"},
                "long_scope": "model",
                "stuck_scope": "account",
                **SAYS,
            },
            {
                "id": "away",
                "feeds": ["event"],
                "pattern": "^network$",
                "kind": "retry",
                "scope": "transient",
                **SAYS,
            },
            {
                "id": "dialog",
                "feeds": ["screen"],
                "pattern": "^choose a model$",
                "kind": "limit",
                "scope": "model",
                "corroborate": "unanswered",
                **SAYS,
            },
            {
                "id": "near",
                "feeds": ["screen"],
                "pattern": "^nearly there$",
                "kind": "near-limit",
                "scope": "warning",
                "corroborate": "unsaid",
                **SAYS,
            },
            {
                "id": "switched",
                "feeds": ["row"],
                "pattern": "^switched$",
                "kind": "limit",
                "scope": "model",
                "corroborate": "seen",
                **SAYS,
            },
        ],
        "progress": [
            {"source": "transcript", "means": "prompt", "where": {"equals": {"type": "user"}}},
            {"source": "transcript", "means": "answer", "where": {"equals": {"type": "agent"}}},
            {"source": "event", "means": "healed", "where": {"equals": {"type": "idle"}}},
        ],
        "windows": [
            {"name": "day", "source": "status-line", "used": "used", "reset": "reset", "near_percent": 90},
        ],
    }
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def build(*, trusts_screen: bool = False, rules: Rules = RULES) -> Detector:
    return Detector(
        rules, agent=AgentName("a"), started_at=START, zone=UTC, patience_s=300, trusts_screen=trusts_screen
    )


def row(seconds: float, kind: str, text: str) -> Record:
    return Record(Source.TRANSCRIPT, {"type": kind, "text": text}, at(seconds), "t")


def say(detector: Detector, seconds: float, kind: str, text: str) -> tuple[Signal, ...]:
    return detector.hear(row(seconds, kind, text), now=at(seconds))


def event(detector: Detector, seconds: float, text: str, kind: str = "") -> tuple[Signal, ...]:
    record = Record(Source.EVENT, {"type": kind, "text": text})
    return detector.hear(record, now=at(seconds))


def status(detector: Detector, seconds: float, used: object, reset: object) -> tuple[Signal, ...]:
    record = Record(Source.STATUS_LINE, {"used": used, "reset": reset})
    return detector.hear(record, now=at(seconds))


def look(detector: Detector, seconds: float, *rows: str) -> tuple[Signal, ...]:
    screen = Screen(tuple(Row(text) for text in rows), 80)
    return detector.look(screen, now=at(seconds), at_offset=int(seconds))


def render(signals: tuple[Signal, ...]) -> list[str]:
    return [
        f"{signal.kind} {signal.scope} {signal.resets_at.strftime('%H:%M:%S') if signal.resets_at else '-'}"
        f" {signal.evidence.source} {'acts' if signal.decides else 'no'}"
        for signal in signals
    ]


def test_a_structured_record_decides_alone() -> None:
    """The agent's own record of a failed turn needs no second witness."""
    found = say(build(), 5, "error", "limit reached until 9pm")
    assert render(found) == ["limit account 21:00:00 transcript acts"]
    assert found[0].rule == "limit"
    assert found[0].evidence.text == "limit reached until 9pm"
    assert found[0].evidence.where == "t"


def test_two_sources_of_one_limit_are_one_signal() -> None:
    """The hook and the transcript row tell the same story."""
    detector = build()
    hook = Record(Source.HOOK, {"event": "fail", "text": "limit reached until 9pm"})
    assert len(detector.hear(hook, now=at(5))) == 1
    assert say(detector, 5, "error", "limit reached until 9pm") == ()


@pytest.mark.parametrize("seconds", [-1, -86_400])
def test_records_older_than_the_leg_never_count(seconds: float) -> None:
    """Resumed and forked transcripts carry old limits along."""
    assert say(build(), seconds, "error", "limit reached") == ()


def test_a_transcript_row_without_a_time_is_no_evidence() -> None:
    """Nothing shows that it is new; a hook payload is new by being delivered."""
    detector = build()
    timeless = Record(Source.TRANSCRIPT, {"type": "error", "text": "limit reached"})
    assert detector.hear(timeless, now=at(5)) == ()
    hook = Record(Source.HOOK, {"event": "fail", "text": "limit reached"})
    assert render(detector.hear(hook, now=at(5))) == ["limit account - hook acts"]


def test_records_that_say_nothing_known_are_silent() -> None:
    """Other events, missing texts and unknown words pass by."""
    detector = build()
    assert say(detector, 1, "error", "something else") == ()
    assert detector.hear(Record(Source.HOOK, {"event": "fail"}), now=at(1)) == ()
    assert detector.hear(Record(Source.HOOK, {"event": "other"}), now=at(1)) == ()


def test_a_screen_never_decides_where_records_can() -> None:
    """An agent can forge its own limit row exactly; the next record says what is true."""
    detector = build()
    assert render(look(detector, 1, "! limit reached until 9pm")) == ["limit account 21:00:00 screen no"]
    assert look(detector, 2, "! limit reached until 9pm") == ()
    assert render(say(detector, 3, "error", "limit reached until 9pm")) == [
        "limit account 21:00:00 transcript acts"
    ]
    assert look(detector, 4, "! limit reached until 9pm") == ()


def test_a_screen_decides_where_nothing_else_can_be_read() -> None:
    """With no source opened, or for an agent that has none, its notices are all there is."""
    assert render(look(build(trusts_screen=True), 1, "! limit reached")) == ["limit account - screen acts"]
    bare = Rules.model_validate(
        {
            "feeds": [{"name": "screen", "source": "screen", "place": {"starts": "^! "}}],
            "limits": [
                {
                    "id": "l",
                    "feeds": ["screen"],
                    "pattern": "limit",
                    "kind": "limit",
                    "scope": "account",
                    "accepts": ["limit"],
                    "rejects": ["x"],
                }
            ],
        }
    )
    assert render(look(build(rules=bare), 1, "! limit")) == ["limit account - screen acts"]


def test_a_reset_that_comes_later_completes_a_limit() -> None:
    """Half a painted row has no reset yet."""
    detector = build()
    assert render(look(detector, 1, "! limit reached")) == ["limit account - screen no"]
    assert render(look(detector, 2, "! limit reached until 9pm")) == ["limit account 21:00:00 screen no"]
    assert look(detector, 3, "! limit reached") == ()


def test_the_same_limit_can_be_hit_again_after_an_answer() -> None:
    """Someone waited, worked on and ran into it once more."""
    detector = build()
    assert len(say(detector, 1, "error", "limit reached")) == 1
    assert say(detector, 2, "error", "limit reached") == ()
    say(detector, 3, "agent", "working again")
    assert look(detector, 3, "! limit reached") == ()
    assert render(say(detector, 4, "error", "limit reached")) == ["limit account - transcript acts"]


def test_a_planned_wait_longer_than_patience_is_a_silent_limit() -> None:
    """The agent says nothing to anybody and sleeps for hours."""
    detector = build()
    assert render(event(detector, 1, "retry in 10s")) == ["retry transient - event no"]
    assert render(event(detector, 2, "retry in 2h")) == ["silent-limit model 12:00:02 event acts"]
    assert detector.wakes_at() is None


def test_retries_without_progress_are_a_silent_limit_after_patience() -> None:
    """Short waits that never end are as good as a long one."""
    detector = build()
    assert detector.wakes_at() is None
    event(detector, 10, "retry in 10s")
    event(detector, 200, "retry in 20s")
    assert detector.wakes_at() == at(310)
    assert detector.tick(now=at(309)) == ()
    assert render(detector.tick(now=at(310))) == ["silent-limit account - clock acts"]
    assert detector.wakes_at() is None


@pytest.mark.parametrize("heals", ["agent", "user", "idle"])
def test_retries_that_heal_are_left_alone(heals: str) -> None:
    """An answer, a new prompt or an idle agent ends a series of retries."""
    detector = build()
    event(detector, 10, "retry in 10s")
    if heals == "idle":
        event(detector, 20, "", "idle")
    else:
        say(detector, 20, heals, "hello")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(1000)) == ()


def test_an_answer_older_than_the_retries_does_not_heal_them() -> None:
    """Some sources are written in batches, seconds late."""
    detector = build()
    event(detector, 10, "retry in 10s")
    detector.hear(row(5, "agent", "earlier"), now=at(20))
    assert detector.wakes_at() == at(310)


def test_a_network_that_is_away_is_no_limit() -> None:
    """However long it lasts: another agent has the same network."""
    detector = build()
    event(detector, 1, "network")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(10_000)) == ()


def test_retries_on_a_trusted_screen_count_too() -> None:
    """Without records the screen's retry row starts the clock."""
    detector = build(trusts_screen=True)
    look(detector, 1, "! retry in 5s")
    assert render(look(detector, 302, "! retry in 5s")) == ["silent-limit account - clock acts"]


def test_a_dialog_over_an_unanswered_prompt_acts_once_it_stands() -> None:
    """The transcript is silent, but nobody answered the prompt and nobody said the dialog's words."""
    detector = build()
    say(detector, 1, "user", "fix it")
    assert render(look(detector, 2, "! choose a model")) == ["limit model - screen no"]
    assert detector.wakes_at() == at(4)
    assert look(detector, 3, "! choose a model") == ()
    assert render(detector.tick(now=at(4))) == ["limit model - screen acts"]
    assert detector.wakes_at() is None
    assert detector.tick(now=at(9)) == ()


def test_a_dialog_that_goes_away_never_acts() -> None:
    """It was repainted, or somebody chose."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 2, "! choose a model")
    look(detector, 3, "nothing")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(9)) == ()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [("user", "fix it"), ("agent", "done")],
        [("user", "print `choose a\n model`")],
        [("user", "fix it"), ("tool", "! choose a model")],
    ],
)
def test_a_dialog_without_agreement_never_acts(rows: list[tuple[str, str]]) -> None:
    """No transcript, an answered prompt, or words that a user or a tool said."""
    detector = build()
    for index, (kind, text) in enumerate(rows):
        say(detector, index, kind, text)
    look(detector, 10, "! choose a model")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(20)) == ()


def test_words_said_later_in_a_known_conversation_count_before() -> None:
    """A replay knows the whole leg: what is said at its end is a quotation at its beginning too."""
    detector = build()
    detector.recall(row(50, "tool", "choose a model"))
    detector.recall(row(-50, "tool", "nearly there"))
    say(detector, 1, "user", "fix it")
    look(detector, 2, "! choose a model", "! nearly there")
    assert render(detector.tick(now=at(9))) == ["near-limit warning - screen acts"]


def test_a_warning_that_nobody_said_acts_though_the_prompt_was_answered() -> None:
    """Preparing a successor costs nothing; it only must not be talked into."""
    detector = build()
    say(detector, 1, "agent", "done")
    look(detector, 2, "! nearly there")
    assert render(detector.tick(now=at(5))) == ["near-limit warning - screen acts"]


def test_a_record_that_needs_the_screen_acts_once_it_was_seen() -> None:
    """In either order: the record of a switch and the dialog in which it was chosen."""
    detector = build()
    look(detector, 1, "! choose a model")
    assert render(say(detector, 2, "error", "switched")) == ["limit model - transcript acts"]
    other = build()
    assert say(other, 1, "error", "switched") == ()
    assert render(look(other, 2, "! choose a model")) == [
        "limit model - screen no",
        "limit model - transcript acts",
    ]


def test_a_usage_window_gives_the_exact_reset() -> None:
    """Words are cut to the minute; returning a minute early would hit the limit again."""
    detector = build()
    status(detector, 1, 100, at(3661).timestamp())
    assert render(say(detector, 2, "error", "limit reached until 11:01")) == [
        "limit account 11:01:01 transcript acts"
    ]
    assert say(detector, 3, "error", "limit reached until 11:01") == ()


def test_a_usage_window_heard_later_makes_the_reset_exact() -> None:
    """The status line runs only after the limit's dialog was closed."""
    detector = build()
    say(detector, 1, "error", "limit reached until 11:01")
    assert status(detector, 2, 100, at(9000).timestamp()) == ()
    assert render(status(detector, 3, 100, at(3661).timestamp())) == [
        "limit account 11:01:01 transcript acts"
    ]
    assert status(detector, 4, 100, at(3661).timestamp()) == ()


def test_a_full_window_gives_a_reset_where_none_is_said() -> None:
    """An open window does not: it is not the one that was hit."""
    detector = build()
    status(detector, 1, 50, at(3661).timestamp())
    assert render(say(detector, 2, "error", "limit reached")) == ["limit account - transcript acts"]
    other = build()
    status(other, 1, 100, at(3661).timestamp())
    assert render(say(other, 2, "error", "limit reached")) == ["limit account 11:01:01 transcript acts"]


def test_a_window_that_fills_is_a_near_limit_once() -> None:
    """At 100 % it is the limit itself that will be reported."""
    detector = build()
    assert status(detector, 1, 50, at(3661).timestamp()) == ()
    assert render(status(detector, 2, 92, at(3661).timestamp())) == [
        "near-limit warning 11:01:01 status-line acts"
    ]
    assert status(detector, 3, 95, at(3661).timestamp()) == ()
    assert status(detector, 4, 100, at(3661).timestamp()) == ()


@pytest.mark.parametrize(
    ("used", "reset"), [(None, 1795177936), (True, 1795177936), ("92", 1795177936), (92, None)]
)
def test_a_window_that_says_too_little_is_passed_over(used: object, reset: object) -> None:
    """Status lines lack fields for some plans."""
    assert status(build(), 1, used, reset) == ()


def test_screen_words_no_rule_knows_are_passed_over() -> None:
    """A notice position holds many other notices."""
    assert look(build(), 1, "! something else", "? limit reached", "limit reached") == ()
