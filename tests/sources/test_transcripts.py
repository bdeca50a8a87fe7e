"""Finding the sessions agents keep themselves, and reading them from disk."""

import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.sources.native_sessions import FoundSessions, find_native_sessions, find_transcript
from agent_relay.sources.transcript_files import read_beginning
from agent_relay.sources.transcript_reader import read_facts

_SAMPLES = os.path.join(os.path.dirname(__file__), "..", "transcripts", "samples")
_CLAUDE = Transcript(
    reader="claude-jsonl", folder="{CLAUDE_CONFIG_DIR:-{home}/.claude}/projects", pattern="*/*.jsonl"
)
_GEMINI = Transcript(reader="gemini-jsonl", folder="{home}/.gemini/tmp", pattern="*/chats/session-*.jsonl")
_OPENCODE = Transcript(
    reader="opencode-db", folder="{XDG_DATA_HOME:-{home}/.local/share}/opencode", pattern="opencode*.db"
)


def _write(path: str, *records: Mapping[str, object], at: int = 1_800_000_000) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.writelines(json.dumps(record).encode() + b"\n" for record in records)
    os.utime(path, (at, at))
    return path


def _claude_row(session: str, cwd: str, text: str) -> dict[str, object]:
    return {
        "type": "user",
        "uuid": f"u-{session}",
        "parentUuid": None,
        "sessionId": session,
        "cwd": cwd,
        "timestamp": "2026-11-20T10:00:00Z",
        "message": {"role": "user", "content": text},
    }


def test_a_session_is_found_by_its_id_whatever_its_folder(tmp_path: object) -> None:
    """The leg knows its native id: nothing else may be taken for it."""
    home = str(tmp_path)
    path = _write(f"{home}/.claude/projects/-p/aaa.jsonl", _claude_row("aaa", "/p", "mine"))
    _write(f"{home}/.claude/projects/-p/bbb.jsonl", _claude_row("bbb", "/p", "newer"), at=1_900_000_000)
    found = find_transcript(_CLAUDE, native_id="aaa", cwd="/elsewhere", home=home, environ={})
    assert found is not None
    assert (found.path, found.native_id, found.title) == (path, "aaa", "mine")
    assert find_transcript(_CLAUDE, native_id="zzz", cwd="/p", home=home, environ={}) is None


def test_the_newest_session_of_the_folder_is_found(tmp_path: object) -> None:
    """Adoption: the session this user last had here, not one of another repository."""
    home = str(tmp_path)
    folder = f"{home}/conf/projects"
    _write(f"{folder}/-p/old.jsonl", _claude_row("old", "/p", "old"), at=1_800_000_000)
    _write(f"{folder}/-p/new.jsonl", _claude_row("new", "/p", "new"), at=1_800_000_500)
    _write(f"{folder}/-q/other.jsonl", _claude_row("other", "/q", "other"), at=1_800_000_900)
    _write(f"{folder}/-p/empty.jsonl", {"type": "mode"}, at=1_800_000_950)
    environ = {"CLAUDE_CONFIG_DIR": f"{home}/conf"}
    sessions = find_native_sessions(_CLAUDE, cwd="/p", home=home, environ=environ).sessions
    assert [one.native_id for one in sessions] == ["new", "old"]
    assert sessions[0].changed_at == datetime.fromtimestamp(1_800_000_500, UTC)
    since = datetime.fromtimestamp(1_800_000_300, UTC)
    found = find_transcript(_CLAUDE, cwd="/p", since=since, home=home, environ=environ)
    assert found is not None
    assert found.native_id == "new"
    later = datetime.fromtimestamp(1_800_000_600, UTC)
    assert find_transcript(_CLAUDE, cwd="/p", since=later, home=home, environ=environ) is None


