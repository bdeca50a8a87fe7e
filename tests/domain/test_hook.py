"""The hook entry point keeps what agents tell it and never gets in their way."""

import json
import os
import shlex
import stat
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_relay import hook

HOOK = os.path.abspath(hook.__file__)
PYTHON = [sys.executable, "-I", "-S"]
STOP_FAILURE = b'{"hook_event_name": "StopFailure", "error": "rate_limit",\r\n "session_id": "57460c66"}\n'


def run(*arguments: str, stdin: bytes = STOP_FAILURE) -> subprocess.CompletedProcess[bytes]:
    """One call as an agent makes it."""
    return subprocess.run(
        [*PYTHON, HOOK, *arguments], input=stdin, capture_output=True, timeout=120, check=False
    )


def read_lines(path: str) -> list[dict[str, object]]:
    """The records of a file we wrote; every line must be one."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def assert_silent(done: subprocess.CompletedProcess[bytes]) -> None:
    """Nothing said, nothing failed."""
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.size("test")
def test_a_payload_becomes_one_private_line(tmp_path: Path) -> None:
    """The daemon reads lines; other users read nothing."""
    assert_silent(run("hooks", str(tmp_path)))
    path = os.path.join(str(tmp_path), "hooks.jsonl")
    [record] = read_lines(path)
    assert record["payload"] == {
        "hook_event_name": "StopFailure",
        "error": "rate_limit",
        "session_id": "57460c66",
    }
    assert str(record["at"]).startswith("20")
    assert str(record["at"]).endswith("Z")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize(
    ("payload", "rest"),
    [
        (b"", b'"unreadable":true'),
        (b"garbage \xff\x00", b'"unreadable":true'),
        (b"[1]", b'"unreadable":true'),
        (b'{"a":\n1}', b'"payload":{"a": 1}'),
        (b"{" + b" " * (1 << 20) + b"}", b'"truncated":true'),
    ],
)
def test_what_cannot_be_kept_is_said_to_have_been_there(payload: bytes, rest: bytes) -> None:
    """A hook that fired is evidence even where its payload is none."""
    line = hook.build_line(payload, 1795170662.0625)
    assert line == b'{"at":"2026-11-20T10:31:02.062Z",' + rest + b"}\n"


@pytest.mark.size("test")
def test_a_payload_of_several_megabytes_is_read_to_its_end_and_marked(tmp_path: Path) -> None:
    """The agent must not meet a broken pipe, and our file must not grow by it."""
    assert_silent(run("hooks", str(tmp_path), stdin=b'{"a":"' + b"x" * (3 << 20) + b'"}'))
    [record] = read_lines(os.path.join(str(tmp_path), "hooks.jsonl"))
    assert record["truncated"] is True


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("hooks",),
        ("nonsense", "/"),
        ("hooks", "/nonexistent/leg"),
        ("hooks", "/dev/null"),
        ("hooks", "/proc/self"),
        ("status-line", "/nonexistent/leg"),
        ("status-line", "/nonexistent/leg", "--", "/nonexistent/command"),
        ("status-line", "/nonexistent/leg", "--"),
    ],
)
def test_whatever_is_wrong_the_agent_does_not_notice(arguments: tuple[str, ...]) -> None:
    """A hook that fails shows in the agent's screen and may stop its turn."""
    assert_silent(run(*arguments))


@pytest.mark.size("test")
def test_only_a_regular_file_of_the_folder_is_written(tmp_path: Path) -> None:
    """A link or a pipe planted under the file's name must neither be followed nor block."""
    folder = str(tmp_path)
    os.symlink(os.path.join(folder, "elsewhere"), os.path.join(folder, "hooks.jsonl"))
    os.mkfifo(os.path.join(folder, "status.jsonl"))
    assert_silent(run("hooks", folder))
    assert_silent(run("status-line", folder))
    assert sorted(os.listdir(folder)) == ["hooks.jsonl", "status.jsonl"]


