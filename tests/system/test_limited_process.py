"""Work in a process of its own ends at its limit, whatever it is at."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.system.failures import find_passing
from agent_relay.system.limited_process import (
    KilledError,
    LimitedProcess,
    NotBegunError,
    TookTooLongError,
    UnansweredError,
    WorkLimit,
)
from tests.support.relay_world import CHECKOUT, wait_until

pytestmark = pytest.mark.size("test")

ROOMY = WorkLimit(processor_s=30, wall_s=120)


def _search_for_ever(begun: str) -> None:
    with open(begun, "w", encoding="utf-8"):
        re.compile("(?:a|a)+!").search("a" * 60)


def _wait_for_ever() -> None:
    threading.Event().wait()


def _refuse() -> None:
    raise WrongUseError("no such agent", hint="Known: ann")


def _break() -> None:
    raise KeyError("the text of somebody")


def _tell_process(*, more: str) -> tuple[int, str]:
    return os.getpid(), more


def test_work_is_done_by_another_process_and_its_result_comes_back() -> None:
    """Nothing it does to its own memory or threads can reach ours."""
    process, more = LimitedProcess().run(ROOMY, _tell_process, more="told")
    assert process != os.getpid()
    assert more == "told"


def test_what_it_refuses_comes_back_with_its_hint_and_what_breaks_without_its_words() -> None:
    """A refusal is for the user; a mistake of ours is for a crash report, which holds no contents."""
    with pytest.raises(WrongUseError, match="no such agent") as refused:
        LimitedProcess().run(ROOMY, _refuse)
    assert refused.value.hint == "Known: ann"
    with pytest.raises(RuntimeError, match=r"^KeyError at .*test_limited_process\.py:\d+$"):
        LimitedProcess().run(ROOMY, _break)


def test_an_expression_that_takes_for_ever_is_ended_at_its_processor_time(tmp_path: os.PathLike[str]) -> None:
    """In a thread it would hold every other thread until the end of the universe."""
    with pytest.raises(TookTooLongError, match=r"^it took more than 1 s of processor time$"):
        LimitedProcess().run(WorkLimit(processor_s=1, wall_s=120), _search_for_ever, f"{tmp_path}/begun")


def test_what_waits_for_ever_is_ended_by_the_clock() -> None:
    """A dead disk takes no processor time."""
    with pytest.raises(TookTooLongError, match=r"^it took more than 0\.5 s$"):
        LimitedProcess().run(WorkLimit(processor_s=30, wall_s=0.5), _wait_for_ever)


def test_who_stops_does_not_wait_for_work_under_way(tmp_path: os.PathLike[str]) -> None:
    """A daemon that is asked to stop ends it."""
    work = LimitedProcess()
    begun = f"{tmp_path}/begun"
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work.run, ROOMY, _search_for_ever, begun)
        while not os.path.exists(begun) and not running.done():
            running_for = threading.Event()
            running_for.wait(0.01)
        work.end()
        with pytest.raises(RelayError, match="its process was ended") as ended:
            running.result(timeout=60)
    assert type(ended.value) is RelayError
    work.end()


def _end_with_one() -> None:
    os._exit(1)


def test_a_process_that_cannot_load_its_work_is_told_apart_from_one_that_was_ended() -> None:
    """Where a package's files have gone, whoever asked may do the work itself."""
    with pytest.raises(NotBegunError):
        LimitedProcess().run(ROOMY, _end_with_one)


def _kill(*, whom: str) -> None:
    os.kill(os.getppid() if whom == "who waits for it" else os.getpid(), signal.SIGKILL)
    threading.Event().wait()


@pytest.mark.parametrize("whom", ["itself", "who waits for it"])
def test_a_process_that_is_killed_is_told_apart_from_one_that_never_began(whom: str) -> None:
    """What was begun must not be done again by who asked, without a limit."""
    with pytest.raises(KilledError, match=r"^its process was ended"):
        LimitedProcess().run(ROOMY, _kill, whom=whom)


def _lack_memory() -> None:
    raise MemoryError


def test_work_that_lacks_memory_is_no_mistake_of_ours() -> None:
    """Who asked may try with less."""
    with pytest.raises(KilledError, match=r"^its process ran out of memory$"):
        LimitedProcess().run(ROOMY, _lack_memory)


