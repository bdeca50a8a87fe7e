import msgspec
import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.protocol.operations import NARRATE, OPEN, OPERATIONS, REST_AGREE, RUN_FOLLOW, WHERE
from tests.fuzz.messages import ODD


def test_fields_that_were_not_sent_have_their_defaults() -> None:
    """A client of an earlier version does not know what was added."""
    asked = OPEN.parse({"agent": "ann", "cwd": "/w", "from": "bo:7", "args": ["-v"], "env": {"A": "\udcff"}})
    assert (asked.agent, asked.from_, asked.args, asked.env) == ("ann", "bo:7", ("-v",), {"A": "\udcff"})
    assert (asked.rows, asked.cols, asked.new, asked.task) == (24, 80, False, "")
    assert REST_AGREE.parse({"session": "s"}).agreed is True
    assert NARRATE.parse({"session": "s"}).env is None
    assert RUN_FOLLOW.parse({"session": "s", "told": {"number": 3}}).told.offset == 0


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({}, "where: Object missing required field `session`"),
        ({"session": 3}, "where: Expected `str`, got `int` - at `$.session`"),
        ({"session": "s", "\udcff": 1}, "where: a field's name is not text"),
    ],
)
def test_missing_and_wrong_fields_are_one_kind_of_error(sent: dict[str, object], sentence: str) -> None:
    """Whoever writes another client learns what was wrong."""
    with pytest.raises(WrongUseError) as found:
        WHERE.parse(sent)
    assert found.value.sentence == sentence


def test_an_unknown_field_is_skipped() -> None:
    """A client of a later version may send more than this daemon knows."""
    assert WHERE.parse({"session": "s", "colour": "blue"}).session == "s"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("open", {"agent": "a", "cwd": "/", "rows": 0}),
        ("open", {"agent": "a", "cwd": "/", "cols": 4097}),
        ("open", {"agent": "a", "cwd": "/", "rows": True}),
        ("open", {"agent": "a", "cwd": "/", "new": 1}),
        ("open", {"agent": "a", "cwd": "/", "args": "-v"}),
        ("open", {"agent": "a", "cwd": "/", "args": [1]}),
        ("open", {"agent": "a", "cwd": "/", "env": {"A": 1}}),
        ("run.begin", {"agent": "a", "cwd": "/", "task": "t", "most": 1001}),
        ("chat.begin", {"cwd": "/", "most": -1}),
        ("race.begin", {"agents": ["a"], "cwd": "/", "task": "t", "max_time_s": 604801}),
        ("run.follow", {"session": "s", "told": {"number": -1}}),
        ("run.follow", {"session": "s", "told": {"number": 1 << 62}}),
    ],
)
def test_values_outside_their_range_are_refused(name: str, sent: dict[str, object]) -> None:
    """Nothing that comes over the socket gets farther than the table."""
    with pytest.raises(WrongUseError, match=rf"^{name}: Expected"):
        OPERATIONS[name].parse(sent)


def test_odd_values_raise_nothing_else() -> None:
    """A peer may send any JSON there is."""
    for name, operation in OPERATIONS.items():
        fields = [one.encode_name for one in msgspec.structs.fields(operation.fields)]
        refused = 0
        for field in (*fields, "\ud800"):
            for value in ODD:
                try:
                    operation.parse({field: value})
                except WrongUseError:
                    refused += 1
        assert refused >= len(ODD), name


def test_no_environment_is_shown_with_the_fields() -> None:
    """It holds the user's keys, and fields are shown by whatever fails with them at hand."""
    kinds = [one.fields for one in OPERATIONS.values() if "env" in one.fields.__struct_fields__]
    assert kinds
    for fields in kinds:
        needed = {one.name: ("a" if one.type is str else ()) for one in msgspec.structs.fields(fields)}
        shown = repr(fields(**{**needed, "env": {"SOME_KEY": "sk-1"}}))
        assert ("SOME_KEY" in shown, "sk-1" in shown, "env=…" in shown) == (False, False, True), fields