@pytest.mark.size("test")
def test_closed_and_silent_standard_streams_do_no_harm(tmp_path: Path) -> None:
    """Agents close what they do not need, and some never close what they should."""
    shell = f"exec '{sys.executable}' -I -S '{HOOK}' hooks '{tmp_path}'"
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", "</dev/null"):
        done = subprocess.run(["sh", "-c", f"{shell} {closed}"], input=b"{}", timeout=120, check=False)
        assert done.returncode == 0


@pytest.mark.size("test")
def test_a_stdin_that_is_never_closed_ends_after_a_limit(tmp_path: Path) -> None:
    """What came until then is kept."""
    with subprocess.Popen(
        [*PYTHON, "-c", f"{READ_SOON}; hook.main(['hooks', sys.argv[1]])", str(tmp_path)],
        stdin=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        child.stdin.write(b'{"a":1}')
        child.stdin.flush()
        assert child.wait(120) == 0
    assert read_lines(os.path.join(str(tmp_path), "hooks.jsonl"))[0]["payload"] == {"a": 1}


READ_SOON = (
    f"""import sys; sys.path.insert(0, {os.path.dirname(HOOK)!r}); import hook; hook.MAX_STDIN_S = 2.0"""
)


@pytest.mark.size("test")
def test_hooks_running_at_once_never_tear_each_others_lines(tmp_path: Path) -> None:
    """Agents call hooks in parallel, with whole files in their payloads."""
    children = []
    for number in range(8):
        child = subprocess.Popen([*PYTHON, HOOK, "hooks", str(tmp_path)], stdin=subprocess.PIPE)
        children.append((child, b'{"n":%d,"x":"%s"}' % (number, b"%d" % number * 100_000)))
    for child, payload in children:
        child.communicate(payload, timeout=120)
    records = read_lines(os.path.join(str(tmp_path), "hooks.jsonl"))
    payloads = sorted((record["payload"] for record in records), key=lambda payload: payload["n"])
    assert [payload["n"] for payload in payloads] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert all(payload["x"] == str(payload["n"]) * 100_000 for payload in payloads)


@pytest.mark.size("test")
def test_a_line_torn_by_a_full_disk_swallows_no_other(tmp_path: Path) -> None:
    """The next hook starts on a line of its own."""
    path = os.path.join(str(tmp_path), "hooks.jsonl")
    with open(path, "wb") as file:
        file.write(b'{"at":"2026')
    assert_silent(run("hooks", str(tmp_path)))
    with open(path, "rb") as file:
        torn, whole = file.read().splitlines()
    assert torn == b'{"at":"2026'
    assert json.loads(whole)["payload"]["error"] == "rate_limit"


@pytest.mark.size("test")
def test_a_full_disk_is_the_agents_problem_no_further(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: the write fails, the hook does not."""
    shell = f"ulimit -f 1; exec '{sys.executable}' -I -S '{HOOK}' hooks '{tmp_path}'"
    payload = b'{"x":"%s"}' % (b"y" * 100_000)
    assert_silent(
        subprocess.run(["sh", "-c", shell], input=payload, capture_output=True, timeout=120, check=False)
    )
    assert_silent(run("hooks", str(tmp_path)))
    with open(os.path.join(str(tmp_path), "hooks.jsonl"), "rb") as file:
        assert json.loads(file.read().splitlines()[-1])["payload"]["error"] == "rate_limit"


@pytest.mark.size("test")
def test_a_file_of_hooks_grows_to_its_limit_and_no_further(tmp_path: Path) -> None:
    """A long session's payloads must not fill the runtime folder; that a hook fired is still said."""
    path = os.path.join(str(tmp_path), "hooks.jsonl")
    with open(path, "wb") as file:
        file.truncate((64 << 20) - 100)
    assert_silent(run("hooks", str(tmp_path), stdin=b'{"x":"%s"}' % (b"y" * 1000)))
    with open(path, "rb") as file:
        file.seek(-60, os.SEEK_END)
        assert file.read().splitlines()[-1].endswith(b'"unreadable":true}')
    assert os.path.getsize(path) < 64 << 20


@pytest.mark.size("test")
def test_a_status_is_kept_and_the_users_own_line_is_shown_unchanged(tmp_path: Path) -> None:
    """Their status line is theirs: same input, same output, same exit status."""
    own = "wc -c; printf 'line %s' \"$0 $1\"; exit 3"
    done = run("status-line", str(tmp_path), "--", "sh", "-c", own, "a b", "$c")
    assert (done.returncode, done.stderr) == (3, b"")
    assert done.stdout == b"%d\nline a b $c" % len(STOP_FAILURE)
    [record] = read_lines(os.path.join(str(tmp_path), "status.jsonl"))
    assert record["payload"]["error"] == "rate_limit"


@pytest.mark.size("test")
def test_the_users_command_gets_every_byte_of_a_large_status_and_default_signals(tmp_path: Path) -> None:
    """A pipe holds less than an agent may say; and a program killed by its reader's end dies quietly."""
    payload = b'{"x":"%s"}' % (b"y" * 2_000_000)
    done = run("status-line", str(tmp_path), "--", "cksum", stdin=payload)
    assert done.stdout == subprocess.run(["cksum"], input=payload, capture_output=True, check=True).stdout
    assert run("status-line", str(tmp_path), "--", "sh", "-c", "yes | head -1").stderr == b""


@pytest.mark.size("test")
def test_a_full_status_file_is_replaced_by_the_latest_status(tmp_path: Path) -> None:
    """Only the latest counts, and a status comes with every message of a session."""
    path = os.path.join(str(tmp_path), "status.jsonl")
    with open(path, "wb") as file:
        file.write(b'{"payload":{"old":1}}\n' * 11_915)
    assert_silent(run("status-line", str(tmp_path)))
    assert [record["payload"]["error"] for record in read_lines(path)] == ["rate_limit"]
    assert os.listdir(str(tmp_path)) == ["status.jsonl"]
    assert_silent(run("status-line", str(tmp_path)))
    assert len(read_lines(path)) == 2


@pytest.mark.size("test")
def test_a_status_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    """A half-done replacement would stay in the leg's folder for ever."""
    shell = f"ulimit -f 1; exec '{sys.executable}' -I -S '{HOOK}' status-line '{tmp_path}'"
    path = os.path.join(str(tmp_path), "status.jsonl")
    with open(path, "wb") as file:
        file.write(b"{}\n" * 100_000)
    payload = b'{"x":"%s"}' % (b"y" * 100_000)
    subprocess.run(["sh", "-c", shell], input=payload, timeout=120, check=True)
    assert os.listdir(str(tmp_path)) == ["status.jsonl"]


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "name", ["plain", "with space", "it's", 'say "hi"', "new\nline", "$HOME `x` \\", "-n", "ü"]
)
def test_quoted_for_a_shell_the_commands_survive_any_folder_name(tmp_path: Path, name: str) -> None:
    """Repositories live in folders people named, and agents call hooks through a shell."""
    folder = os.path.join(str(tmp_path), name)
    os.mkdir(folder)
    command = shlex.join([*PYTHON, HOOK, "hooks", folder])
    assert_silent(
        subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, timeout=120, check=False)
    )
    own = "cat; echo 'it''s' | cat"
    status = shlex.join([*PYTHON, HOOK, "status-line", folder, "--", "sh", "-c", own])
    done = subprocess.run(["sh", "-c", status], input=b"{}", capture_output=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == (b"{}its\n", b"")
    assert sorted(os.listdir(folder)) == ["hooks.jsonl", "status.jsonl"]


@pytest.mark.size("test")
def test_a_hook_costs_hardly_more_than_an_empty_python(tmp_path: Path) -> None:
    """Agents wait for their hooks; the peer in the same run is the bare interpreter."""
    bare, ours = [], []
    for _ in range(15):
        started = time.perf_counter()
        subprocess.run([*PYTHON, "-c", "pass"], input=STOP_FAILURE, check=True)
        between = time.perf_counter()
        run("hooks", str(tmp_path))
        bare.append(between - started)
        ours.append(time.perf_counter() - between)
    assert statistics.median(ours) < 2.5 * statistics.median(bare)
