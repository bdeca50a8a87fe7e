"""Whatever an agent says, it is shown: nothing raises, nothing reaches the terminal as a command."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faces.render.views import answer, call, say, show

pytestmark = pytest.mark.size("test")

PARTS = st.sampled_from([
    "```", "~~~~\n", "```python\n", "\n\n", "\n", "- ", "1. ", "> ", "# ", "|a|b|\n|-|-|\n", "**", "_",
    "[x](", "![i](u)", "<b>", "&#27;", "&#x202e;", "    ", "\t", "\x1b[31m", "\x1b]8;;", "\x9b2J", "\r",
    "\x07", "\u2028", "\ud800", "漢", "e\u0301", "---\n", "@@ -1 +1 @@\n",
])  # fmt: skip
TEXTS = st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=30).map("".join)
OWN = re.compile(r"\x1b\[[0-9;]*m")
COMMAND = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def check(shown: str) -> None:
    """Colours are all a terminal is told, and what is shown can be written."""
    assert COMMAND.search(OWN.sub("", shown)) is None
    shown.encode()


@given(st.lists(TEXTS, max_size=4))
def test_any_words_in_any_pieces_are_shown(pieces: list[str]) -> None:
    """An agent quotes whatever it has read."""
    check(show(*(say(piece, more=True) for piece in pieces), columns=30, is_colour=True))


@given(TEXTS, TEXTS)
def test_any_tool_any_change_any_plan_and_any_thought_are_shown(first: str, second: str) -> None:
    """Their inputs and outputs are files and programs of anybody."""
    events: list[dict[str, object]] = [
        call(first, second),
        {"type": "edit", "path": first, "diff": second},
        answer(second),
        {"type": "plan", "whole": True, "steps": [{"id": first, "text": second, "status": first}]},
        {"type": "thought", "text": second},
        {"type": "handoff", "message": first},
        {"type": "end", "outcome": "failed", "agent": first, "why": second},
    ]
    check(show(*events, columns=30, is_colour=True))


@pytest.mark.parametrize(
    "text",
    [
        "```perl\n" + "s{" * 50_000 + "\n```",
        "```javascript\n" + "`${" * 50_000,
        ">" * 100_000,
        "[" * 100_000,
        "|a" * 50_000 + "\n" + "|-" * 50_000,
        "- " * 50_000,
        "a" + "\u0301" * 100_000,
    ],
)
def test_what_is_hard_to_read_is_shown_all_the_same(text: str) -> None:
    """Lexers and parsers take their time with it: they get it in small pieces or not at all."""
    check(show(say(text), is_colour=True))
