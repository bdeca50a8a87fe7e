"""Who may go on with a conversation that was begun without relay."""

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.session.decision import Outcome
from agent_relay.session.ownership import build_history, check_conversations, check_program, is_only_adopted
from tests.session.story import NOW, Story


def adopt() -> Story:
    """A session whose only leg is ann's own conversation."""
    story = Story()
    story.journal(Outcome(build_history("A1", "ann", NativeSession("/t.jsonl", "N", "/r", "", NOW))))
    return story


def test_an_adopted_session_is_told_from_one_relays_agents_have_worked_in() -> None:
    """Only of the first one relay does not know whether its program still runs."""
    assert not is_only_adopted(Story().now)
    assert not is_only_adopted(Story().start().now)
    story = adopt()
    assert (story.now.state, story.now.legs[0].native_id, is_only_adopted(story.now)) == (
        State.ENDED,
        "N",
        True,
    )
    story.note_beginning("ann")
    assert is_only_adopted(story.now)
    assert not is_only_adopted(story.spawned().now)


def test_a_program_that_runs_is_ended_only_where_its_user_said_so() -> None:
    """It would go on at its reset beside whoever took over."""
    assert not check_program("ann", "/r", [], successor="bob", force=True)
    assert check_program("ann", "/r", [7], successor="bob", force=True)
    for session, words in (("", "--from ann --yes"), ("S", "--session S --yes")):
        with pytest.raises(WrongUseError) as refused:
            check_program("ann", "/r", [7, 8], successor="bob", session=session, force=False)
        assert refused.value.sentence == (
            "ann still runs in /r (process 7, 8) and may go on with that session itself"
        )
        assert refused.value.hint == f"Quit ann first, or let relay end it: agent-relay bob {words}"


def _refuses(at_work: list[Session], native_id: str = "N", *, agent: str = "ann", but: str = "") -> str:
    try:
        check_conversations(agent, (native_id,), at_work, successor="bob", but=but)
    except WrongUseError as error:
        return f"{error.sentence}. {error.hint}"
    return ""


def test_a_conversation_that_a_session_at_work_goes_on_with_is_taken() -> None:
    """Two sessions would give the same work to two agents."""
    ended, working = adopt().now, adopt().note_beginning("bob").now
    assert _refuses([working]) == (
        "session S already works on that session of ann. Hand that one over: agent-relay bob --session S"
    )
    assert _refuses([]) == _refuses([ended]) == _refuses([working], but="S") == ""
    assert _refuses([working], "another") == _refuses([working], "") == _refuses([working], agent="cas") == ""
