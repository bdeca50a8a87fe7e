"""A terminal calls for its person in the form it takes, and what stands on it stays as it was."""

import pytest

from tests.support.attached import WAYS, Attach
from tests.support.legs import Wire, hold, raw_python, wait_until

pytestmark = pytest.mark.size("test")

ALONE = ["env", "-u", "TMUX", "-u", "STY", "-u", "KITTY_WINDOW_ID", "-u", "WT_SESSION", "-u", "VTE_VERSION"]
ITERM = [*ALONE, "TERM_PROGRAM=iTerm.app"]
TOLD = {"title": "shop: bob goes on", "text": "ann hit its usage limit.", "bell": True, "osc": True}
SHOWN = b"\x07\x1b]9;shop: bob goes on: ann hit its usage limit.\x1b\\"
WAITS = 'say("ready"); os.read(0, 1)'
TITLES = """
say("ready\\x1b]2;half of a")
os.read(0, 1)
say(" title\\x07 done")
os.read(0, 1)
"""


@WAYS
def test_a_terminal_shows_a_notification_in_its_own_form(attach: Attach) -> None:
    """The person reads elsewhere; the agent's screen is not theirs to lose."""
    person, wire = attach(WAITS, prefix=ITERM)
    before = person.text()
    assert wire.ask("notify", **TOLD) == {"id": None, "ok": True, "told": 1}
    person.wait_until(lambda: SHOWN in person.received, "the notification")
    assert person.text() == before


def test_a_terminal_of_no_known_form_only_rings(attach: Attach) -> None:
    """What it does not know could stand on the screen as text."""
    person, wire = attach(WAITS, prefix=[*ALONE, "TERM_PROGRAM=Apple_Terminal"])
    assert wire.ask("notify", **TOLD)["told"] == 1
    person.wait_until(lambda: b"\x07" in person.received, "the bell")
    assert b"]9;" not in person.received


@WAYS
def test_the_halves_of_a_sequence_of_the_agents_stay_together(attach: Attach) -> None:
    """Bytes in between would end the one and print the rest of it."""
    person, wire = attach(TITLES, prefix=ITERM)
    person.wait_until(lambda: b"half of a" in person.received, "half of a sequence")
    wire.ask("notify", **TOLD)
    person.type(b"x")
    person.wait_for("done")
    assert b"\x1b]2;half of a title\x07" in person.received
    wire.ask("notify", **TOLD)
    person.wait_until(lambda: SHOWN in person.received, "the notification")


def test_without_a_terminal_nobody_is_told(tmp_path: object) -> None:
    """The daemon asks the desktop instead."""
    with hold(str(tmp_path), raw_python(WAITS)) as held, Wire(held.folder) as wire:
        assert wire.ask("notify", **TOLD)["told"] == 0
        assert wire.ask("notify", title="x" * 2001, text="")["code"] == "bad-request"
        wait_until(lambda: wire.ask("status")["attached"] == 0, "nobody")
