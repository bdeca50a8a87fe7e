"""A holder whose child has ended and that nobody has told to leave: how long it waits, and for whom."""

import json
import os

import pytest

from tests.support.legs import Wire, hold, python, wait_until

pytestmark = pytest.mark.size("every")


@pytest.mark.size("test")
def test_an_exit_nobody_collects_waits_only_so_long(tmp_path: object) -> None:
    """Holders of a daemon that never comes back must not stay for ever."""
    with hold(str(tmp_path), ["true"], linger_s=0.2) as held:
        wait_until(lambda: not held.is_locked(), "the holder's end")
        with open(f"{held.folder}/exit.json", encoding="utf-8") as file:
            assert json.load(file)["status"] == 0


def test_a_holder_nobody_will_need_again_waits_a_moment_for_whoever_collects_its_exit(
    tmp_path: object,
) -> None:
    """Its daemon may be killed between asking for the end and seeing it."""
    with hold(str(tmp_path), python("input()")) as held:
        with Wire(held.folder) as wire:
            assert wire.ask("leave", later=True)["ok"] is True
            wire.type(b"\r")
            wire.wait_for_exit()
            assert wire.ask("collect")["survivors"] == []
        wait_until(lambda: not held.is_locked(), "the holder's end")


def test_an_exit_that_cannot_be_stored_is_kept_in_memory(tmp_path: object) -> None:
    """A full disk must not lose the exit; a folder in the way fails the same write."""
    with hold(str(tmp_path), python("input()")) as held, Wire(held.folder) as wire:
        os.mkdir(f"{held.folder}/exit.json")
        wire.type(b"\r")
        assert wire.wait_for_exit()["stored"] is False
        exit_record = wire.ask("collect")["exit"]
        assert isinstance(exit_record, dict)
        assert exit_record["status"] == 0


@pytest.mark.size("test")
def test_the_holder_outlives_whoever_started_it(tmp_path: object) -> None:
    """The daemon may be killed at any moment; a holder is nobody's child and keeps its luggage in memory."""
    with hold(str(tmp_path), ["cat"], luggage="PATH=/bin") as held:
        with open(f"/proc/{held.started.holder_pid}/stat", encoding="ascii") as file:
            _, parent, _, session = file.read().rpartition(")")[2].split()[:4]
        assert int(parent) != os.getpid()
        assert int(session) == held.started.holder_pid
        with Wire(held.folder) as wire:
            assert wire.ask("luggage")["luggage"] == "PATH=/bin"
        with Wire(held.folder) as wire:
            assert wire.ask("hello")["child"] == held.started.child_pid


def test_what_a_child_left_behind_cannot_put_off_its_end_by_writing(tmp_path: object) -> None:
    """A server begun in the background prints a line now and then; the session must not wait for it."""
    left = "trap '' HUP; while :; do echo still here; sleep 0.1; done"
    with (
        hold(str(tmp_path), ["sh", "-c", f"({left}) & sleep 0.3; exit 3"]) as held,
        Wire(held.folder) as wire,
    ):
        wait_until(lambda: wire.ask("status")["exit"], "the end is told", limit_s=60)
        assert wire.ask("collect")["survivors"] == []
