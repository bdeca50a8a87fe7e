import json
import os
import shutil
import sys

import pexpect
import pytest

from tests.house import tree

pytestmark = pytest.mark.size("test")
PLAY = {
    "scenes": [
        {"when": "first", "do": [{"edit": "a.txt", "text": "one\ntwo\n"}, {"run": "wc -l < a.txt"}]},
        {"when": "wait", "do": [{"wait_s": 30}]},
        {"when": "forbid", "do": [{"ask": "Run it?"}, {"say": "ran it"}]},
        {"when": "limit", "do": [{"limit": "You've hit your session limit", "resets_in_s": 600}]},
        {"again": True, "do": [{"quote": "(?m)^told: .*", "as": "I was {}"}]},
    ]
}


@pytest.fixture
def home(tmp_path: os.PathLike[str]) -> str:
    """A home with a working folder and one screenplay."""
    os.makedirs(f"{tmp_path}/work")
    with open(f"{tmp_path}/demo.json", "w", encoding="utf-8") as stream:
        json.dump(PLAY, stream)
    return f"{tmp_path}"


def _start(home: str, *words: str) -> "pexpect.spawn[str]":
    program = os.path.join(tree.ADAPTERS, "demo", "agent.py")
    env = {
        "PATH": f"{os.path.dirname(sys.executable)}:{os.defpath}",
        "HOME": home,
        "TERM": "xterm-256color",
        "DEMO_AGENT_SCREENPLAYS": home,
        "DEMO_AGENT_HOME": f"{home}/agent",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    child = pexpect.spawn(
        sys.executable, [program, *words], cwd=f"{home}/work", env=env, encoding="utf-8", timeout=60
    )
    child.delaybeforesend = None
    child.expect_exact("ready |")
    return child


def _end(child: "pexpect.spawn[str]") -> int | None:
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def _leave(child: "pexpect.spawn[str]") -> None:
    """The person presses Ctrl-D."""
    child.send("\x04")
    assert _end(child) == 0


def _rows(home: str, native_id: str) -> list[dict[str, object]]:
    with open(f"{home}/agent/demo/{native_id}.jsonl", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def test_a_turn_edits_and_runs_for_real_and_is_written_down(home: str) -> None:
    """What the packet is built from must have happened, or the demo would prove nothing."""
    child = _start(home, "--session-id", "n1")
    child.send("first\r")
    child.expect_exact("edit a.txt +2 -0")
    child.expect_exact("ready |")
    _leave(child)
    rows = _rows(home, "n1")
    assert [row["type"] for row in rows] == ["session", "prompt", "edit", "run", "done"]
    assert (rows[3]["command"], rows[3]["exit_code"], rows[3]["output"]) == ("wc -l < a.txt", 0, "2\n")


def test_a_paste_of_many_lines_is_one_prompt(home: str) -> None:
    """Packets are pasted; were every line a prompt, the first would start a turn."""
    child = _start(home, "--session-id", "n2")
    child.send("\x1b[200~# packet\n\ntold: the truth\nmore\n\x1b[201~")
    child.expect_exact("[5 lines pasted]")
    child.send("\r")
    child.expect_exact("I was told: the truth")
    _leave(child)
    assert _rows(home, "n2")[1]["text"] == "# packet\n\ntold: the truth\nmore\n"


def test_a_limit_is_on_the_screen_and_in_the_transcript_and_stays(home: str) -> None:
    """A limited agent answers every prompt with the same notice, as the real ones do."""
    child = _start(home, "--session-id", "n3")
    child.send("limit\r")
    child.expect(r"! You've hit your session limit - resets \d\d:\d\d")
    child.send("hello\r")
    child.expect(r"! You've hit your session limit - resets \d\d:\d\d")
    _leave(child)
    rows = _rows(home, "n3")
    assert [row["type"] for row in rows] == ["session", "prompt", "limit", "prompt", "limit"]
    assert rows[2]["scope"] == "account"


def test_a_question_waits_for_y_and_takes_no_prompt(home: str) -> None:
    """Relay must be able to see that nothing may be typed now."""
    child = _start(home)
    child.send("forbid\r")
    child.expect_exact("asking |")
    child.send("xy")
    child.expect_exact("ran it")
    _leave(child)


def test_interrupt_ends_the_turn_not_the_agent(home: str) -> None:
    """Quitting politely begins with giving up the turn."""
    child = _start(home)
    child.send("wait\r")
    child.expect_exact("busy |")
    child.send("\x03")
    child.expect_exact("interrupted")
    child.expect_exact("ready |")
    child.send("/quit\r")
    assert _end(child) == 0


def test_sigterm_restores_the_terminal(home: str) -> None:
    """Whatever ends the agent, the next program gets a usable terminal."""
    child = _start(home)
    child.kill(15)
    child.expect_exact("\x1b[?2004l")
    assert _end(child) == 143


def test_a_resume_repaints_what_was_said(home: str) -> None:
    """An old limit painted again is history: the trap every detector must avoid."""
    child = _start(home, "--session-id", "n4")
    child.send("limit\r")
    child.expect_exact("resets")
    _leave(child)
    child = _start(home, "--resume", "n4")
    assert "! You've hit your session limit" in (child.before or "")
    _leave(child)


@pytest.mark.size("check")
def test_both_agents_of_the_demo_play_parts_that_exist() -> None:
    """A missing screenplay would only show when somebody tries the product for the first time."""
    for name in ("demo", "understudy"):
        with open(os.path.join(tree.ADAPTERS, name, "screenplay.json"), encoding="utf-8") as stream:
            assert json.load(stream)["scenes"]
    assert shutil.which(os.path.join(tree.ADAPTERS, "demo", "agent.py"))
