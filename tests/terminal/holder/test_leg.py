"""A leg from spawn to collected exit: the child, its input and output, its end, and what outlives it."""

import json
import os
import signal
import time

import pytest

from agent_relay.domain.screen import parse_screen
from agent_relay.system.processes import is_alive, session_members
from agent_relay.terminal.holder_client import SpawnError
from tests.support.legs import Wire, hold, python, raw_python, wait_until

pytestmark = pytest.mark.size("test")


def test_a_program_that_does_not_exist_is_reported_at_once(tmp_path: object) -> None:
    """The user reads why the agent did not start, not that a leg was lost."""
    with pytest.raises(SpawnError, match=r"no-such-agent cannot be started: .*No such file") as caught:
        hold(str(tmp_path), ["no-such-agent"]).__enter__()
    assert caught.value.hint == "Is it installed and on PATH?"


def test_a_file_that_cannot_be_executed_is_reported_at_once(tmp_path: object) -> None:
    """A broken installation is told apart from a missing one."""
    path = f"{tmp_path}/agent"
    with open(path, "w", encoding="utf-8") as file:
        file.write("no program")
    with pytest.raises(SpawnError, match="Permission denied"):
        hold(str(tmp_path), [path]).__enter__()
    os.chmod(path, 0o700)
    with pytest.raises(SpawnError, match="Exec format error"):
        hold(str(tmp_path), [path]).__enter__()


def test_a_folder_that_is_gone_is_reported_at_once(tmp_path: object) -> None:
    """Repositories are deleted while sessions rest."""
    with pytest.raises(SpawnError, match="/nowhere: No such file"):
        hold(str(tmp_path), ["true"], cwd="/nowhere").__enter__()


def test_the_child_has_its_terminal_environment_folder_and_default_signals(tmp_path: object) -> None:
    """An agent must not notice that it is held: job control, PATH and SIGPIPE work as in a shell."""
    code = """
import os, signal
print(os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpgrp(), os.ttyname(0) == os.ttyname(1))
print(os.environ, os.getcwd(), [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3])
print(open("/proc/self/status").read().split("SigIgn:")[1].split()[0], os.get_terminal_size())
"""
    with (
        hold(
            str(tmp_path),
            ["sh", "-c", 'grep SigIgn /proc/self/status; exec "$@"', "sh", *python(code)],
            env={"PATH": os.defpath, "ODD": "\udcff"},
            cwd=str(tmp_path),
            cols=900,
        ) as held,
        Wire(held.folder) as wire,
    ):
        wire.wait_for_exit()
        text = wire.screen().text()
    ignored = int(text.split("SigIgn:")[1].split()[0], 16)
    # The two lowest real-time signals are the C library's own; its posix_spawn leaves them ignored.
    assert ignored & 0x7FFFFFFF == 0
    assert "True True True" in text
    assert "'ODD': '\\udcff'" in text
    assert f"{tmp_path} []" in text
    assert "columns=900, lines=24" in text


def test_the_exit_is_told_after_the_last_byte_and_stored_whole(tmp_path: object) -> None:
    """The last lines of an agent often say why it ended; they may hold secrets and stay in memory."""
    code = "import sys; sys.stdout.write('x' * 300000 + 'the end'); sys.exit(3)"
    with hold(str(tmp_path), python(code)) as held, Wire(held.folder) as wire:
        event = wire.wait_for_exit()
        told = [event[name] for name in ("status", "signal", "total_bytes", "stored")]
        assert told == [3, 0, 300007, True]
        assert wire.output().endswith(b"the end")
        with open(f"{held.folder}/exit.json", encoding="utf-8") as file:
            record = json.load(file)
        assert record == {"status": 3, "signal": 0, "total_bytes": 300007}
        assert held.is_locked()
        collected = wire.ask("collect")["exit"]
        assert isinstance(collected, dict)
        assert parse_screen(collected["screen"]).text().rstrip().endswith("the end")
        assert wire.ask("leave")["ok"] is True
        # Within the leg's life: at its end, a holder that has not left yet is killed.
        wait_until(lambda: not held.is_locked(), "the lock's release")
        assert not os.path.exists(held.socket)


