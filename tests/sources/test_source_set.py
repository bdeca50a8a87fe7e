"""Records of every live leg arrive as they are written, once, with or without file events."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.values import replace
from agent_relay.sources.record_dispatch import SourceSet
from tests.support.heard import Heard, build_place, in_loop
from tests.support.set_clock import SetClock
from tests.support.stream_server import CHUNKED, StreamServer, event, say_and_wait

HOOKS = SourceSpec(role="hook", framing="jsonl", path="{leg_folder}/hooks.jsonl")
DEEP = SourceSpec(role="transcript", framing="jsonl", path="{home}/s/*/*/r-*{native_id}.jsonl")
LOG = SourceSpec(role="log", framing="lines", path="{leg_folder}/debug.log")
STREAM = SourceSpec(role="stream", framing="jsonl", path="{leg_folder}/stream.jsonl")
PROXY = SourceSpec(role="proxy", framing="jsonl", path="{leg_folder}/proxy.jsonl")
STATE = SourceSpec(role="state-file", framing="json", path="{home}/states/{pid}.json")
EVENTS = SourceSpec(role="event", framing="sse", path="http://127.0.0.1:{port}/event")


@contextlib.asynccontextmanager
async def hearing(**fields: object) -> AsyncIterator[tuple[Heard, SourceSet]]:
    """A set of sources, and what it hands on."""
    heard = Heard()
    sources = SourceSet(heard, **fields)
    yield heard, sources
    await sources.close()


def append(path: Path, *numbers: int) -> None:
    """One record a number, the folders made on the way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b"".join(b'{"n":%d}\n' % number for number in numbers))


@in_loop
async def test_what_is_appended_is_handed_on_without_anybody_asking(tmp_path: Path) -> None:
    """A limit in a hook must not wait for the screen."""
    async with hearing() as (heard, sources):
        sources.add(build_place("one", leg_folder=str(tmp_path)), [HOOKS])
        append(tmp_path / "hooks.jsonl", 1)
        await heard.wait(1)
        append(tmp_path / "hooks.jsonl", 2)
        await heard.wait(2)
        assert (heard.numbers(), heard.legs) == ([1, 2], ["one", "one"])


@in_loop
async def test_a_file_in_folders_that_do_not_exist_yet_is_found_as_they_appear(tmp_path: Path) -> None:
    """A fresh home has no folder of the agent's at all."""
    async with hearing() as (heard, sources):
        home = tmp_path / "link"
        (tmp_path / "home").mkdir()
        home.symlink_to(tmp_path / "home")
        sources.add(build_place(home=str(home), pid="7", leg_folder=str(home / "a" / "b")), [STATE, HOOKS])
        append(home / "states" / "7.json", 1)
        append(home / "a" / "b" / "hooks.jsonl", 2)
        await heard.wait(2)
        append(home / "a" / "b" / "hooks.jsonl", 3)
        await heard.wait(3)
        assert sorted(map(str, heard.numbers())) == ["1", "2", "3"]


@in_loop
async def test_a_folder_removed_and_made_again_is_watched_again(tmp_path: Path) -> None:
    """Users clean up; agents begin anew."""
    async with hearing() as (heard, sources):
        folder = tmp_path / "leg"
        sources.add(build_place(leg_folder=str(folder)), [HOOKS])
        append(folder / "hooks.jsonl", 1)
        await heard.wait(1)
        (folder / "hooks.jsonl").unlink()
        folder.rmdir()
        append(folder / "hooks.jsonl", 2)
        await heard.wait(2)


