"""What one leg's watch tells of, in whatever order a limit's sights arrive."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.inputs import SignalFound, StateSeen
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.session import Leg
from agent_relay.sources.record_dispatch import RecordDispatcher
from agent_relay.terminal.holder_client import HolderConnection
from tests.support.heard import LIMIT_S, until
from tests.support.legs import Held, hold, raw_python
from tests.support.monitored import Reports, build_config, build_monitor
from tests.support.real_launch import get_adapter

WORDS = "You've hit your session limit · resets 9:10pm (UTC)"
# The terminal shows the limit as Claude Code paints it, once a key is pressed.
SHOW_LIMIT = f"""
say("ready\\r\\n")
os.read(0, 1)
say("  \\u23bf \\u00a0\\x1b[38;5;211m{WORDS}\\x1b[0m\\r\\n")
os.read(0, 1)
"""
FIRST, SECOND = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"


def write_hook(event: str, native_id: str, at: datetime, transcript: str = "/nowhere") -> dict[str, object]:
    """What the hook leaves of an event."""
    payload = {"hook_event_name": event, "session_id": native_id, "transcript_path": transcript}
    more = {"error": "rate_limit", "last_assistant_message": WORDS} if event == "StopFailure" else {}
    return {"at": at.isoformat(), "payload": payload | more}


def write_row(at: datetime, cwd: str = "/r") -> dict[str, object]:
    """The transcript's row of the limit."""
    message = {"role": "assistant", "content": [{"type": "text", "text": WORDS}]}
    envelope = {"type": "assistant", "timestamp": at.isoformat(), "cwd": cwd, "isApiErrorMessage": True}
    return {**envelope, "error": "rate_limit", "message": message}


class Scene:
    """A watch over a terminal that shows a limit on demand; what it tells is kept."""

    def __init__(
        self, held: Held, known: frozenset[tuple[str, str, str, bool]] = frozenset(), native_id: str = FIRST
    ) -> None:
        self.held = held
        self.began = datetime.now(UTC)
        self.poke: Callable[[], Awaitable[None]] = self._find_nothing
        self.sources = get_adapter("claude").adapter.sources
        leg = Leg("leg", "claude", 1, starting_at=self.began, native_id=native_id)
        self.reports = Reports()
        self.told = self.reports.inputs
        self.watch = build_monitor(leg, build_config("claude", known=known), self.reports, poke=self._ask)

    async def _ask(self) -> None:
        await self.poke()

    async def _find_nothing(self) -> None:
        """No record was written yet."""

    async def look(self) -> None:
        """The screen shows the limit and settles."""
        await self.wait_for("ready")
        await self.watch.holder.type(b"x")
        await self.settle()

    async def settle(self) -> None:
        """The screen, which shows the limit, is looked at."""
        await self.wait_for(WORDS)
        await self.watch.settle_evidence()

    async def wait_for(self, words: str) -> None:
        """The screen shows `words`; TimeoutError if it never does."""
        async with asyncio.timeout(LIMIT_S):
            while words not in (await self.watch.holder.screen(peek=True)).text():  # noqa: ASYNC110 - a peek
                await asyncio.sleep(0.005)

    async def hear_hook(self) -> None:
        """The hook's record comes in."""
        await self._hear(Source.HOOK, write_hook("StopFailure", FIRST, datetime.now(UTC)))

    async def hear_row(self) -> None:
        """The transcript's row comes in."""
        await self._hear(Source.TRANSCRIPT, write_row(datetime.now(UTC)))

    async def _hear(self, source: Source, data: dict[str, object]) -> None:
        await self.watch.hear([Record(source, data, datetime.now(UTC), "here")])

    def decided(self) -> list[str]:
        """The sources of the limits that were told as decided."""
        return [
            str(told.signal.evidence.source)
            for told in self.told
            if isinstance(told, SignalFound) and told.signal.decides
        ]


def play(
    folder: Path, script: Callable[[Scene], Awaitable[None]], **more: frozenset[tuple[str, str, str, bool]]
) -> None:
    """`script` with a watch over a real terminal."""

    async def main(held: Held) -> None:
        scene = Scene(held, **more)
        scene.watch.connect(await HolderConnection.open(held.folder), 0, 0, 0)
        try:
            await script(scene)
        finally:
            await scene.watch.end()
            await scene.watch.holder.close()

    with hold(str(folder / "leg"), raw_python(SHOW_LIMIT)) as held:
        asyncio.run(main(held))