def test_a_child_killed_by_a_signal_is_told_as_a_shell_would(tmp_path: object) -> None:
    """Exit codes of `agent-relay` are the agent's own."""
    with hold(str(tmp_path), ["sleep", "60"]) as held, Wire(held.folder) as wire:
        assert wire.ask("signal", signal="SIGKILL")["reached"] == 1
        event = wire.wait_for_exit()
        assert (event["status"], event["signal"]) == (137, 9)


def test_a_unix_signal_reaches_every_process_of_the_session(tmp_path: object) -> None:
    """Agents re-execute themselves and run helpers in process groups of their own."""
    script = "set -m; sleep 61 & sleep 62 & (sleep 63 & wait) & echo up; wait"
    with hold(str(tmp_path), ["bash", "-c", script]) as held, Wire(held.folder) as wire:
        wire.wait_for_text("up")
        wait_until(lambda: len(session_members(held.started.child_pid)) == 5, "five processes")
        assert wire.ask("signal", signal="SIGKILL")["reached"] == 5
        wire.wait_for_exit()
        assert session_members(held.started.child_pid) == []


def test_what_the_child_leaves_behind_ends_with_its_collection(tmp_path: object) -> None:
    """No orphan processes: a forgotten server would keep the port and the terminal."""
    script = "trap '' HUP; sleep 60 & sleep 60 </dev/null >/dev/null 2>&1 & echo left; exit 0"
    with hold(str(tmp_path), ["sh", "-c", script]) as held, Wire(held.folder) as wire:
        assert wire.wait_for_exit()["status"] == 0
        assert len(session_members(held.started.child_pid)) == 2
        assert wire.ask("collect")["survivors"] == []
        assert session_members(held.started.child_pid) == []


def test_a_killed_holder_takes_its_agent_with_it(tmp_path: object) -> None:
    """An agent whose terminal is gone must not work on unseen."""
    with hold(str(tmp_path), ["cat"]) as held:
        os.kill(held.started.holder_pid, signal.SIGKILL)
        wait_until(lambda: not held.is_locked(), "the lock's release")
        wait_until(
            lambda: not is_alive(held.started.child_pid, held.started.child_born), "the child's hang-up"
        )


def test_input_of_twenty_megabytes_arrives_whole(tmp_path: object) -> None:
    """A paste of any size: PTYs take a few kilobytes at a time and drop what does not fit."""
    code = """
import hashlib
say("ready")
left, digest = 20_000_000, hashlib.sha256()
while left:
    data = os.read(0, min(left, 1 << 16))
    left -= len(data); digest.update(data)
say("\\r\\ngot " + digest.hexdigest())
"""
    import hashlib

    data = bytes(range(1, 256)) * 78432
    data = data[:20_000_000]
    with hold(str(tmp_path), [*raw_python(code)]) as held, Wire(held.folder) as wire:
        wire.wait_for_text("ready")
        for start in range(0, len(data), 300_000):
            wait_until(lambda: wire.ask("status")["queued"] < 1 << 20, "room")  # type: ignore[operator]
            wire.type(data[start : start + 300_000])
        wire.wait_for_text(f"got {hashlib.sha256(data).hexdigest()}")


def test_a_program_that_does_not_read_refuses_input_but_not_questions(tmp_path: object) -> None:
    """Memory stays bounded, and a stuck agent can still be looked at and signalled."""
    deaf = raw_python("say('up'); import time; time.sleep(60)")
    with hold(str(tmp_path), deaf) as held, Wire(held.folder) as wire:
        wire.wait_for_text("up")
        answers = [wire.ask("input", data="x" * (1 << 20)) for _ in range(10)]
        assert [answer["ok"] for answer in answers][:7] == [True] * 7
        assert answers[-1]["code"] == "full"
        assert wire.ask("screen")["ok"]
        assert wire.ask("signal", signal="SIGKILL")["reached"] == 1


def test_terminal_questions_are_answered_while_nobody_is_attached(tmp_path: object) -> None:
    """Agents ask their terminal at start; one of them waits a second for the answer."""
    code = """
say("\\x1b[c\\x1b[6n")
data = b""
while not data.endswith(b"R"): data += os.read(0, 100)
say("answered " + data.hex())
"""
    with hold(str(tmp_path), raw_python(code)) as held, Wire(held.folder) as wire:
        wire.wait_for_text("answered " + b"\x1b[?62;22c\x1b[1;1R".hex())