@in_loop
async def test_a_deep_transcript_is_found_when_the_screen_settles_and_then_followed(
    tmp_path: Path,
) -> None:
    """Walking every project's folder on every event would cost more than it tells."""
    async with hearing() as (heard, sources):
        sources.add(build_place(home=str(tmp_path)), [DEEP])
        append(tmp_path / "s/2026/11/r-a.jsonl", 1)
        await asyncio.sleep(0)
        sources.poke("leg")
        await heard.wait(1)
        append(tmp_path / "s/2026/11/r-a.jsonl", 2)
        await heard.wait(2)
        append(tmp_path / "s/2026/11/r-b.jsonl", 3)
        await heard.wait(3)
        append(tmp_path / "s/2026/12/r-c.jsonl", 4)
        sources.poke("leg")
        sources.poke("leg")
        await heard.wait(4)
        sources.update("leg", native_id="c")
        append(tmp_path / "s/2026/11/r-a.jsonl", 5)
        append(tmp_path / "s/2026/12/r-c.jsonl", 6)
        await heard.wait(5)
        assert heard.numbers() == [1, 2, 3, 4, 6]


@in_loop
async def test_a_poke_finds_what_no_event_told(tmp_path: Path) -> None:
    """Events are lost when a limit of the system is reached, and on some file systems there are none."""
    async with hearing(is_watching=False) as (heard, sources):
        sources.add(build_place(leg_folder=str(tmp_path), home=str(tmp_path)), [HOOKS, DEEP])
        sources.poke("leg")
        append(tmp_path / "hooks.jsonl", 1)
        append(tmp_path / "s/a/b/r-1.jsonl", 2)
        sources.poke("leg")
        assert heard.numbers() == [1]
        await heard.wait(2)
        assert heard.numbers() == [1, 2]


@pytest.mark.size("test")
@in_loop
async def test_what_is_written_after_a_settled_screen_is_found_without_any_event(tmp_path: Path) -> None:
    """A hook may write after the last paint, and where events were lost nothing else would ever look."""
    async with hearing(is_watching=False) as (heard, sources):
        sources.add(build_place(leg_folder=str(tmp_path)), [HOOKS])
        sources.poke("leg")
        append(tmp_path / "hooks.jsonl", 1)
        await heard.wait(1)
        append(tmp_path / "hooks.jsonl", 2)
        await heard.wait(2)
        await sources.remove("leg")


@in_loop
async def test_what_was_written_before_a_file_is_let_go_is_handed_on(tmp_path: Path) -> None:
    """The last row of a conversation and the news that another one began are written at the same time."""
    async with hearing(is_watching=False) as (heard, sources):
        append(tmp_path / "s/a/b/r-one.jsonl")
        sources.add(build_place(home=str(tmp_path), native_id="one"), [DEEP])
        append(tmp_path / "s/a/b/r-one.jsonl", 1)
        append(tmp_path / "s/a/b/r-two.jsonl", 2)
        sources.update("leg", native_id="two")
        append(tmp_path / "s/a/b/r-one.jsonl", 3)
        sources.poke("leg")
        sources.update("leg", native_id="one")
        assert heard.numbers() == [1, 2, 3]


@in_loop
async def test_a_last_log_entry_is_handed_on_once_the_log_is_quiet(tmp_path: Path) -> None:
    """The entry that announces a wait of seven hours is the last one for seven hours."""
    async with hearing() as (heard, sources):
        sources.add(build_place(leg_folder=str(tmp_path)), [LOG])
        (tmp_path / "debug.log").write_bytes(b"level=warn Retrying after 30548425ms...\n  at x\n")
        await heard.wait(1)
        assert heard.records[0].data == {"text": "level=warn Retrying after 30548425ms...\n  at x"}


@in_loop
async def test_a_long_history_is_read_to_its_end_in_steps(tmp_path: Path) -> None:
    """The loop serves others meanwhile."""
    async with hearing() as (heard, sources):
        sources.add(build_place(leg_folder=str(tmp_path)), [HOOKS])
        with (tmp_path / "hooks.jsonl").open("wb") as file:
            file.write(b'{"n":1,"x":"%s"}\n' % (b"y" * 1000) * 4000)
        await heard.wait(4000)


