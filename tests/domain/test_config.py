import contextlib
from datetime import timedelta
from decimal import Decimal

import pytest

from agent_relay.domain.documents.config import ProjectConfig, UserConfig, build_roster
from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.domain.names import name_relay_key, parse_relay_key

KNOWN = ("ada", "bob", "cyd")


def test_an_empty_file_means_the_documented_defaults() -> None:
    """Most people never write a configuration; these values are what they live with."""
    config = UserConfig()
    assert timedelta(seconds=config.patience_s) == timedelta(minutes=5)
    assert (config.return_, config.resume_at_reset, config.model_remedy) == ("offer", "ask", "handoff")
    assert (config.order, config.relay_key) == ((), "ctrl-]")


def test_the_roster_is_the_users_order_else_everybody_known() -> None:
    """The user's order is also the list of who may be asked."""
    assert build_roster(KNOWN, UserConfig(), ProjectConfig()) == KNOWN
    assert build_roster(KNOWN, UserConfig(order=("cyd", "ada")), ProjectConfig()) == ("cyd", "ada")


def test_a_project_reorders_and_leaves_out_but_never_adds() -> None:
    """A cloned repository must not bring an agent into play that its user left out."""
    user = UserConfig(order=("ada", "bob"))
    assert build_roster(KNOWN, user, ProjectConfig(order=("bob", "ada"))) == ("bob", "ada")
    assert build_roster(KNOWN, user, ProjectConfig(order=("cyd", "bob"))) == ("bob",)
    assert build_roster(KNOWN, user, ProjectConfig(order=("cyd",))) == ("ada", "bob")


def test_a_project_may_set_nothing_else() -> None:
    """Arguments or a relay key from a clone would be a way to run things."""
    with pytest.raises(MistakeError, match="agents"):
        ProjectConfig.parse({"agents": {"ada": {"args": ["--yes-to-all"]}}})


def test_an_agent_the_file_does_not_name_has_the_defaults() -> None:
    """Most people configure one agent at most."""
    config = UserConfig.parse({"agents": {"ada": {"args": ["--fast"]}}})
    assert config.get_agent("ada").args == ("--fast",)
    assert config.get_agent("bob").args == ()


def test_a_relay_key_is_the_byte_terminals_send() -> None:
    """The attach loop looks for this one byte in what the user types; hints name the key as keyboards do."""
    keys = {"ctrl-]": (29, "Ctrl-]"), "Ctrl-A": (1, "Ctrl-A"), "ctrl-_": (31, "Ctrl-_")}
    for text, (byte, name) in keys.items():
        assert UserConfig(relay_key=text).relay_key == text
        assert (parse_relay_key(text), name_relay_key(byte)) == (byte, name)
    assert name_relay_key(0) == ""


def test_a_key_that_cannot_be_or_must_not_be_taken_is_refused() -> None:
    """Taking Enter or Escape from the agent would make it unusable; what cannot be typed locks a user in."""
    for text in ("", *"] ctrl- ctrl-ab alt-x ctrl-é ctrl-c ctrl-m ctrl-[ ctrl-@ f13".split()):  # noqa: SIM905
        with pytest.raises(ValueError, match=r"key"):
            parse_relay_key(text)
        with pytest.raises(MistakeError, match="relay_key"):
            UserConfig(relay_key=text)


def test_fallback_models_count_only_where_the_user_wants_that_remedy() -> None:
    """Without the wish, a limited model means another agent, as ever."""
    agents = {
        "ada": {"fallback_model": "small"},
        "bob": {"model": "tiny", "fallback_model": "tiny"},
        "cyd": {},
    }
    assert UserConfig.parse({"agents": agents}).find_fallbacks() == {}
    config = UserConfig.parse({"agents": agents, "model_remedy": "model"})
    assert config.find_fallbacks() == {"ada": "small"}
    assert config.find_fallbacks("bob", "large") == {"ada": "small", "bob": "tiny"}
    assert config.find_fallbacks("ada", "small") == {}


