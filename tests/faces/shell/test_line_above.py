from agent_relay.faces.shell.conversation import Conversation
from agent_relay.faces.shell.status_line import render_status


def test_the_line_tells_what_is_known_and_nothing_else() -> None:
    """An invented number is worse than none."""
    empty = Conversation("/made-up", agent="demo")
    assert render_status(empty, [], state="", width=80) == "demo"
    full = Conversation(
        "/made-up", agent="demo", at_work="understudy", model="large", cost=0.128, context=(5000, 20000)
    )
    assert render_status(full, [{"agent": "demo", "until": ""}], state="working", width=100) == (
        "understudy · large · context 25 % · $0.13 · demo rests · working"
    )


def test_the_line_stays_one_line() -> None:
    """A model's name comes from a file; a narrow terminal is no reason to wrap."""
    hostile = Conversation("/made-up", agent="demo", model="\x1b[2J\nlarge")
    assert render_status(hostile, [], state="", width=80) == r"demo · \x1b[2J\nlarge"
    assert render_status(hostile, [], state="", width=10) == "demo · \\x"


def test_costs_add_up_and_the_agent_that_took_over_has_the_next_message() -> None:
    """After a failover the conversation goes on where the work is."""
    talk = Conversation("/made-up", agent="demo")
    for event in (
        {"type": "turn", "session": "S", "folder": "/made-up/.agent-relay/sessions/S", "agent": "demo"},
        {"type": "leg", "agent": "demo", "model": "large"},
        {"type": "usage", "tokens": {}, "cost": 0.1},
        {"type": "usage", "tokens": {}},
        {"type": "leg", "agent": "understudy", "model": ""},
        {"type": "usage", "tokens": {}, "cost": 0.2},
    ):
        talk.hear(event)
    assert (talk.session, talk.agent, talk.at_work, talk.model) == ("S", "understudy", "understudy", "")
    assert f"{talk.cost:.2f}" == "0.30"
    talk.hear({"type": "end", "outcome": "done"})
    assert (talk.at_work, talk.root) == ("", "/made-up")
