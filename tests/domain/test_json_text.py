import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.protocol.json_text import parse_json, render_json

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=()))
)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(_VALUES)
def test_it_writes_and_reads_what_json_does(value: object) -> None:
    """Other programs read what we write, and write what we read."""
    text = json.dumps(value, separators=(",", ":"))
    assert render_json(value) == text
    assert parse_json(f" {text}\n") == value


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \\u\n', max_size=30))
def test_it_refuses_what_json_refuses(text: str) -> None:
    """A line of garbage must be an error, never a value or another exception."""
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - any ValueError is the contract
            parse_json(text)
    else:
        assert parse_json(text) == expected


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "", " ", "{}{}", b"\xff", b"\xef\xbb\xbf{}", "9" * 5000]
)
def test_garbage_is_a_value_error(text: str | bytes) -> None:
    """Including what Python's reader lets pass by default."""
    with pytest.raises(ValueError):  # noqa: PT011 - any ValueError is the contract
        parse_json(text)


def test_depth_is_an_error_not_a_crash() -> None:
    """A peer can send a megabyte of brackets."""
    with pytest.raises(RecursionError):
        parse_json("[" * 500_000)
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises((RecursionError, ValueError)):
        render_json(loop)
    assert render_json([1]) == "[1]"


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": object()}, {("a",): 1}, b"x"])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    """Half of it would be read by Python alone."""
    with pytest.raises((TypeError, ValueError)):
        render_json(value)
