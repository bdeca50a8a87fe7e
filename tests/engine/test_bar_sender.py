"""The bar on its way to a leg's holder: once for each change, until it is there, and away again."""

import asyncio
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from agent_relay.domain.inputs import Delivered
from agent_relay.domain.session import Session
from agent_relay.engine.legs.terminal_messages import BarSender
from agent_relay.session.views.waiting import DeliveryProgress, DeliveryStage
from agent_relay.terminal.holder_client import HolderError
from tests.session.story import Story
from tests.support.heard import in_loop


class Holder:
    """Takes bars, unless `refusals` say why not."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.ops: list[str] = []
        self.asked: list[tuple[list[str], bool]] = []

    async def request(
        self, op: str, *, texts: list[str], holds_keys: bool = False, line: str = ""
    ) -> dict[str, object]:
        assert op in {"bar", "asking"}
        # A question hides the line; what it held before tells whether somebody was typing.
        assert line == ("empty" if op == "bar" else "")
        self.ops.append(op)
        self.asked.append((texts, holds_keys))
        if self.refusals:
            raise HolderError("refused", why=self.refusals.pop(0))
        return {}


class Scene:
    """A session whose living leg has `holder`, and the sender of its bar."""

    def __init__(self, story: Story, holder: Holder) -> None:
        self.story = story
        self.holder = holder
        self.told: list[str] = []
        self.reported: list[BaseException] = []
        self.live: dict[str, object] = {}
        services = SimpleNamespace(
            zone=ZoneInfo("UTC"), teller=SimpleNamespace(tell=self.told.append), report=self.reported.append
        )
        self.sender = BarSender(services, self, self.live)  # type: ignore[arg-type]
        self.attach()

    @property
    def session(self) -> Session:
        """The session now."""
        return self.story.now

    def attach(self) -> None:
        """The session's living leg is under watch."""
        leg = self.story.now.living_leg
        assert leg is not None
        self.live[leg.id] = SimpleNamespace(
            leg=leg, holder=self.holder, gone=asyncio.Event(), shown_input="empty"
        )


@in_loop
async def test_the_predecessor_shows_it_with_keys_that_wait() -> None:
    """What is typed into an agent that ends would be lost."""
    scene = Scene(Story().start().limit(), Holder())
    assert await scene.sender.show()
    ((texts, holds_keys),) = scene.holder.asked
    assert texts[-2:] == ["ann → bob · ann is ending", "ann→bob ending"]
    assert holds_keys
    assert await scene.sender.show()
    assert len(scene.holder.asked) == 1


@in_loop
async def test_each_change_is_sent_and_the_last_one_takes_it_away() -> None:
    """As the successor starts, asks, is given its packet and works."""
    story = Story().start()
    story.limit().gone().published().spawned()
    scene = Scene(story, Holder())
    assert await scene.sender.show()
    story.says("asking")
    assert not await scene.sender.show()
    story.says("ready")
    assert await scene.sender.show(DeliveryProgress(story.leg, DeliveryStage.SUBMITTED))
    assert story.now.handoff is not None
    story.happens(Delivered(story.now.handoff.id, story.leg)).says("busy")
    assert not await scene.sender.show()
    said = [texts[-1] if texts else "" for texts, _ in scene.holder.asked]
    assert said == ["ann→bob starts", "→bob needs answer", "ann→bob reads", ""]


@in_loop
async def test_a_stale_one_is_taken_away_by_the_next_daemon() -> None:
    """The daemon that was to take it away was killed: it would keep the person's keys for ever."""
    scene = Scene(Story().start().says("busy"), Holder())
    scene.sender.update()
    await scene.sender.show()
    assert scene.holder.asked == [([], False)]


@in_loop
async def test_a_holder_of_an_earlier_version_is_asked_once() -> None:
    """It has no bar, and the handoff goes on without one."""
    story = Story().start().limit()
    scene = Scene(story, Holder("unknown-op", "unknown-op"))
    assert not await scene.sender.show()
    assert not scene.sender.can_show(story.leg)
    assert not await scene.sender.show()
    assert len(scene.holder.asked) == 1


@in_loop
async def test_a_question_of_an_agent_at_work_and_its_end_are_told() -> None:
    """Keys of the switch that it was not given yet are not its answer."""
    story = Story().start().says("busy")
    scene = Scene(story, Holder())
    for state in ("busy", "asking", "busy"):
        story.says(state)
        assert not await scene.sender.show()
    assert scene.holder.ops == ["bar", "asking", "bar"]
    said = [texts[0] if texts else "" for texts, _ in scene.holder.asked]
    assert said == ["", "relay: ann needs an answer: give it here · what you typed before it waits", ""]
    assert not scene.sender.bar.texts


@in_loop
async def test_a_holder_that_knows_of_no_questions_is_told_of_one_once() -> None:
    """It shows bars all the same; one that is there is taken away."""
    story = Story().start().says("asking")
    scene = Scene(story, Holder("unknown-op"))
    assert not await scene.sender.show()
    story.says("busy")
    assert not await scene.sender.show()
    story.says("asking")
    assert not await scene.sender.show()
    assert scene.holder.ops == ["asking", "bar"]
    assert scene.sender.can_show(story.leg)


@pytest.mark.size("test")
@in_loop
async def test_a_holder_that_did_not_answer_is_asked_until_it_does() -> None:
    """It waited for its turn on a busy machine, or its connection was lost."""
    scene = Scene(Story().start().limit(), Holder("gone", "slow"))
    while not await scene.sender.show():
        assert len(scene.holder.asked) < 3
    assert len(scene.holder.asked) == 3
    assert scene.reported == []
    await scene.sender.close()


@in_loop
async def test_whoever_follows_the_session_is_told_of_what_no_line_of_its_journal_says() -> None:
    """A terminal between two agents asks again where it is told that something changed."""
    story = Story().start()
    story.limit().gone().published().spawned().says("ready")
    scene = Scene(story, Holder())
    await scene.sender.show(DeliveryProgress(story.leg, DeliveryStage.GIVING))
    await scene.sender.show(DeliveryProgress(story.leg, DeliveryStage.GIVING))
    assert scene.told == ["S"]


@in_loop
async def test_nothing_is_sent_to_a_leg_that_is_gone() -> None:
    """Nobody is there to show it."""
    story = Story().start().limit()
    scene = Scene(story, Holder())
    scene.live[story.leg].gone.set()  # type: ignore[attr-defined]  # a scripted leg
    assert not await scene.sender.show()
    assert scene.holder.asked == []
