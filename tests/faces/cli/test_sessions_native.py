"""The list people choose the work of a plain agent from, in the four agents' own formats."""

import json
import os
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events.session import LegNamed, LegStarting, SessionCreated
from agent_relay.domain.moments import render_age
from agent_relay.domain.names import build_ulid
from tests.faces.cli_run import World

KEY = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"
AT = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)


def _write(path: str, *rows: Mapping[str, object], at: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    os.utime(path, (at, at))


def _plant_claude(world: World, name: str, text: str, *, at: int, cwd: str = "") -> None:
    row = {
        "type": "user",
        "uuid": "u",
        "parentUuid": None,
        "sessionId": name,
        "cwd": cwd or world.cwd,
        "timestamp": "2026-11-20T10:00:00Z",
        "message": {"role": "user", "content": text},
    }
    _write(f"{world.home}/.claude/projects/-p/{name}.jsonl", row, at=at)


def _plant_codex(world: World, *, at: int) -> None:
    meta = {"id": "019a-codex", "cwd": world.cwd, "timestamp": "2026-11-20T10:00:00Z", "source": "cli"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "port it"}]}
    rows = (
        {"timestamp": "2026-11-20T10:00:00Z", "type": "session_meta", "payload": meta},
        {"timestamp": "2026-11-20T10:00:01Z", "type": "response_item", "payload": said},
    )
    _write(f"{world.home}/.codex/sessions/2026/11/20/rollout-x-019a-codex.jsonl", *rows, at=at)


def _plant_gemini(world: World, *, at: int) -> None:
    header = {"sessionId": "12345678-g", "kind": "main", "startTime": "2026-11-20T10:00:00Z"}
    prompt = {"id": "1", "type": "user", "content": "draw it"}
    folder = f"{world.home}/.gemini/tmp/proj"
    _write(f"{folder}/chats/session-1-12345678.jsonl", header, prompt, at=at)
    with open(f"{folder}/.project_root", "w", encoding="utf-8") as file:
        file.write(world.cwd)


def _plant_opencode(world: World, *, at: int) -> None:
    folder = f"{world.home}/.local/share/opencode"
    os.makedirs(folder)
    database = sqlite3.connect(f"{folder}/opencode.db")
    database.executescript(
        """CREATE TABLE session(id, parent_id, directory, title, time_created, time_updated, revert);
        CREATE TABLE message(id, session_id, time_created, data);
        CREATE TABLE part(id, message_id, session_id, data);
        CREATE TABLE todo(session_id, content, status, position);"""
    )
    row = ("ses_o", None, world.cwd, "count it", at * 1000, at * 1000, None)
    database.execute("INSERT INTO session VALUES(?,?,?,?,?,?,?)", row)
    database.commit()
    database.close()


def _list(world: World) -> list[dict[str, object]]:
    done = world.run("sessions", "--native", "--json")
    assert (done.status, done.err) == (0, "")
    rows = json.loads(done.out)["sessions"]
    assert isinstance(rows, list)
    return rows


@pytest.mark.size("test")
def test_all_four_formats_are_listed_newest_first(world: World) -> None:
    """Whichever agent somebody used before relay, its work is found; an empty table is no answer."""
    assert world.run("sessions", "--native").out == "No agent has a session of its own here.\n"
    assert _list(world) == []
    _plant_codex(world, at=1_780_000_003)
    _plant_claude(world, "aaa", "paint it", at=1_780_000_001)
    _plant_opencode(world, at=1_780_000_004)
    _plant_gemini(world, at=1_780_000_002)
    _plant_claude(world, "bbb", "elsewhere", at=1_780_000_009, cwd="/elsewhere")
    rows = _list(world)
    assert [(row["from"], row["title"]) for row in rows] == [
        ("opencode:ses_o", "count it"),
        ("codex:019a-codex", "port it"),
        ("gemini:12345678-g", "draw it"),
        ("claude:aaa", "paint it"),
    ]
    assert rows[0]["changed_at"] == "2026-05-28T20:26:44+00:00"
    text = world.run("sessions", "--native").out.splitlines()
    assert text[0].split() == ["agent", "age", "title", "continue", "with", "--from"]
    assert text[4].split()[0] == "claude"
    assert text[4].endswith("paint it  claude:aaa")


@pytest.mark.size("test")
def test_a_hostile_title_can_neither_move_the_cursor_nor_tell_a_secret(world: World) -> None:
    """A title is whatever somebody pasted into another program as a first prompt."""
    _plant_claude(world, "aaa", f"\x1b[2J\u202e{KEY} {'x' * 500}\nmore", at=1_780_000_001)
    (row,) = _list(world)
    title = str(row["title"])
    assert title.isprintable()
    assert len(title) <= 60
    assert title.startswith("\\x1b[2J\\u202e[redacted: anthropic-key] xxx")
    assert world.run("sessions", "--native").out.replace("\n", "").isprintable()


@pytest.mark.size("test")
def test_a_leg_of_our_own_is_not_listed(world: World) -> None:
    """It would be adopted twice; its session is what goes on."""
    _plant_claude(world, "aaa", "paint it", at=1_780_000_001)
    _plant_claude(world, "bbb", "hang it", at=1_780_000_002)
    session = build_ulid(1_795_000_000_000, b"0123456789")
    bodies = (
        SessionCreated(session, world.cwd, world.cwd, ("demo",)),
        LegStarting("L1", "demo", 1),
        LegNamed("L1", native_id="bbb"),
    )
    with open(world.plant(session, *((AT, body) for body in bodies)), "ab") as file:
        file.write(b'["native_id"]\n{"data": {"native_id": 7}}\n"native_id" {\n')
    assert [row["native_id"] for row in _list(world)] == ["aaa"]


@pytest.mark.size("test")
def test_a_session_that_cannot_be_read_is_told_of(world: World) -> None:
    """Left out in silence it would look lost; and one pipe there must not keep everybody from the list."""
    _plant_claude(world, "aaa", "paint it", at=1_780_000_001)
    closed, pipe = (f"{world.home}/.claude/projects/-p/{name}.jsonl" for name in ("bbb", "pipe"))
    os.makedirs(closed)
    os.mkfifo(pipe)
    done = world.run("sessions", "--native")
    assert (done.status, len(done.out.splitlines())) == (0, 2)
    whys = {f"cannot read the transcript {closed}: Is a directory"}
    whys.add(f"cannot read the transcript: {pipe} is not a regular file")
    told = {f"agent-relay: a session of claude's is left out: {why}" for why in whys}
    assert set(done.err.splitlines()) == told
    view = json.loads(world.run("sessions", "--native", "--json").out)
    assert [row["from"] for row in view["sessions"]] == ["claude:aaa"]
    assert {(one["agent"], one["why"]) for one in view["unread"]} == {("claude", why) for why in whys}
    os.unlink(f"{world.home}/.claude/projects/-p/aaa.jsonl")
    assert world.run("sessions", "--native").out == (
        "No agent has a session of its own here that can be read.\n"
    )


def test_ages_are_told_as_people_tell_them() -> None:
    """Titles repeat; when it was is how people know which one they mean."""
    ages = {timedelta(seconds=-5): "0 min", timedelta(minutes=59): "59 min", timedelta(hours=47): "47 h"}
    for age, shown in {**ages, timedelta(hours=49): "2 days"}.items():
        assert render_age(AT - age, AT) == shown
