import pytest

from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.domain.documents.rules import Rules

FEED = {"name": "f", "source": "hook", "text": "t"}
LIMIT = {
    "id": "l",
    "feeds": ["f"],
    "pattern": "x",
    "kind": "limit",
    "scope": "account",
    "accepts": ["x"],
    "rejects": ["y"],
}


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"feeds": [FEED], "limits": [{**LIMIT, "feeds": ["g"]}]}, "no feed is named g"),
        ({"feeds": [FEED, FEED]}, "feed f is there twice"),
        ({"feeds": [FEED], "limits": [LIMIT, LIMIT]}, "limit l is there twice"),
        ({"feeds": [{**FEED, "place": {"starts": "x"}}]}, "a screen feed has a place"),
        ({"feeds": [{**FEED, "source": "screen"}]}, "a screen feed has a place"),
        ({"feeds": [FEED], "limits": [{**LIMIT, "accepts": []}]}, "accepts"),
        ({"feeds": [FEED], "limits": [{**LIMIT, "patern": "x"}]}, "patern"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(tables: dict[str, object], words: str) -> None:
    """A rule that never fires is worse than an error."""
    with pytest.raises(MistakeError, match=words):
        Rules.parse(tables)


def test_rules_know_whether_anything_but_the_screen_is_read() -> None:
    """Only then may the screen be overruled."""
    assert Rules.parse({"feeds": [FEED], "limits": [LIMIT]}).is_structured()
    assert not Rules.parse({"feeds": [FEED]}).is_structured()


def test_rules_of_another_version_are_left_out_and_none_where_it_is_not_known() -> None:
    """What a version words in one way, another may have in an answer."""
    feeds = [{**FEED, "from": "2.0"}, {**FEED, "name": "g", "before": "2.0"}, {**FEED, "name": "h"}]
    states = [{"id": "s", "state": "busy", "pattern": "x", "from": "2.0", "before": "3.0"}]
    rules = Rules.parse({"feeds": feeds, "states": states})
    assert [feed.name for feed in rules.fit("1.9").feeds] == ["g", "h"]
    assert [feed.name for feed in rules.fit("2.0.1").feeds] == ["f", "h"]
    assert [len(rules.fit(version).states) for version in ("1.9", "2.5", "3.0")] == [0, 1, 0]
    assert rules.fit("") == rules


def test_a_setting_that_never_had_an_effect_is_passed_over() -> None:
    """A user's adapter that still sets it must not be left out for that."""
    known = Rules.parse({"continues": {"cancel": "q"}})
    assert Rules.parse({"continues": {"cancel": "q", "late_s": 180}}) == known
    with pytest.raises(MistakeError, match="early_s"):
        Rules.parse({"continues": {"early_s": 180}})