def test_a_folder_reached_through_a_link_is_the_same_folder(tmp_path: object) -> None:
    """The agent writes down the real path, the user typed the other one."""
    home = str(tmp_path)
    os.makedirs(f"{home}/real")
    os.symlink(f"{home}/real", f"{home}/link")
    _write(f"{home}/.claude/projects/x/a.jsonl", _claude_row("a", f"{home}/real", "t"))
    assert find_transcript(_CLAUDE, cwd=f"{home}/link", home=home, environ={}) is not None


def test_no_session_is_no_error(tmp_path: object) -> None:
    """An agent that never ran here has no folder at all."""
    assert find_native_sessions(_CLAUDE, cwd="/p", home=str(tmp_path), environ={}) == FoundSessions((), ())
    assert find_native_sessions(_OPENCODE, cwd="/p", home=str(tmp_path), environ={}) == FoundSessions((), ())


def test_a_working_folder_may_stand_in_a_file_beside_the_sessions(tmp_path: object) -> None:
    """Gemini's records do not name their folder; a file two levels up does."""
    home = str(tmp_path)
    header = {"sessionId": "12345678-x", "kind": "main", "startTime": "2026-11-20T10:00:00Z"}
    prompt = {"id": "1", "type": "user", "content": "hello"}
    _write(f"{home}/.gemini/tmp/proj/chats/session-1-12345678.jsonl", header, prompt)
    with open(f"{home}/.gemini/tmp/proj/.project_root", "w", encoding="utf-8") as file:
        file.write("/p")
    [session] = find_native_sessions(_GEMINI, cwd="/p", home=home, environ={}).sessions
    assert (session.native_id, session.cwd, session.title) == ("12345678-x", "/p", "hello")
    assert find_native_sessions(_GEMINI, cwd="/q", home=home, environ={}) == FoundSessions((), ())
    found = find_transcript(_GEMINI, native_id="12345678-x", cwd="/p", home=home, environ={})
    assert found is not None
    assert read_facts("gemini-jsonl", found.path).cwd == "/p"


def test_a_deleted_session_is_read_from_the_prompt_log(tmp_path: object) -> None:
    """Quitting deletes a session whose only prompt was not answered."""
    folder = f"{tmp_path}/proj"
    os.makedirs(f"{folder}/chats")
    with open(f"{folder}/logs.json", "w", encoding="utf-8") as file:
        json.dump([{"sessionId": "s1", "type": "user", "message": "port it"}], file)
    gone = f"{folder}/chats/session-1-s1.jsonl"
    for path in (gone, f"{folder}/logs.json", f"{tmp_path}"):
        facts = read_facts("gemini-jsonl", path)
        assert facts.unprocessed_prompt is not None
        assert facts.unprocessed_prompt.text == "port it"
        assert facts.native_id == "s1"


def test_a_copied_home_is_searched_for_the_newest_session(tmp_path: object) -> None:
    """A folder may be given where a file was asked for."""
    home = str(tmp_path)
    _write(f"{home}/.claude/projects/-p/a.jsonl", _claude_row("a", "/p", "old"), at=1_800_000_000)
    _write(f"{home}/.claude/projects/-p/b.jsonl", _claude_row("b", "/p", "new"), at=1_800_000_100)
    _write(f"{home}/hooks/hook.jsonl", {"session_id": "x"}, at=1_800_000_900)
    assert read_facts("claude-jsonl", home).native_id == "b"
    assert read_facts("claude-jsonl", home, native_id="a").native_id == "a"
    with pytest.raises(RelayError, match="there is no session zzz in"):
        read_facts("claude-jsonl", home, native_id="zzz")
    with pytest.raises(RelayError, match="there is no session in"):
        read_facts("codex-rollout", home)


