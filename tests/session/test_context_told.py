"""The agent is told how full its own context is, and may ask for it to be compacted."""

import pytest

from agent_relay.domain.effects import AwaitQuiet, Compact, ShowMessage, TellContext
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import CompactSkipped, CompactWished
from agent_relay.domain.limits import Context, ContextWishes
from agent_relay.domain.values import replace
from agent_relay.session.views.messages import render_told_context
from tests.session.story import HANDOFF, Story, filling

COMPACT = ContextWishes(mode="compact")
ASK = ContextWishes(mode="ask")


def told(story: Story, used: int) -> bool:
    """Whether word is left for the agent, or taken back, when its context holds so much."""
    story.wait(1)
    return TellContext(story.leg) in story.fills(used).effects


@pytest.mark.parametrize("wishes", [HANDOFF, COMPACT, ASK])
def test_each_mark_is_told_once_on_the_way_up(wishes: ContextWishes) -> None:
    """A reading that swings around a mark says nothing new; one that was low begins again."""
    story = filling(wishes).says("busy")
    used = (100, 650, 720, 690, 730, 820, 790, 830, 910, 880, 920)
    assert [told(story, one) for one in used] == [
        True,  # Nothing was left yet: there is nothing to take back.
        False, True, False, False, True, False, False, True, False, False,
    ]  # fmt: skip
    assert [told(story, one) for one in (100, 650, 720)] == [True, False, True]


def test_the_agent_reads_that_relay_says_it_and_what_follows() -> None:
    """Words in its conversation that might be taken for the user's would be obeyed as such."""
    full = Context(used=910, room=1000)
    begins = "Note by agent-relay, not by the user: your context is 91 % full (910 of 1,000 tokens). "
    for wishes, follows, tool in (
        (HANDOFF, "Soon the work goes on in a fresh conversation, at the end of a turn", "handoff"),
        (COMPACT, "Soon it is compacted, at the end of a turn", "compact"),
        (ASK, "The user has been told, and decides", "compact or handoff"),
    ):
        text = render_told_context(full, wishes, has_tools=True)
        tail = f". Note where your work stands with the tool checkpoint; to ask for it now, use {tool}."
        assert text == f"{begins}{follows}{tail}"
        assert render_told_context(full, wishes, has_tools=False) == f"{begins}{follows}."


def test_a_wish_is_granted_at_the_turns_end_if_the_user_wants_compacting() -> None:
    """However full it is; once, and a line somebody has begun to type is waited out."""
    story = filling(COMPACT).turn(300).says("busy")
    story.happens(CompactWished(story.leg, "done with the first part"))
    assert story.effects == [ShowMessage(story.leg)]
    with pytest.raises(WrongUseError, match="requested already"):
        story.happens(CompactWished(story.leg))
    assert story.says("ready").effects == [AwaitQuiet(story.leg)]
    assert story.quiet().effects == [Compact(story.leg)]
    assert story.happens(CompactSkipped(story.leg)).effects == [AwaitQuiet(story.leg)]
    assert story.quiet().effects == [Compact(story.leg)]
    with pytest.raises(WrongUseError, match="a short while ago"):
        story.happens(CompactWished(story.leg))
    story.wait(60)
    story.happens(CompactWished(story.leg))
    assert story.effects == [ShowMessage(story.leg), AwaitQuiet(story.leg)]


def test_a_context_compacted_at_the_agents_wish_is_still_relieved_when_it_fills_up() -> None:
    """It was low when it was compacted, so that nothing later says that it has become low."""
    story = filling(COMPACT).turn(300).says("busy")
    story.happens(CompactWished(story.leg)).says("ready")
    assert story.quiet().effects == [Compact(story.leg)]
    story.wait(60)
    assert story.turn(950).effects == [AwaitQuiet(story.leg)]
    assert story.quiet().effects == [Compact(story.leg)]
    story.wait(60)
    assert story.turn(960).effects == []


def test_in_ask_mode_a_wish_is_put_to_the_user() -> None:
    """Relay types nothing."""
    story = filling(ASK).turn(300).says("busy")
    story.happens(CompactWished(story.leg))
    assert (story.effects, story.now.context.wish) == ([ShowMessage(story.leg)], "ask")
    assert story.says("ready").effects == []
    assert story.quiet().effects == []


@pytest.mark.parametrize("mode", ["handoff", "off"])
def test_a_wish_does_not_overrule_the_users_mode(mode: str) -> None:
    """It is refused with that reason, and nothing is journalled."""
    story = filling(replace(HANDOFF, mode=mode)).says("busy")
    before = len(story.events)
    with pytest.raises(WrongUseError, match=f'context.mode to "{mode}"'):
        story.happens(CompactWished(story.leg))
    with pytest.raises(WrongUseError, match="no longer at work"):
        story.happens(CompactWished("L0"))
    assert len(story.events) == before