def test_what_is_spared_from_redaction_is_said_exactly_and_by_the_user_alone() -> None:
    """A list that spares too much leaks; one that comes with a clone would leak on purpose."""
    given = {"redaction": {"allow": ["AKIATEST"], "allow_patterns": ["sk-test-[a-z]+"]}}
    config = UserConfig.parse(given)
    assert (config.redaction.allow, config.redaction.allow_patterns) == (("AKIATEST",), ("sk-test-[a-z]+",))
    with pytest.raises(MistakeError, match="redaction"):
        ProjectConfig.parse(given)


def test_contexts_are_left_alone_unless_the_user_says_otherwise() -> None:
    """A handoff nobody asked for, and a draft that costs quota, are opted into."""
    config = UserConfig()
    assert (config.context.mode, config.handoff.draft_near_limit) == ("off", False)
    assert config.handoff.standby is False
    marks = config.context.build_wishes()
    assert (marks.advise, marks.draft, marks.act, marks.rearm, marks.ceiling) == (70, 80, 90, 60, 0)
    assert (marks.cooldown, marks.to) == (timedelta(minutes=10), "same")


def test_a_budget_says_how_much_of_what() -> None:
    """Money is exact; nothing is done but telling unless the user says otherwise."""
    given = {"budgets": [{"per": "day", "agent": "ada", "dollars": 5.1}, {"per": "session", "tokens": 9}]}
    one, two = UserConfig.parse(given).build_budgets()
    assert (one.name, one.dollars) == ("your budget of $5.10 a day for ada", Decimal("5.1"))
    assert (two.name, two.tokens, two.warn, two.then) == ("your budget of 9 tokens a session", 9, 80, "warn")
    with pytest.raises(MistakeError, match="budgets"):
        ProjectConfig.parse(given)


NINE = {"per": "day", "tokens": 9}
MISTAKES: tuple[dict[str, object], ...] = (
    {"patience": 10},
    {"order": ["ada", "bob", "ada"]},
    # A lower mark above the others would hand over at every turn.
    *({"context": marks} for marks in (
        {"advise": 95}, {"draft": 60}, {"rearm": 70}, {"act": 101}, {"advise": 0}, {"ceiling": -1},
    )),
    *({"redaction": spared} for spared in (
        {"allow": ["ab"]}, {"allow_patterns": ["("]}, {"allow_patterns": [".*"]},
        {"allow_patterns": ["a{99999999999}"]},
    )),
    # Who mistypes a limit on money must not find out from the bill.
    *({"budgets": [budget]} for budget in (
        {"per": "week", "tokens": 9}, {"per": "day"}, {**NINE, "dollars": 1}, {"per": "day", "tokens": 0},
        {"per": "day", "tokens": True}, {"per": "day", "dollars": 0.004}, {"per": "day", "dollars": -1},
        {"per": "day", "dollars": float("nan")}, {"per": "day", "dollars": float("inf")},
        {**NINE, "warn": 101}, {**NINE, "then": "explode"}, {**NINE, "then": "handoff"}, {**NINE, "warm": 50},
    )),
    {"budgets": [NINE, {**NINE, "then": "stop"}]},
)  # fmt: skip


def test_what_cannot_be_meant_is_an_error() -> None:
    """A wish that silently does nothing, or something else, is found out at the worst moment."""
    taken = []
    for wrong in MISTAKES:
        with contextlib.suppress(MistakeError):
            UserConfig.parse(wrong)
            taken.append(wrong)
    assert taken == []


@pytest.mark.parametrize(
    ("wishes", "may"),
    [
        ({}, True),
        ({"resume_at_reset": True, "quiet_hours": "22:00-07:00"}, True),
        ({"resume_at_reset": False}, False),
        ({"quiet_hours": "always"}, False),
    ],
)
def test_an_agent_may_go_on_by_itself_at_some_hour_unless_the_user_excluded_all(
    wishes: dict[str, object], *, may: bool
) -> None:
    """Hours that end are kept by cancelling its timer; for no other wish is it started without one."""
    assert UserConfig.parse(wishes).may_ever_continue is may
