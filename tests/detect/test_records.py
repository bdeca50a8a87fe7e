from agent_relay.domain.documents.record_matching import (
    find_text,
    find_value,
    is_meant,
    iter_strings,
    open_envelope,
)
from agent_relay.domain.documents.rules import Where
from agent_relay.domain.limits import Record, Source

DATA = {"a": {"b.c": [{"d": 1}, "x"]}, "flag": True, "none": None, "n": 429}


def test_a_path_finds_its_value_or_nothing() -> None:
    """Records are foreign: any step can be missing or of another kind."""
    rows: dict[str, object] = {
        "a/b.c/0/d": 1,
        "a/b.c/-1": "x",
        "a/b.c/7": None,
        "a/b.c/x": None,
        "a/missing/deeper": None,
        "n/x": None,
        "flag": True,
    }
    assert {path: find_value(DATA, path) for path in rows} == rows


def test_the_whole_record_can_be_meant() -> None:
    """`.` is the record itself."""
    assert find_value(DATA, ".") is DATA
    assert find_text({"a": [1]}, ".") == '{"a":[1]}'
    assert find_text({"a": "x"}, "a") == "x"
    assert find_text({"a": None}, "a") is None


def test_conditions_compare_kind_and_value() -> None:
    """True is not 1 and "429" is not 429."""
    rows: list[tuple[Where, bool]] = [
        (Where(), True),
        (Where(equals={"n": 429}), True),
        (Where(equals={"n": "429"}), False),
        (Where(equals={"flag": True}), True),
        (Where(equals={"flag": 1}), False),
        (Where(matches={"n": "^4"}), True),
        (Where(matches={"n": "^5"}), False),
        (Where(matches={"missing": ""}), False),
        (Where(absent=("none", "missing")), True),
        (Where(absent=("n",)), False),
        (Where(present=("n",)), True),
        (Where(present=("none",)), False),
    ]
    assert [(where, is_meant(where, DATA)) for where, _ in rows] == rows


def test_every_string_of_a_record_is_found() -> None:
    """At any depth; other values have no words."""
    assert sorted(iter_strings({"a": ["x", {"b": "y"}], "c": 1})) == ["x", "y"]


def test_payloads_kept_for_the_daemon_are_taken_out() -> None:
    """Transcripts have payloads of their own, which stay where they are."""
    rows: list[tuple[Source, dict[str, object], dict[str, object]]] = [
        (Source.HOOK, {"at": "x", "payload": {"a": 1}}, {"a": 1}),
        (Source.STATUS_LINE, {"at": "x", "payload": {"a": 1}}, {"a": 1}),
        (Source.HOOK, {"at": "x", "unreadable": True}, {"at": "x", "unreadable": True}),
        (Source.HOOK, {"payload": "text"}, {"payload": "text"}),
        (Source.TRANSCRIPT, {"payload": {"a": 1}}, {"payload": {"a": 1}}),
    ]
    assert [(source, data, open_envelope(Record(source, data)).data) for source, data, _ in rows] == rows
