import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.protocol import json_text
from agent_relay.domain.protocol.json_text import parse_json, render_json
from tests.house import tree

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


@pytest.mark.size("test")
@given(_VALUES)
def test_it_writes_and_reads_what_json_does(value: object) -> None:
    """It is the same code reached by a shorter way; a new Python could change that."""
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


@pytest.mark.size("test")
def test_garbage_is_a_value_error_also_where_json_was_never_loaded() -> None:
    """Where the accelerator finds no error of json's own it raises none: a torn file was a crash of ours."""
    code = (
        "import sys; from agent_relay.domain.protocol.json_text import parse_json\n"
        "print('json' in sys.modules)\n"
        "for text in ('{', '{1', '[1', chr(34), '{}x', '[1,]'):\n"
        "    try: parse_json(text)\n"
        "    except ValueError: print('refused')\n"
    )
    # Without site: what a measuring environment loads there may be json.
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=tree.CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] + ["refused"] * 6


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


def test_the_slow_way_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It serves Pythons without the accelerators."""
    monkeypatch.setitem(sys.modules, "_json", None)
    scan, write = json_text._build()  # noqa: SLF001 - nothing else reaches it on this Python
    assert scan('{"a":[1.5,null]}', 0) == ({"a": [1.5, None]}, 16)
    assert write({"a": [1.5, "\udcff"]}) == '{"a":[1.5,"\\udcff"]}'
    with pytest.raises(ValueError, match="NaN"):
        scan("[NaN]", 0)


@pytest.mark.size("test")
def test_it_loads_neither_json_nor_re() -> None:
    """That is its only reason to exist."""
    code = (
        "import sys; from agent_relay.domain.protocol.json_text import parse_json, render_json\n"
        "parse_json(render_json({'a': [1]}))\n"
        "print([name for name in ('json', 're', 'enum') if name in sys.modules])"
    )
    root = Path(__file__).resolve().parents[2]
    found = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
