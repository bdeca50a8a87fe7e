import os
import socket
import stat
from pathlib import Path

import pytest

from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.net.unix_sockets import connect, listen, peer_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A private folder."""
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run"


def test_a_socket_is_for_its_owner_alone(folder: Path) -> None:
    """Whoever can connect can type into the user's agents."""
    with listen(str(folder / "sock")):
        mode = (folder / "sock").stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert os.listdir(folder) == ["sock"]


def test_the_peer_is_known_from_the_kernel(folder: Path) -> None:
    """A peer can claim anything about itself."""
    with listen(str(folder / "sock")) as listening:
        client = connect(str(folder / "sock"), timeout_s=5)
        server, _ = listening.accept()
        assert peer_of(client) == peer_of(server) == (os.getpid(), os.geteuid())
        client.close()
        server.close()


def test_a_stale_socket_is_replaced_and_a_live_one_answers(folder: Path) -> None:
    """A killed daemon leaves its socket's name behind."""
    path = str(folder / "sock")
    listen(path).close()
    with pytest.raises(ConnectionRefusedError):
        connect(path, timeout_s=5)
    with listen(path):
        connect(path, timeout_s=5).close()


def test_a_path_of_any_length_works(folder: Path) -> None:
    """The kernel takes 107 bytes; home folders may be deeper."""
    deep = folder / ("d" * 100) / ("e" * 100)
    deep.parent.mkdir(mode=0o700)
    deep.mkdir(mode=0o700)
    with listen(str(deep / "sock")) as listening:
        client = connect(str(deep / "sock"), timeout_s=5)
        listening.accept()[0].close()
        client.close()


def test_nobody_connects_through_a_folder_others_can_write_to(folder: Path) -> None:
    """There the socket could be anybody's."""
    with listen(str(folder / "sock")):
        folder.chmod(0o777)
        with pytest.raises(ConfigurationError):
            connect(str(folder / "sock"), timeout_s=5)
        with pytest.raises(ConfigurationError):
            listen(str(folder / "other"))


def test_a_full_queue_is_waited_for_and_no_longer_than_said(folder: Path) -> None:
    """A stopped daemon must not hang its clients."""
    path = str(folder / "sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(0)
        first = connect(path, timeout_s=5)
        with pytest.raises(TimeoutError, match="takes no more connections"):
            connect(path, timeout_s=0.1)
        first.close()


def test_nothing_there_is_nothing_there(folder: Path) -> None:
    """Callers start a daemon on exactly these two errors."""
    with pytest.raises(FileNotFoundError):
        connect(str(folder / "sock"), timeout_s=1)
    with pytest.raises(FileNotFoundError):
        connect(str(folder / "missing" / "sock"), timeout_s=1)