@contextmanager
def _held_to(descriptors: int) -> Iterator[None]:
    """While it lasts, the server may open no more than so many."""
    server = LimitedProcess().run(ROOMY, _find_server)
    before = resource.prlimit(server, resource.RLIMIT_NOFILE)
    resource.prlimit(server, resource.RLIMIT_NOFILE, (descriptors, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server, resource.RLIMIT_NOFILE, before)


def test_what_the_server_lacks_for_a_process_is_told() -> None:
    """It looked like work that was killed, at once each time it was tried: a session ended for that."""
    with _held_to(4), pytest.raises(NotBegunError) as lacked:
        LimitedProcess().run(ROOMY, _tell_process, more="never")
    assert find_passing(lacked.value) == "Too many open files"
    assert LimitedProcess().run(ROOMY, _tell_process, more="next")[1] == "next"


def _lack_descriptors() -> None:
    raise RelayError("cannot read it") from OSError(errno.EMFILE, "what it was about")


def test_what_the_work_lacked_is_told() -> None:
    """It is tried again later, instead of with less at once."""
    with pytest.raises(RelayError, match="cannot read it") as lacked:
        LimitedProcess().run(ROOMY, _lack_descriptors)
    assert find_passing(lacked.value) == "Too many open files"


def _stop_supervisor() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    threading.Event().wait()


def test_a_supervisor_that_is_stopped_holds_nobody() -> None:
    """Whoever had asked waited for it for ever, and the daemon's handoff with them."""
    with pytest.raises(TookTooLongError):
        LimitedProcess().run(WorkLimit(processor_s=30, wall_s=0.5), _stop_supervisor)
    assert LimitedProcess().run(ROOMY, _tell_process, more="next")[1] == "next"


def test_a_server_that_is_stopped_holds_nobody() -> None:
    """What is asked of it is never begun, and what is asked next has a server of its own."""
    os.kill(LimitedProcess().run(ROOMY, _find_server), signal.SIGSTOP)
    with pytest.raises(UnansweredError):
        LimitedProcess().run(WorkLimit(processor_s=30, wall_s=0.5), _tell_process, more="never")
    assert LimitedProcess().run(ROOMY, _tell_process, more="next")[1] == "next"


def test_a_server_that_was_killed_is_started_again() -> None:
    """A machine short of memory kills whom it likes."""
    server = LimitedProcess().run(ROOMY, _find_server)
    os.kill(server, signal.SIGKILL)
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
    assert LimitedProcess().run(ROOMY, _tell_process, more="again")[1] == "again"


def _find_server() -> int:
    return os.getpgrp()


_CLIENT = """
import sys, threading
sys.path[:0] = {places!r}
from agent_relay.system.limited_process import LimitedProcess, WorkLimit, prepare
prepare({modules!r})
if {modules!r} == ["quick"]:
    import quick
    wait = threading.Thread(target=LimitedProcess().run, args=(WorkLimit(30, 120), quick.wait), daemon=True)
    wait.start()
sys.stdin.read()
"""
_ENDLESS = "import os, threading\nopen({path!r}, 'w').write(str(os.getpid()))\n{work}\n"
_MOMENTS = {"while it imports": "slow", "while it works": "quick"}


@pytest.fixture(params=_MOMENTS)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A client whose server is at something endless, and the process that is at it."""
    module, begun = _MOMENTS[request.param], str(tmp_path / "begun")
    wait = "threading.Event().wait()"
    (tmp_path / "slow.py").write_text(_ENDLESS.format(path=begun, work=wait))
    body = _ENDLESS.format(path=begun, work=wait).replace("\n", "\n    ").strip()
    (tmp_path / "quick.py").write_text(f"def wait():\n    {body}\n")
    program = _CLIENT.format(places=[CHECKOUT, str(tmp_path)], modules=[module])
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        try:
            wait_until(lambda: os.path.exists(begun) and os.path.getsize(begun) > 0, "it is at it")
            yield process, int(Path(begun).read_text())
        finally:
            process.kill()


def test_what_a_killed_client_had_begun_ends_with_it(client: tuple[subprocess.Popen[bytes], int]) -> None:
    """Whoever kills a daemon wants it gone, with a server that would first finish its imports."""
    process, worker = client
    group = os.getpgid(worker)
    process.kill()
    wait_until(lambda: not _is_alive(worker) and not _is_alive(group), "both have ended")


def test_a_client_that_ends_in_order_has_ended_its_server_before(
    client: tuple[subprocess.Popen[bytes], int],
) -> None:
    """Who waits for a daemon's end must find nobody of it afterwards."""
    process, worker = client
    server = os.getpgid(worker)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not os.path.exists(f"/proc/{server}")
    wait_until(lambda: not _is_alive(worker), "its work has ended")


def _is_alive(pid: int) -> bool:
    """Whether a process runs: one that has ended, and that nobody has asked after, does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


FORKING = """
import os, select, signal, sys, types
from agent_relay.system.limited_process import LimitedProcess, WorkLimit, end_server, fork_server

def list_children():
    return [int(pid) for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split()]

made = types.ModuleType("made_here")
exec("def double(number): return 2 * number", made.__dict__)
sys.modules["made_here"] = made
kept = os.open("/dev/null", os.O_RDONLY)
fork_server()
(first,) = list_children()
roomy = WorkLimit(processor_s=30, wall_s=60)
print(LimitedProcess().run(roomy, made.double, 21), sorted(os.listdir(f"/proc/{first}/fd")))
ended = os.pidfd_open(first)
os.kill(first, signal.SIGKILL)
select.select([ended], [], [])
print(LimitedProcess().run(roomy, abs, -1), list_children() != [first])
end_server()
print(list_children())
"""


def test_a_forked_server_has_what_its_client_loaded_and_nothing_it_had_open() -> None:
    """What the daemon has loaded need not be loaded twice; its lock and socket must end with it."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines() == ["42 ['0', '1', '2']", "1 True", "[]"], done.stderr
