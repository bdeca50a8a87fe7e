"""What the tests of the client share: folders of a daemon of their own, and a terminal on an agent."""

import contextlib
from collections.abc import Iterator

import pytest

from agent_relay.system.disk.folders import Folders
from tests.support.attached import ECHO, Attach, attached
from tests.support.legs import Wire
from tests.support.person import Person
from tests.support.switches import NEXT, Switches, at_switches, leg
from tests.support.tiny_client import live_folders


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """Folders of our own; whatever daemon lives in them is ended afterwards."""
    yield from live_folders(monkeypatch)


@pytest.fixture
def way() -> str:
    """How a terminal's bytes travel where a test does not say."""
    return "tty"


@pytest.fixture
def attach(tmp_path: object, way: str) -> Iterator[Attach]:
    """What attaches a terminal to an agent of some code, until the test ends."""
    with contextlib.ExitStack() as stack:

        def attach_to(code: str = ECHO, **more: object) -> tuple[Person, Wire]:
            return stack.enter_context(attached(str(tmp_path), code, way=way, **more))  # type: ignore[arg-type]

        yield attach_to


@pytest.fixture
def first(tmp_path: object) -> Iterator[Wire]:
    """The agent ada, in the folder `one`."""
    with leg(f"{tmp_path}/one", "ada") as wire:
        yield wire


@pytest.fixture
def second(tmp_path: object) -> Iterator[Wire]:
    """The agent bob, in the folder `two`."""
    with leg(f"{tmp_path}/two", "bob") as wire:
        yield wire


@pytest.fixture
def second_below_bar(tmp_path: object) -> Iterator[Wire]:
    """The same, whose terminals have a bar from the beginning."""
    with leg(f"{tmp_path}/two", "bob", bar=NEXT, holds_keys=True) as wire:
        yield wire


@pytest.fixture
def switches(tmp_path: object, way: str, first: Wire) -> Iterator[Switches]:
    """A person who sees what ada said last."""
    del first
    with at_switches(f"{tmp_path}/daemon", way, "one") as found:
        found.person.wait_for("last words of ada")
        yield found