def test_a_fork_is_read_with_its_parent(tmp_path: object) -> None:
    """The task of a forked thread stands in another file, of another day perhaps."""
    root = f"{tmp_path}/sessions/2026/11"
    names = {
        "codex-fork-parent.jsonl": f"{root}/19/rollout-a-01a1f883-6109-7861-9c55-8e7ddf188364.jsonl",
        "codex-fork.jsonl": f"{root}/20/rollout-b-01a1f883-64cd-7d71-9cce-99967dd25b5c.jsonl",
    }
    for sample, path in names.items():
        os.makedirs(os.path.dirname(path))
        shutil.copyfile(os.path.join(_SAMPLES, sample), path)
    own = names["codex-fork.jsonl"]
    facts = read_facts("codex-rollout", own)
    prompts = [one for one in facts.conversation if one.role == "user"]
    assert [one.text for one in prompts] == ["What is wrong with calc.py?", "and now?", "fork here"]
    assert prompts[0].place.startswith(names["codex-fork-parent.jsonl"])
    os.remove(names["codex-fork-parent.jsonl"])
    assert [one.text for one in read_facts("codex-rollout", own).conversation if one.role == "user"] == [
        "fork here"
    ]


def test_a_fork_of_itself_ends(tmp_path: object) -> None:
    """A file that names itself as its parent must not be read for ever."""
    meta = {"type": "session_meta", "payload": {"id": "x1", "cwd": "/p", "forked_from_id": "x1"}}
    path = _write(f"{tmp_path}/rollout-x1.jsonl", meta)
    assert read_facts("codex-rollout", path).native_id == "x1"


def test_reading_stops_where_the_file_ended_when_it_was_opened(tmp_path: object) -> None:
    """A line of many megabytes is skipped, the one after it is read."""
    path = f"{tmp_path}/a.jsonl"
    with open(path, "wb") as file:
        file.write(json.dumps(_claude_row("a", "/p", "before")).encode() + b"\n")
        file.write(b'{"pad":"' + b"x" * (20 << 20) + b'"}\n')
        second = {**_claude_row("a", "/p", "after"), "uuid": "u2", "parentUuid": "u-a"}
        file.write(json.dumps(second).encode())
    facts = read_facts("claude-jsonl", path)
    assert [one.text for one in facts.conversation] == ["before", "after"]
    assert facts.skipped_lines == 1


def test_what_cannot_be_read_is_said(tmp_path: object) -> None:
    """One sentence, the path in it."""
    with pytest.raises(RelayError, match=r"cannot read the transcript .*no such file"):
        read_facts("claude-jsonl", f"{tmp_path}/none.jsonl")
    with pytest.raises(ConfigurationError, match="there is no transcript reader nonsense"):
        read_facts("nonsense", "/x")


def test_the_agents_name_may_be_another(tmp_path: object) -> None:
    """Two adapters can share a reader."""
    path = _write(f"{tmp_path}/a.jsonl", _claude_row("a", "/p", "t"))
    assert read_facts("claude-jsonl", path, agent="other").agent == "other"


def test_a_broken_prompt_log_is_no_log(tmp_path: object) -> None:
    """Half a file is written when the agent is killed."""
    folder = f"{tmp_path}/proj"
    os.makedirs(f"{folder}/chats")
    for content in ("[{", '{"not": "a list"}'):
        with open(f"{folder}/logs.json", "w", encoding="utf-8") as file:
            file.write(content)
        with pytest.raises(RelayError, match="cannot read the transcript"):
            read_facts("gemini-jsonl", f"{folder}/chats/session-1-x.jsonl")


def test_old_sessions_are_not_taken_for_a_new_leg(tmp_path: object) -> None:
    """A resumed id counts only once its file has changed."""
    home = str(tmp_path)
    _write(f"{home}/.claude/projects/-p/aaa.jsonl", _claude_row("aaa", "/p", "t"), at=1_800_000_000)
    _write(f"{home}/.claude/projects/-p/aaa-other.jsonl", _claude_row("other", "/p", "t"), at=1_800_000_900)
    since = datetime.fromtimestamp(1_800_000_500, UTC)
    assert find_transcript(_CLAUDE, native_id="aaa", cwd="/p", since=since, home=home, environ={}) is None
    before = datetime.fromtimestamp(1_799_999_999, UTC)
    assert (
        find_transcript(_CLAUDE, native_id="aaa", cwd="/p", since=before, home=home, environ={}) is not None
    )


