"""`agent-relay chat` in front of somebody: laid out as the relay shell lays a turn out."""

import pytest

from agent_relay.faces.render.turn_printer import StyledChatPrinter
from tests.support.chats import chat_world
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld

SPEAKS = [{"again": True, "do": [{"say": "It **has** to:\n\n- run\n- stop\n\nAGREED"}]}]


def sit_down(world: RelayWorld, **environ: str) -> Terminal:
    """A terminal on which two agents talk."""
    words = ["chat", "demo", "understudy", "Build it"]
    return Terminal(Command(words, world.environ | environ, world.project))


@pytest.mark.size("every")
@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}], ids=["colour", "NO_COLOR"])
def test_a_chat_on_a_terminal_is_laid_out(environ: dict[str, str]) -> None:
    """Somebody reads it there: no marks of Markdown, who speaks before each turn, and colour as elsewhere."""
    with chat_world(SPEAKS, SPEAKS) as world:
        terminal = sit_down(world, **environ)
        terminal.wait_for("Go on: agent-relay chat --continue ")
        assert terminal.wait_exit(60) == 0
        lines = [line.rstrip() for line in terminal.screen.split("\n")]
        terminal.close()
    said = ["", "It has to:", "", " • run", " • stop", "", "AGREED"]
    assert lines[:16] == ["demo >", *said, "", "understudy >", *said[:-1]]
    assert (b"\x1b[1m" in terminal.raw) is not environ


def test_who_takes_a_turn_over_is_named_before_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A handoff in the middle of a turn must not put one agent's words into another's mouth."""
    form = StyledChatPrinter()
    for event in (
        {"type": "next", "agent": "ann", "speaker": "ann", "number": 1},
        {"type": "text", "agent": "ann", "text": "I begin."},
        {"type": "handoff", "message": "→ ann hit its limit."},
        {"type": "text", "agent": "cid", "text": "I go on."},
        {"type": "end", "agent": "cid", "outcome": "done"},
        {"type": "next", "agent": "ann", "speaker": "cid", "number": 2},
        {"type": "text", "agent": "cid", "text": "Done."},
        {"type": "end", "agent": "cid", "outcome": "done"},
    ):
        form.show(event)
    assert capsys.readouterr().out == (
        "ann >\n\nI begin.\n\n→ ann hit its limit.\n\ncid >\n\nI go on.\n"
        "→ ann rests; cid takes its place.\n\ncid >\n\nDone.\n"
    )
