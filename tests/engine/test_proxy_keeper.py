"""The daemon keeps the proxy running: through its own end, and through the proxy's."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent_relay.engine.proxy_keeper import ProxyKeeper
from agent_relay.store.proxied_legs import ProxiedLeg, ProxyRoute, Upstream, write_proxied_leg
from agent_relay.system.disk.folders import Folders, ensure_private, get_folders
from agent_relay.system.net.reserved_port import read_running
from tests.support.heard import in_loop

LEG = "01JD0000000000000000000PXY"
LIMIT_S = 60.0
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def folders(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """The folders of a user with one leg that uses the proxy; no proxy is left afterwards."""
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path))
    found = get_folders()
    leg = f"{ensure_private(found.runtime)}/legs/{LEG}"
    os.makedirs(leg, mode=0o700)
    write_proxied_leg(leg, ProxiedLeg("s3cret", (ProxyRoute((Upstream("http://127.0.0.1:9"),)),)))
    yield found
    pid, _ = read_running(found.proxy_lock)
    if pid > 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


@contextlib.asynccontextmanager
async def keep(folders: Folders) -> AsyncIterator[ProxyKeeper]:
    """A keeper, as one daemon has it."""
    keeper = ProxyKeeper(folders)
    try:
        yield keeper
    finally:
        await keeper.close()


def kill(pid: int) -> None:
    """Kill a proxy that is a child of this process, and wait for its end."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


async def ask(port: int) -> bytes:
    """What the proxy says to a stranger's path; it is asked until one listens."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                said = await reader.readexactly(12)
                writer.close()
                return said
            await asyncio.sleep(0.05)


@pytest.mark.size("test")
@in_loop
async def test_a_killed_proxy_is_started_again_at_its_port(folders: Folders) -> None:
    """Agents have its port in their environment, and ask there for as long as they live."""
    async with keep(folders) as keeper:
        port = await keeper.start()
        first, _ = read_running(folders.proxy_lock)
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(LIMIT_S):
            while read_running(folders.proxy_lock)[0] in {0, first}:
                await asyncio.to_thread(time.sleep, 0.05)
        assert await ask(port) == b"HTTP/1.1 404"
        assert read_running(folders.proxy_lock)[1] == port


@pytest.mark.parametrize("text", ["99999999999 80", "1 99999999", "-1 80", "1", "\0", "1 2 3"])
def test_a_file_that_names_no_process_and_port_names_none(tmp_path: object, text: str) -> None:
    """A damaged file must not keep the proxy from being started, nor name a group of processes."""
    path = f"{tmp_path}/running"
    Path(path).write_text(text, "utf-8")
    assert read_running(path) == (0, 0)


@pytest.mark.size("test")
@in_loop
async def test_the_next_daemon_finds_the_proxy_of_the_one_before(folders: Folders) -> None:
    """A daemon that is killed or restarted ends no request."""
    async with keep(folders) as keeper:
        port = await keeper.start()
    pid, _ = read_running(folders.proxy_lock)
    assert await ask(port) == b"HTTP/1.1 404"
    async with keep(folders) as keeper:
        assert await keeper.start() == port
        assert read_running(folders.proxy_lock) == (pid, port)


@pytest.mark.size("test")
@in_loop
async def test_a_daemon_that_finds_legs_and_no_proxy_starts_one(folders: Folders) -> None:
    """Both were killed: the legs' port is the same again."""
    async with keep(folders) as keeper:
        port = await keeper.start()
        pid, _ = read_running(folders.proxy_lock)
    await asyncio.to_thread(kill, pid)
    async with keep(folders) as keeper:
        keeper.keep()
        assert await ask(port) == b"HTTP/1.1 404"


@pytest.mark.size("test")
def test_a_proxy_that_cannot_be_started_is_told_and_leaves_the_leg_alone(folders: Folders) -> None:
    """The leg is started without it then."""
    os.makedirs(folders.proxy_lock)

    async def play() -> None:
        async with keep(folders) as keeper:
            with pytest.raises(Exception, match="proxy"):
                await keeper.start()

    asyncio.run(play())
    os.rmdir(folders.proxy_lock)


def run_as_nobody(program: str) -> int:
    """Run it as another user; its exit status."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            exec(program, {})  # noqa: S102 - a few words of this file
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.size("test")
@pytest.mark.skipif(not IS_ROOT, reason="only root can be somebody else")
@in_loop
async def test_another_user_can_neither_use_the_proxy_nor_take_its_port(folders: Folders) -> None:
    """Keys pass through that port: while nobody listens there, nobody else may."""
    async with keep(folders) as keeper:
        port = await keeper.start()
        request = f"GET /{LEG}.s3cret/0/v1 HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n"
        use = (
            f"import socket; c = socket.socket(); c.settimeout(30); c.connect(('127.0.0.1', {port}))\n"
            f"c.sendall(b'{request}')\n"
            "try: said = c.recv(1)\nexcept ConnectionResetError: said = b''\nassert not said"
        )
        assert await asyncio.to_thread(run_as_nobody, use) == 0
    pid, _ = read_running(folders.proxy_lock)
    take = (
        "import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
        f"try: s.bind(('127.0.0.1', {port}))\nexcept OSError: pass\nelse: raise SystemExit"
    )
    # As a holder keeps it.
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", port))
        await asyncio.to_thread(kill, pid)
        assert run_as_nobody(take) == 0