def test_a_deleted_session_is_found_by_its_id(tmp_path: object) -> None:
    """The leg's own id stands in the prompt log; without an id nothing is guessed."""
    home = str(tmp_path)
    folder = f"{home}/.gemini/tmp/proj"
    os.makedirs(folder)
    with open(f"{folder}/logs.json", "w", encoding="utf-8") as file:
        json.dump([{"sessionId": "s1", "type": "user", "message": "port it"}], file)
    found = find_transcript(_GEMINI, native_id="s1", cwd="/p", home=home, environ={})
    assert found is not None
    assert (found.path, found.title) == (f"{folder}/logs.json", "port it")
    assert read_facts("gemini-jsonl", found.path, native_id="s1").conversation[0].text == "port it"
    assert find_transcript(_GEMINI, native_id="s2", cwd="/p", home=home, environ={}) is None
    assert find_transcript(_GEMINI, cwd="/p", home=home, environ={}) is None


def test_a_beginning_is_read_to_a_limit(tmp_path: object) -> None:
    """A folder of five hundred sessions, each opening with a pasted film, still fits into memory."""
    path = f"{tmp_path}/long.jsonl"
    with open(path, "wb") as file:
        file.write(b"one\n" * 3 + b"x" * 100 + b"\nlast\n")
    assert read_beginning(path, lines=2, limit_bytes=99) == [b"one\n", b"one\n"]
    assert read_beginning(path, lines=9, limit_bytes=99) == [b"one\n", b"one\n", b"one\n"]


def test_a_session_that_is_there_and_cannot_be_read_is_not_taken_for_none(tmp_path: object) -> None:
    """A packet would say that nothing was done, and `--from` that nobody worked here."""
    home = str(tmp_path)
    folder = f"{home}/.claude/projects/-p"
    os.makedirs(f"{folder}/aaa.jsonl")
    why = rf"cannot read the transcript {folder}/aaa.jsonl: Is a directory"
    with pytest.raises(RelayError, match=why):
        find_transcript(_CLAUDE, native_id="aaa", cwd="/p", home=home, environ={})
    found = find_native_sessions(_CLAUDE, cwd="/p", home=home, environ={})
    assert found.sessions == ()
    assert [error.sentence for error in found.unread] == [why]
    assert find_transcript(_CLAUDE, native_id="zzz", cwd="/p", home=home, environ={}) is None
    os.utime(f"{folder}/aaa.jsonl", (1_700_000_001, 1_700_000_001))
    path = _write(f"{folder}/bbb.jsonl", _claude_row("bbb", "/p", "other"), at=1_700_000_000)
    found = find_native_sessions(_CLAUDE, cwd="/p", home=home, environ={}, limit=1)
    assert [one.path for one in found.sessions] == [path]
    assert [error.sentence for error in found.unread] == [why]
    os.utime(path, (1_700_000_002, 1_700_000_002))
    found = find_native_sessions(_CLAUDE, cwd="/p", home=home, environ={}, limit=1)
    assert ([one.path for one in found.sessions], found.unread) == ([path], ())


def test_a_session_whose_file_cannot_be_read_is_found_in_the_log_of_prompts(tmp_path: object) -> None:
    """What its user asked is known all the same."""
    home = str(tmp_path)
    folder = f"{home}/.gemini/tmp/proj"
    os.makedirs(f"{folder}/chats/session-1-aaa.jsonl")
    with open(f"{folder}/logs.json", "w", encoding="utf-8") as file:
        json.dump([{"sessionId": "aaa", "message": "paint the shed"}], file)
    found = find_transcript(_GEMINI, native_id="aaa", cwd="/p", home=home, environ={})
    assert found is not None
    assert (found.native_id, found.title) == ("aaa", "paint the shed")
