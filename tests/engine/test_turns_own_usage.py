"""What one turn used, where its agent tells what the whole conversation did."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.agents.launch import STREAM_FILE
from agent_relay.domain.protocol.run_output import UsageTold
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import replace
from agent_relay.engine.legs.turn_stream import StreamCursor, read_stream_part
from tests.support.real_launch import get_adapter

if TYPE_CHECKING:
    from agent_relay.engine.services import Services

BEGAN = datetime(2026, 11, 20, 12, tzinfo=UTC)


def write_count(at: datetime, count: int) -> str:
    """A rollout's row of what the conversation used so far, as codex 0.169.0 writes it."""
    total = {"input_tokens": count, "cached_input_tokens": 0, "output_tokens": count // 10}
    payload = {"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": total}}
    return json.dumps({"timestamp": at.isoformat(), "type": "event_msg", "payload": payload}) + "\n"


def tell(folder: Path, *legs: Leg, total: int = 27000) -> list[dict[str, int]]:
    """The usage that is told of the newest leg, whose agent ended its turn with that total."""
    session = Session("S", str(folder), str(folder), BEGAN, BEGAN, legs=legs)
    stream = folder / "legs" / legs[-1].id / STREAM_FILE
    stream.parent.mkdir(parents=True)
    usage = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": total // 10}
    stream.write_text(json.dumps({"type": "turn.completed", "usage": usage}) + "\n")
    adapters = SimpleNamespace(folders=SimpleNamespace(legs=str(folder / "legs")), get_adapter=get_adapter)
    part = read_stream_part(cast("Services", adapters), session, [], StreamCursor(0, legs[-1].id), UTC)
    return [dict(event.tokens) for event in part.events if isinstance(event, UsageTold)]


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    """A conversation of two turns before the one that is told, whose own counts are there by now."""
    path = tmp_path / "rollout.jsonl"
    path.write_text(
        write_count(BEGAN - timedelta(hours=2), 9000)
        + "no record\n"
        + write_count(BEGAN - timedelta(hours=1), 18000)
        + write_count(BEGAN + timedelta(seconds=5), 27000)
    )
    return path


NEWEST = Leg("L2", "codex", 2, BEGAN, native_id="N", resumes=True, headless=True)
EARLIER = Leg("L1", "codex", 1, BEGAN - timedelta(hours=1), native_id="N", headless=True)


def test_a_turn_of_a_conversation_that_goes_on_tells_its_own_figures(tmp_path: Path, rollout: Path) -> None:
    """Three equal turns were told as 90, 180 and 270; who began the conversation does not matter."""
    earlier = replace(EARLIER, transcript=str(rollout))
    assert tell(tmp_path / "a", earlier, NEWEST) == [{"input": 9000, "cached": 0, "output": 900}]
    own = replace(NEWEST, transcript=str(rollout))
    assert tell(tmp_path / "b", own) == [{"input": 9000, "cached": 0, "output": 900}]


def test_a_conversation_that_begins_tells_all_it_used(tmp_path: Path) -> None:
    """Nothing was used before its first turn."""
    fresh = replace(NEWEST, resumes=False, native_id="")
    assert tell(tmp_path / "a", fresh, total=9000) == [{"input": 9000, "cached": 0, "output": 900}]


def test_nothing_is_told_where_the_turns_share_is_not_known(tmp_path: Path, rollout: Path) -> None:
    """Unknown is not nothing: a wrong figure looks like a right one."""
    assert tell(tmp_path / "a", NEWEST) == []
    gone = replace(NEWEST, transcript=str(tmp_path / "gone.jsonl"))
    assert tell(tmp_path / "b", gone) == []
    strange = replace(EARLIER, native_id="another", transcript=str(rollout))
    assert tell(tmp_path / "c", strange, NEWEST) == []
    known = replace(NEWEST, transcript=str(rollout))
    assert tell(tmp_path / "d", known, total=500) == []


def test_a_record_without_an_end_is_not_read_for_figures(tmp_path: Path, rollout: Path) -> None:
    """What claims to be larger than any conversation would be read for as long as a turn may take."""
    with rollout.open("r+b") as file:
        file.truncate(3 << 30)
    assert tell(tmp_path / "a", replace(NEWEST, transcript=str(rollout))) == []
    os.mkfifo(tmp_path / "pipe")
    assert tell(tmp_path / "b", replace(NEWEST, transcript=str(tmp_path / "pipe"))) == []