@pytest.mark.size("test")
@pytest.mark.parametrize("order", list(itertools.permutations(("screen", "hook", "row"))), ids="-".join)
def test_a_limit_is_acted_on_once_whichever_of_its_sights_comes_first(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """A hook is a process of its own: on a busy machine the screen has settled long before it writes."""

    async def script(scene: Scene) -> None:
        steps = {"screen": scene.look, "hook": scene.hear_hook, "row": scene.hear_row}
        for step in order:
            await steps[step]()
        await scene.settle()
        first = next(step for step in order if step != "screen")
        assert scene.decided() == [{"hook": "hook", "row": "transcript"}[first]]

    play(tmp_path, script)


@pytest.mark.size("test")
@pytest.mark.parametrize(("is_decided", "acts"), [(False, ["hook"]), (True, [])])
def test_a_daemon_that_died_between_the_screen_and_the_record_costs_no_failover(
    tmp_path: Path,
    is_decided: bool,  # noqa: FBT001 - a table's column
    acts: list[str],
) -> None:
    """The journal holds what the screen showed; the next daemon must still act on the record, once."""
    seen: list[tuple[str, str, str, bool]] = []

    async def look(scene: Scene) -> None:
        await scene.look()
        (signal,) = [told.signal for told in scene.told if isinstance(told, SignalFound)]
        assert (signal.decides, signal.resets_at is not None) == (False, True)
        seen.append(
            (signal.rule, signal.evidence.text, f"{signal.resets_at:%Y-%m-%dT%H:%M:%S+00:00}", is_decided)
        )

    async def hear(scene: Scene) -> None:
        await scene.hear_hook()
        assert scene.decided() == acts

    play(tmp_path / "one", look)
    play(tmp_path / "two", hear, known=frozenset(seen))


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "order",
    [
        ("screen", "clear", "row"),
        ("row", "clear", "screen"),
        ("clear", "screen", "row"),
        ("row", "screen", "clear"),
    ],
    ids="-".join,
)
def test_the_row_of_a_conversation_begun_within_the_leg_acts_whenever_its_name_is_heard(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """After `/clear` another transcript counts, and the record that says which may come after its rows."""
    home, leg = tmp_path / "home", tmp_path / "leg"
    projects = home / ".claude" / "projects" / "-r"
    reports: list[BaseException] = []

    def write(path: Path, data: dict[str, object]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")

    async def script(scene: Scene) -> None:
        evidence = RecordDispatcher(reports.append)
        values = {"leg_folder": str(leg), "home": str(home), "native_id": FIRST, "cwd": "/r", "pid": "1"}
        scene.poke = lambda: evidence.poke("leg")
        scene.reports.renamed = lambda leg_id, names: evidence.update(leg_id, native_id=names["native_id"])
        place = LegPlace("leg", scene.began, values)
        evidence.follow(place, scene.sources, scene.watch.hear, is_new=True)

        async def clear() -> None:
            write(leg / "hooks.jsonl", write_hook("SessionStart", SECOND, datetime.now(UTC)))

        async def write_limit() -> None:
            write(projects / f"{SECOND}.jsonl", write_row(datetime.now(UTC)))

        for step in order:
            await {"screen": scene.look, "clear": clear, "row": write_limit}[step]()
        await until(lambda: scene.decided() == ["transcript"])
        assert scene.watch.names["native_id"] == SECOND
        await evidence.leave("leg")
        await evidence.close()
        assert (scene.decided(), reports) == (["transcript"], [])

    play(tmp_path, script)


SHOW_PROMPT = """
say("> \\r\\n  ready | demo | Enter sends")
os.read(0, 1)
"""


@pytest.mark.size("test")
def test_a_screen_older_than_the_work_it_does_not_show_says_nothing_of_its_end(tmp_path: Path) -> None:
    """A session that was given its packet must not be told to wait for one before its agent has painted."""
    reports = Reports()
    told = reports.inputs

    async def main(held: Held) -> None:
        leg = Leg("leg", "demo", 1, starting_at=datetime.now(UTC))
        watch = build_monitor(leg, build_config(), reports)
        watch.connect(await HolderConnection.open(held.folder), 0, 0, 0)
        async with asyncio.timeout(LIMIT_S):
            while watch.state != "ready":
                await watch.settle_evidence()
        watch.say_working()
        await watch.hear([Record(Source.HOOK, {}, datetime.now(UTC), "here")])
        assert told == [StateSeen("leg", "ready"), StateSeen("leg", "busy")]
        # A turn that was over before paints nothing any more: its end is told all the same.
        await until(lambda: len(told) > 2)
        await watch.end()
        await watch.holder.close()

    with hold(str(tmp_path / "leg"), raw_python(SHOW_PROMPT)) as held:
        asyncio.run(main(held))
    assert told == [StateSeen("leg", state) for state in ("ready", "busy", "ready")]


def test_no_row_is_waited_for_where_no_transcript_is_read() -> None:
    """The event was the news of the prompt and its only record: waiting would make every failover late."""
    looked = []

    async def poke() -> None:
        looked.append(1)

    async def main() -> None:
        began = datetime.now(UTC)
        reports = Reports()
        watch = build_monitor(
            Leg("leg", "opencode", 1, starting_at=began), build_config("opencode"), reports, poke=poke
        )
        part = {"type": "text", "text": "fix the cents", "sessionID": "ses_1"}
        event = {"type": "message.part.updated", "properties": {"part": part}}
        await watch.hear([Record(Source.EVENT, event, began)])
        assert [one.text for one in reports.prompts] == ["fix the cents"]
        await watch.wait_for_prompt()

    asyncio.run(main())
    assert looked == []