@in_loop
async def test_a_leg_that_ends_is_read_a_last_time_and_let_go(tmp_path: Path) -> None:
    """What an agent wrote while dying still counts; after that nobody listens."""
    async with hearing(is_watching=False) as (heard, sources):
        sources.add(build_place(leg_folder=str(tmp_path)), [HOOKS, LOG])
        (tmp_path / "debug.log").write_bytes(b"level=warn last\n")
        with (tmp_path / "hooks.jsonl").open("wb") as file:
            file.write(b'{"n":1,"x":"%s"}\n' % (b"y" * 1000) * 2000)
        await sources.remove("leg")
        assert len(heard.records) == 2001
        append(tmp_path / "hooks.jsonl", 2)
        sources.poke("leg")
        sources.update("leg", pid="1")
        await sources.remove("leg")
        assert (len(heard.records), sources.state("leg")) == (2001, {})


@in_loop
async def test_event_streams_are_sources_like_any_other(tmp_path: Path) -> None:
    """They begin when their port is known and end with their leg."""
    heard = Heard()
    server = StreamServer({"/event": [say_and_wait(CHUNKED, event(1))]})
    port = await server.start()
    sources = SourceSet(heard)
    sources.add(build_place(leg_folder=str(tmp_path)), [HOOKS, EVENTS])
    sources.update("leg", port=str(port))
    sources.poke("leg")
    await heard.wait(1)
    await sources.remove("leg")
    sources.add(build_place("two", leg_folder=str(tmp_path), port=str(port)), [EVENTS])
    await heard.wait(2)
    assert heard.legs == ["leg", "two"]
    await sources.close()
    await server.close()


@in_loop
async def test_a_source_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    """At the start, where somebody reads the error, and with nothing left half begun."""
    async with hearing() as (_, sources):
        wrong = replace(EVENTS, path="http://example.com:1/")
        with pytest.raises(ConfigurationError):
            sources.add(build_place(leg_folder=str(tmp_path), port="1"), [HOOKS, wrong])
        assert sources.state("leg") == {}


@pytest.mark.size("test")
@in_loop
async def test_many_legs_share_one_observer_and_cost_nothing_while_quiet(tmp_path: Path) -> None:
    """A hundred idle sessions: no measurable CPU, once the events of their own beginning are through."""
    async with hearing() as (heard, sources):
        for number in range(100):
            folder = tmp_path / f"leg{number}"
            folder.mkdir()
            sources.add(
                build_place(f"leg{number}", leg_folder=str(folder), home=str(tmp_path)), [HOOKS, LOG, DEEP]
            )
            (folder / "debug.log").write_bytes(b"level=info half a line")
        spent_s = 1.0
        while spent_s > 0.005:
            before = time.process_time()
            await asyncio.sleep(0.5)
            spent_s = time.process_time() - before
        append(tmp_path / "leg57" / "hooks.jsonl", 57)
        await heard.wait(1)
        assert heard.legs == ["leg57"]


@pytest.mark.parametrize("back", [timedelta(hours=3), timedelta(days=3650)], ids=["hours", "years"])
@in_loop
async def test_what_is_written_after_the_clock_was_set_back_is_read(tmp_path: Path, back: timedelta) -> None:
    """By its own time it is older than the leg; what was older before the clock was set stays so."""
    heard, clock = Heard(), SetClock()
    sources = SourceSet(heard, is_watching=False, clock=clock)
    sources.add(LegPlace("leg", clock.now(), {"leg_folder": str(tmp_path)}), [HOOKS])
    clock.run(60)
    clock.jump(-back)
    clock.run(1)
    old, new = clock.now() - timedelta(days=1), clock.now()
    rows = [{"n": 1, "at": old.isoformat()}, {"n": 2, "at": new.isoformat()}]
    with (tmp_path / "hooks.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    sources.poke("leg")
    assert heard.numbers() == [2]
    await sources.close()


@in_loop
async def test_what_the_proxy_noted_is_heard_before_what_the_agent_said_of_it(tmp_path: Path) -> None:
    """It has the reset to the second; of two that are read at once, the first decides."""
    async with hearing(is_watching=False) as (heard, sources):
        sources.add(build_place("one", leg_folder=str(tmp_path)), [STREAM, PROXY, HOOKS])
        append(tmp_path / "stream.jsonl", 2)
        append(tmp_path / "hooks.jsonl", 3)
        append(tmp_path / "proxy.jsonl", 1)
        sources.poke("one")
        assert heard.numbers() == [1, 2, 3]