def test_a_resize_reaches_child_and_screen(tmp_path: object) -> None:
    """The agent lays out its screen for the terminal it is really on."""
    code = """
import signal
def show(*_): say("size %dx%d " % os.get_terminal_size())
signal.signal(signal.SIGWINCH, show); show()
while True: signal.pause()
"""
    with hold(str(tmp_path), raw_python(code)) as held, Wire(held.folder) as wire:
        wire.wait_for_text("size 80x24")
        assert wire.ask("resize", rows=30, cols=100)["ok"]
        screen = wire.wait_for_text("size 100x30")
        assert (len(screen.rows), screen.cols) == (30, 100)
        assert wire.ask("resize", rows=0, cols=100)["code"] == "bad-request"


def test_watchers_are_told_of_output_titles_and_states_in_moderation(tmp_path: object) -> None:
    """The daemon looks when something changed and sleeps otherwise."""
    code = """
import time
say("\\x1b]2;a title\\x07\\x1b]7501;state=error:app=x\\x1b\\\\\\x1b]7501;state=idle:app=x\\x1b\\\\")
for _ in range(100): say("x"); time.sleep(0.01)
os.read(0, 1)
"""
    with hold(str(tmp_path), raw_python(code)) as held, Wire(held.folder) as wire:
        status = wire.ask("watch")
        if status["offset"] == 0:
            assert wire.event("settled")["agent_state"] == "state=idle:app=x"
        began = time.monotonic()
        events = 0
        while wire.event("settled")["offset"] != 163:
            events += 1
            assert time.monotonic() - began < 20
        assert events <= 20
        assert wire.ask("status")["title"] == "a title"
        first = parse_screen(wire.ask("screen")["screen"])
        assert first.agent_states == ("state=error:app=x", "state=idle:app=x")
        assert parse_screen(wire.ask("screen")["screen"]).agent_states == ()
        wire.type(b"q")


def test_output_is_kept_by_offset_and_bounded(tmp_path: object) -> None:
    """Evidence names the byte it was seen at; a flood must not fill memory."""
    code = "say('a' * 3_000_000 + 'b'); os.read(0, 1)"
    with hold(str(tmp_path), raw_python(code)) as held, Wire(held.folder) as wire:
        wait_until(lambda: wire.ask("status")["offset"] == 3_000_001, "the flood's end")
        answer = wire.ask("tail", offset=3_000_000, limit=10)
        assert (answer["offset"], answer["data"], answer["total"]) == (3_000_000, "b", 3_000_001)
        assert 1 << 20 <= len(wire.output()) <= (1 << 20) + (512 << 10)


def test_garbage_ends_its_own_connection_only(tmp_path: object) -> None:
    """A confused client must not end an agent."""
    with hold(str(tmp_path), ["cat"]) as held, Wire(held.folder) as other:
        for garbage in (b"\xff" * 4, b"\0\0\0\x02[]", b"\0\0\0\x05nope!", b"GET / HTTP/1.1\r\n\r\n" * 9):
            with Wire(held.folder) as wire:
                wire.sock.sendall(garbage)
                with pytest.raises(EOFError):
                    wire.event("never")
            assert other.ask("hello")["ok"]


def test_wrong_requests_are_answered_with_what_is_wrong(tmp_path: object) -> None:
    """Programs get a code, people a sentence."""
    with hold(str(tmp_path), ["cat"]) as held, Wire(held.folder) as wire:
        assert wire.ask("fly", id=7) == {
            "id": 7,
            "ok": False,
            "code": "unknown-op",
            "error": "there is no operation 'fly'",
        }
        assert wire.ask("input", data=3)["code"] == "bad-request"
        assert wire.ask("input", data="中")["code"] == "bad-request"
        assert wire.ask("signal", signal="SIGNOTHING")["code"] == "bad-request"
        assert wire.ask("resume")["code"] == "bad-request"
        assert wire.ask("attach", rows=1, cols=1)["code"] == "bad-request"
        assert wire.ask("collect")["code"] == "running"


def test_without_an_emulator_a_leg_still_runs(tmp_path: object) -> None:
    """On machines without the library structured sources still work, and attaching does too."""
    with hold(str(tmp_path), python("print(input())"), library="") as held, Wire(held.folder) as wire:
        assert wire.ask("status")["emulator"] is False
        assert wire.ask("screen")["code"] == "no-emulator"
        wire.type(b"hello\r")
        assert wire.wait_for_exit()["status"] == 0
        assert b"hello\r\nhello" in wire.output()
