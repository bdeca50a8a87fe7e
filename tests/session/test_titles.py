"""What a session is called: short enough for a list, harmless on any terminal, and in a person's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.events.codec import render_event
from agent_relay.domain.events.session import Body, Event
from agent_relay.domain.text.plain import count_columns
from agent_relay.session.views.summary import cut_columns, make_title, summarize
from tests.faces.watch.lives import START, follow

CREATED = words.SessionCreated("S", "/r", "/r")
FIRST = words.LegStarting("L1", "ada", 1)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("fix the cents", "fix the cents"),
        ("  fix\tthe\n\n cents\r\n", "fix the cents"),
        ("", ""),
        (" \n\t ", ""),
        ("\x1b[31mred\x1b[0m\x07 words\x1b]0;gone\x07", "red words"),
        ("\x00\x01", ""),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("漢" * 30, "漢" * 30),
        ("漢" * 31, "漢" * 29 + "…"),
        ("a word " * 20, "a word a word a word a word a word a word a word a word a w…"),
        ("b" * 58 + " cut between words", "b" * 58 + "…"),
    ],
)
def test_a_title_is_one_short_line_of_the_text(text: str, title: str) -> None:
    """A prompt may be a whole file; a list of sessions has a line for each."""
    assert make_title(text) == title


@given(st.text(max_size=2000))
def test_a_title_fits_and_can_be_shown_whatever_the_text_is(text: str) -> None:
    """Prompts are pasted from anywhere, and a list must not be what obeys them."""
    title = make_title(text)
    assert title.isprintable()
    assert count_columns(title) <= 60
    assert len(title) <= 241
    assert title == title.strip()


def test_signs_without_width_do_not_make_a_title_endless() -> None:
    """A thousand accents on one letter take one column, and a second to draw."""
    assert len(cut_columns("e" + "\u0301" * 900, 60)) == 241


def _find(*bodies: Body) -> str:
    """The title in the short form and for a watcher, which must be the same."""
    rows = [render_event(Event(number, START, 0, body)) for number, body in enumerate(bodies, 1)]
    view = summarize(rows)
    assert view is not None
    assert follow(*bodies).titled[0] == view["title"]
    return str(view["title"])


def _ask(leg: str, text: str) -> Body:
    return words.PromptSeen(leg, text, START.isoformat())


def test_the_title_is_the_task_or_else_the_first_prompt() -> None:
    """Nobody tells sessions apart by twenty-six letters and digits."""
    assert _find(CREATED, FIRST) == ""
    assert _find(CREATED, FIRST, _ask("L1", "fix the cents"), _ask("L1", "and the euros")) == "fix the cents"
    task = words.SessionCreated("S", "/r", "/r", task="paint the shed")
    assert _find(task, FIRST, _ask("L1", "fix the cents")) == "paint the shed"
    assert _find(CREATED, work.TurnBegun("ada", "run the tests")) == "run the tests"
    assert _find(CREATED, work.ChatBegun(("ada", "bob"), "agree on a name")) == "agree on a name"


def test_what_relay_typed_for_a_person_is_no_title() -> None:
    """A successor is told to go on with its packet, in the same words in every session."""
    handed = words.LegStarting("L2", "bob", 2, handoff="H1")
    begun = work.HandoffBegun("H1", "L1", "ada", "bob", "manual")
    opening = _ask("L2", "Continue the work described in the handoff context above.")
    over = (CREATED, FIRST, begun, handed, opening)
    assert _find(*over) == ""
    assert _find(*over, _ask("L2", "fix the cents")) == "fix the cents"


def test_a_prompt_that_says_nothing_leaves_the_title_to_the_next() -> None:
    """An agent may tell of an empty prompt."""
    assert _find(CREATED, FIRST, _ask("L1", " "), _ask("L1", "fix the cents")) == "fix the cents"


def test_a_damaged_line_makes_no_title() -> None:
    """A journal is a file, and files are damaged."""
    created = {"event": "session.created", "at": "", "data": {"session": "S", "task": 7}}
    asked = {"event": "prompt.seen", "at": "", "data": {"leg": [], "text": None}}
    view = summarize([created, asked])
    assert view is not None
    assert view["title"] == ""
